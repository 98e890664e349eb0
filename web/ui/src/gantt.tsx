import { Button, Group, Text } from '@mantine/core';
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { aheadOfUTC, hour, length, ticks, time } from './clock.js';
import { type Rows } from './api.js';
import { fills, ground, pixel, type Theme } from './palette.js';
import { usePaper } from './parts.js';
import { Class, Flag, type Picture } from './picture.js';
import { aligned, beside, boxOf, finer, hit, pan, raster, shifted, shown, type Port } from './raster.js';
import { eachRun } from './rows.js';
import { type Lane, said as startSaid, stretchAt } from './starts.js';
import { text } from './text.js';
import { useWho, type Who } from './names.js';

const side = 116; // pixels of the names
const axis = 30;
const stripHeight = 34;
const fine = 2; // pixels of paper for each of the screen, in both directions
const laneHeight = 14; // of the starts of one shape

/** Ghost is something that could be had. Without runs its PEs are not chosen yet. */
export interface Ghost { start: number; end: number; npe: number; runs: { first: number; size: number }[]; label: string }

export interface GanttProps {
  picture: Picture | null;
  rows: Rows | null;
  pes: number;
  from: number;
  to: number;
  now: number;
  zone: string;
  theme: Theme;
  mask: Uint8Array | null;
  who?: Who; // whose bars are
  begin: number | null; // the first PE shown if rows are tall, null if all are shown
  stale: boolean;
  selected: number; // the number of a bar, -1 for none
  name: string; // of site and pool
  onWindow: (from: number, to: number) => void;
  onSelect: (number: number) => void;
  onOpen: () => void;
  onKey: (key: string) => void;
  onBegin: (pe: number | null) => void;
  ghosts?: Ghost[];
  ready?: number; // of what is asked for: what is outside of its window is shaded
  deadline?: number;
  onDeadline?: (at: number) => void;
  lanes?: Lane[]; // when what is asked for can start, a lane for each shape
  onStart?: (lane: number, at: number) => void;
}

/** begins says when a bar begins: of what had begun when it was first seen that is not known. */
export function begins(p: Picture, i: number, zone: string): string {
  const at = time(p.t0 + p.start[i]!, zone);
  return p.flags[i]! & Flag.openStart ? text.orEarlier(at) : at;
}

/** about says what a bar is, for those who cannot see it and in its tip. */
export function about(p: Picture, i: number, zone: string, rows: Rows | null): string {
  const f = p.flags[i]!;
  const start = p.t0 + p.start[i]!;
  const words = [
    p.class[i] === Class.promise && f & Flag.mine ? 'your promise' : text.classes[p.class[i]!]!,
    text.pes(p.size[i]!),
    place(p, i, rows),
    `${begins(p, i, zone)} to ${f & Flag.openEnd ? 'an unknown end' : time(start + p.length[i]!, zone)} ${zone}`,
  ];
  if (f & Flag.held) words.push('held');
  if (f & Flag.active) words.push('running');
  if (f & Flag.over) words.push('over');
  if (f & Flag.provisional) words.push(text.provisional);
  if (f & Flag.announced) words.push('announced');
  return words.filter(Boolean).join(', ');
}

function place(p: Picture, i: number, rows: Rows | null): string {
  if (p.first[i] === p.pes) return text.unplaced;
  const last = p.first[i]! + p.size[i]! - 1;
  const at = (pe: number) => rows?.rows.find((r) => pe >= r.first && pe < r.first + r.pes)?.name;
  const a = at(p.first[i]!);
  const b = at(last);
  if (a && b) return a === b ? a : `${a} to ${b}`;
  return p.size[i] === 1 ? `PE ${p.first[i]}` : `PEs ${p.first[i]} to ${last}`;
}

/** names returns the labels of rows: of rows that are too thin one for several, which names the range. The last has room pixels at least. */
export function names(rows: Rows | null, pes: number, rowHeight: number, room = 10): { label: string; from: number; to: number }[] {
  const list = rows && rows.rows.length > 0 ? rows.rows : Array.from({ length: Math.min(pes, 4096) }, (_, i) => {
    const size = Math.ceil(pes / Math.min(pes, 4096));
    return { name: `PE ${i * size}`, first: i * size, pes: Math.min(size, pes - i * size) };
  }).filter((r) => r.pes > 0);
  const out: { label: string; from: number; to: number }[] = [];
  for (let i = 0; i < list.length; ) {
    let j = i;
    while (j < list.length - 1 && (list[j]!.first + list[j]!.pes - list[i]!.first) * rowHeight < 14) j++;
    const to = list[j]!.first + list[j]!.pes;
    out.push({ label: i === j ? list[i]!.name : `${list[i]!.name}–${short(list[i]!.name, list[j]!.name)}`, from: list[i]!.first, to });
    i = j + 1;
  }
  for (let [before, last] = out.slice(-2); before && last && (last.to - last.from) * rowHeight < room; [before, last] = out.slice(-2)) { // what is left is too thin for a name of its own
    before.label = `${list.find((r) => r.first === before!.from)!.name}–${short(list[0]!.name, list[list.length - 1]!.name)}`;
    before.to = last.to;
    out.pop();
  }
  return out;
}

/** short leaves out of the second name what it begins with like the first, but for its number. */
function short(a: string, b: string): string {
  const head = /^(.*?)\d+$/.exec(a)?.[1];
  return head && b.startsWith(head) ? b.slice(head.length) : b;
}

const noLanes: Lane[] = [];

/** RowsHead stands above rows without names of their own. */
const RowsHead = memo(function RowsHead({ tall, said, onBegin }: { tall: boolean; said: string; onBegin: (pe: number | null) => void }) {
  return (
    <Group justify="space-between" gap="xs">
      <Text size="xs" c="dimmed">{said}</Text>
      <Button size="compact-xs" variant="default" onClick={() => onBegin(tall ? null : 0)}>{tall ? 'All rows' : 'Taller rows'}</Button>
    </Group>
  );
});

export function Gantt(props: GanttProps) {
  const { picture, rows, pes, zone, theme, mask, selected } = props;
  const box = useRef<HTMLDivElement>(null);
  const pixels = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [hover, setHover] = useState<{ i: number; x: number; y: number } | null>(null);
  const [said, setSaid] = useState('');
  const [start, setStart] = useState<{ lane: number; at: number; x: number; y: number } | null>(null); // under the pointer
  const [drag, setDrag] = useState<{ x: number; from: number; to: number; moved: boolean; zoom: boolean; deadline: boolean; at: number } | null>(null);
  const touches = useRef(new Map<number, number>()); // where fingers are
  const pinch = useRef<{ from: number; to: number; middle: number; apart: number } | null>(null); // how two of them began
  const drawn = useRef<{ port: Port; picture: Picture | null; zone: string; image: ImageData; out: Uint32Array } | null>(null);

  useLayoutEffect(() => {
    const el = box.current!;
    const measure = () => setWidth(Math.max(200, Math.floor(el.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(el);
    return () => observer.disconnect();
  }, []);

  const extra = useMemo(() => {
    let n = 0;
    if (picture) for (let i = 0; i < picture.count; i++) if (picture.first[i] === picture.pes) n = Math.max(n, picture.size[i]!);
    return n;
  }, [picture]);
  const shownPEs = pes + extra;
  const tall = props.begin !== null;
  const rowHeight = tall ? 14 : Math.min(20, Math.max(520 / shownPEs, shownPEs <= 90 ? 6 : 0));
  const full = Math.max(24, Math.round(shownPEs * rowHeight));
  const height = Math.min(full, 560);
  const foot = extra > 0 && extra * rowHeight < 14 ? 14 - extra * rowHeight : 0; // what the words below take of the last row
  const labels = useMemo(() => names(rows, pes, rowHeight, foot > 0 ? 10 + foot : 10), [rows, pes, rowHeight, foot]);
  const lanes = props.lanes ?? noLanes;
  const roof = axis + lanes.length * laneHeight; // above the strip
  const plot = Math.max(1, width - side);
  const top = Math.max(0, Math.min(props.begin ?? 0, shownPEs - height / rowHeight));
  const setTop = (pe: number) => props.onBegin(pe);
  const onBegin = useRef(props.onBegin);
  onBegin.current = props.onBegin;
  const begin = useCallback((pe: number | null) => onBegin.current(pe), []);
  const shownPort: Port = useMemo(
    () => aligned({ width: plot, height, from: props.from, perPixel: (props.to - props.from) / plot, top, rowHeight, theme, mask }),
    [plot, height, props.from, props.to, top, rowHeight, theme, mask],
  );
  const port = shownPort;
  const from = port.from; // what is drawn, half a pixel from what is asked for
  const to = port.from + plot * port.perPixel;
  const marks = useMemo(() => ticks(from - port.perPixel, to + port.perPixel, port.perPixel * 84, zone), [from, to, port.perPixel, zone]);
  const index = useMemo(() => {
    if (!picture || selected < 0) return -1;
    return picture.number.indexOf(selected);
  }, [picture, selected]);

  const { who } = props;
  const pointed = useWho(who, hover && picture && hover.i < picture.count && picture.class[hover.i] !== Class.outage ? picture.number[hover.i]! : -1, hover !== null && picture !== null && (picture.flags[hover.i]! & Flag.mine) !== 0);
  const paper = usePaper();
  useLayoutEffect(() => {
    const canvas = pixels.current!;
    if (width === 0) return;
    const port = paper ? finer(shownPort, fine) : shownPort;
    if (canvas.width !== port.width || canvas.height !== port.height) {
      canvas.width = port.width;
      canvas.height = port.height;
      drawn.current = null;
    }
    const context = canvas.getContext('2d')!;
    const last = drawn.current;
    const by = last && last.picture === picture && last.zone === zone ? shifted(last.port, port) : null;
    const image = last && last.port.width === port.width && last.port.height === port.height ? last.image : context.createImageData(port.width, port.height);
    const out = last?.image === image ? last.out : new Uint32Array(image.data.buffer);
    let [x0, x1] = [0, port.width];
    if (by === null) raster(picture, port, out);
    else [x0, x1] = pan(picture, port, out, by);
    const free = pixel(ground[theme], ground[theme], 1);
    const line = pixel(fills[theme].outage, ground[theme], 0.13);
    for (const t of marks) { // behind the bars
      const x = Math.round((t.at - from) / port.perPixel);
      if (x >= x0 && x < x1) for (let y = 0; y < port.height; y++) if (out[y * port.width + x] === free) out[y * port.width + x] = line;
    }
    context.putImageData(image, 0, 0);
    drawn.current = { port, picture, zone, image, out };
  }, [picture, shownPort, marks, width, zone, theme, paper]);

  useLayoutEffect(() => {
    if (width === 0) return;
    const canvas = over.current!;
    const scale = paper ? Math.max(fine, window.devicePixelRatio) : window.devicePixelRatio || 1;
    const w = width;
    const h = roof + stripHeight + height;
    const c = canvas.getContext('2d')!;
    const [deviceWidth, deviceHeight] = [Math.floor(w * scale), Math.floor(h * scale)];
    if (canvas.width !== deviceWidth || canvas.height !== deviceHeight) {
      canvas.width = deviceWidth;
      canvas.height = deviceHeight;
    }
    c.reset();
    c.scale(scale, scale);
    const ink = theme === 'dark' ? '#e9e7e1' : '#17191d';
    const soft = theme === 'dark' ? 'rgba(233,231,225,0.16)' : 'rgba(23,25,29,0.12)';
    const faint = theme === 'dark' ? '#a5a29a' : '#5f5c56';
    c.font = '12px system-ui, sans-serif';
    c.textBaseline = 'middle';
    const xOf = (at: number) => side + (at - from) / port.perPixel;
    const nowLabel = `now ${hour(props.now, zone)}`;
    c.font = '600 11px system-ui, sans-serif';
    const nowRoom = c.measureText(nowLabel).width;
    const nowX = Math.round(xOf(props.now)) + 0.5;
    const nowAt = nowX > side && nowX < w ? Math.min(Math.max(nowX - nowRoom / 2, side), w - nowRoom - 2) : Infinity;
    for (const t of marks) {
      if (t.at < from || t.at >= to) continue;
      const x = Math.round(xOf(t.at)) + 0.5;
      c.strokeStyle = soft;
      c.lineWidth = t.strong ? 2 : 1;
      c.beginPath();
      c.moveTo(x, axis - 6);
      c.lineTo(x, roof + stripHeight);
      c.stroke();
      c.fillStyle = t.strong ? ink : faint;
      c.font = `${t.strong ? '600 ' : ''}12px system-ui, sans-serif`;
      const room = c.measureText(t.label).width;
      let left = x - room / 2;
      if (left + room + 4 >= nowAt && left - 4 <= nowAt + nowRoom) left = x > nowX ? nowAt + nowRoom + 6 : nowAt - room - 6; // beside now, if that is still above its line
      if (left <= x && left + room >= x && left > side - 20 && left + room < w) c.fillText(t.label, left, axis / 2 - 2);
    }
    // The strip: free PEs as a step line.
    const base = roof + stripHeight - 4;
    const tall2 = stripHeight - 10;
    c.fillStyle = faint;
    c.font = '11px system-ui, sans-serif';
    c.fillText('free PEs', 8, roof + stripHeight / 2 - 1);
    c.fillText(String(pes), side - 8 - c.measureText(String(pes)).width, roof + 8);
    c.fillText('0', side - 8 - c.measureText('0').width, base - 2);
    c.save();
    c.beginPath();
    c.rect(side, axis, plot, h - axis);
    c.clip();
    lanes.forEach((l, row) => { // where it can start, and where it cannot
      const y = axis + row * laneHeight;
      for (const s of l.stretches) {
        const x0 = Math.max(side, xOf(s.first));
        const x1 = Math.min(w, Math.max(x0 + 1, xOf(s.last + 1)));
        if (x1 <= side || x0 >= w) continue;
        if (s.refusal) {
          c.fillStyle = soft;
          c.fillRect(x0, y + laneHeight / 2 - 1, x1 - x0, 2);
        } else {
          c.fillStyle = fills[theme].promise;
          c.fillRect(x0, y + 3, x1 - x0, laneHeight - 6);
        }
      }
    });
    if (start !== null && lanes[start.lane]) {
      c.fillStyle = ink;
      c.fillRect(Math.round(xOf(start.at)) - 1, axis + start.lane * laneHeight, 2, laneHeight);
    }
    if (picture) {
      const steps: { x0: number; x1: number; y: number }[] = []; // one for each stretch of as many free PEs
      const first = Math.max(0, Math.floor((from - picture.t0) / picture.step) - 1);
      const behind = Math.min(picture.width, Math.ceil((to - picture.t0) / picture.step) + 1);
      for (let i = first; i < behind; i++) {
        const y = base - (picture.free[i]! / Math.max(1, pes)) * tall2;
        const x1 = xOf(picture.t0 + (i + 1) * picture.step);
        const last = steps[steps.length - 1];
        if (last && last.y === y) last.x1 = x1;
        else steps.push({ x0: last ? last.x1 : xOf(picture.t0 + i * picture.step), x1, y });
      }
      c.fillStyle = theme === 'dark' ? 'rgba(47,134,201,0.25)' : 'rgba(61,143,209,0.18)'; // without a GPU one area with so many corners takes longer than all bars
      for (const s of steps) {
        const x0 = Math.round(s.x0);
        if (s.y < base) c.fillRect(x0, s.y, Math.round(s.x1) - x0, base - s.y);
      }
      c.fillStyle = fills[theme].promise; // and so does a stroke
      const half = 0.625;
      let before = base;
      for (const s of steps) {
        c.fillRect(s.x0 - half, Math.min(before, s.y) - half, 2 * half, Math.abs(before - s.y) + 2 * half);
        c.fillRect(s.x0, s.y - half, s.x1 - s.x0, 2 * half);
        before = s.y;
      }
    }
    c.strokeStyle = soft;
    c.lineWidth = 1;
    c.strokeRect(side - 0.5, roof + stripHeight - 0.5, plot + 1, height + 1);
    // Words on bars, and what must be seen at every zoom.
    if (picture && !picture.cells) {
      let drawn = 0;
      const pins = new Set<number>();
      const least = 43 * port.perPixel;
      const word = (i: number) => {
        if ((picture.length[i]! < least && picture.class[i] !== Class.degraded) || !shown(picture, i, port)) return;
        const b = boxOf(picture, i, port);
        if (!b) return;
        const bold = (picture.flags[i]! & Flag.mine) !== 0 && picture.class[i] === Class.promise;
        const wide = b.x1 - b.x0;
        const deep = b.y1 - b.y0;
        const y = roof + stripHeight + (b.y0 + b.y1) / 2;
        const near = -1 - (((b.x0 >> 3) << 12) | (b.y0 >> 3)); // not one upon the other
        const pinned = picture.class[i] === Class.degraded && !pins.has(picture.number[i]!) && !pins.has(near); // one for each promise
        if (pinned) {
          pins.add(picture.number[i]!).add(near);
          const small = deep < 12;
          c.font = `700 ${small ? 9 : 12}px system-ui, sans-serif`;
          c.fillStyle = fills[theme].degraded;
          c.beginPath();
          c.arc(side + b.x0 + 8, y, small ? 5 : 7, 0, 7);
          c.fill();
          c.fillStyle = theme === 'dark' ? '#14171c' : '#ffffff';
          c.fillText('!', side + b.x0 + (small ? 6.5 : 6), y + 1);
        }
        if (wide < 44 || deep < 12) return;
        drawn++;
        const label = `${bold ? 'yours · ' : ''}${text.pes(picture.size[i]!)}`;
        c.font = `${bold ? '600 ' : ''}11px system-ui, sans-serif`;
        const room = c.measureText(label).width;
        const pin = pinned ? 12 : 0;
        if (room + 12 + pin > wide) return;
        const paper = theme === 'dark' ? '#14171c' : '#ffffff';
        const onPaper = (picture.flags[i]! & (Flag.held | Flag.over)) !== 0;
        const backed = picture.class[i] === Class.degraded || picture.class[i] === Class.outage;
        const x = side + b.x0 + 8 + pin;
        if (backed) {
          c.fillStyle = paper;
          c.fillRect(x - 3, y - 7, room + 6, 14);
        }
        c.fillStyle = onPaper || backed ? ink : theme === 'light' && bold ? '#ffffff' : '#0b0d10';
        c.fillText(label, x, y + 0.5);
      };
      eachRun(picture, from - picture.t0, to - picture.t0, top - 1, top + height / rowHeight + 1, (i0, i1) => {
        for (let i = i0; i < i1 && drawn < 4000; i++) word(i);
      });
    }
    for (const g of props.ghosts ?? []) {
      const x0 = xOf(g.start);
      const x1 = xOf(g.end);
      c.lineWidth = 2;
      c.setLineDash([6, 4]);
      c.strokeStyle = fills[theme].mine;
      c.fillStyle = theme === 'dark' ? 'rgba(168,216,255,0.22)' : 'rgba(18,63,122,0.16)';
      const boxes = g.runs.length > 0
        ? g.runs.map((r) => [roof + stripHeight + (r.first - top) * rowHeight, r.size * rowHeight] as const)
        : [[base - (Math.min(pes, g.npe) / Math.max(1, pes)) * tall2, Math.max(3, (Math.min(pes, g.npe) / Math.max(1, pes)) * tall2)] as const]; // in the strip: which PEs is chosen later
      for (const [y, deep] of boxes) {
        c.fillRect(x0, y, x1 - x0, deep);
        c.strokeRect(x0 + 1, y + 1, Math.max(1, x1 - x0 - 2), Math.max(1, deep - 2));
        if (deep >= 14 && x1 - x0 > 60) {
          c.fillStyle = ink;
          c.font = '600 11px system-ui, sans-serif';
          c.fillText(g.label, x0 + 8, y + deep / 2, x1 - x0 - 12);
          c.fillStyle = theme === 'dark' ? 'rgba(168,216,255,0.22)' : 'rgba(18,63,122,0.16)';
        }
      }
      c.setLineDash([]);
    }
    if (props.deadline !== undefined) {
      c.fillStyle = theme === 'dark' ? 'rgba(233,231,225,0.10)' : 'rgba(23,25,29,0.07)';
      const right = xOf(props.deadline);
      c.fillRect(right, axis, w - right, h - axis);
      if (props.ready !== undefined) c.fillRect(side, axis, xOf(props.ready) - side, h - axis);
      c.strokeStyle = ink;
      c.lineWidth = 2;
      c.beginPath();
      c.moveTo(right, axis);
      c.lineTo(right, h);
      c.stroke();
      c.fillStyle = ink;
      c.fillRect(right - 5, roof + stripHeight + height / 2 - 14, 10, 28); // to take hold of
      c.fillStyle = theme === 'dark' ? '#14171c' : '#ffffff';
      for (const off of [-2, 1]) c.fillRect(right + off, roof + stripHeight + height / 2 - 7, 1, 14);
    }
    const outline = (i: number, color: string, weight: number) => {
      if (!picture || i < 0) return;
      for (let j = 0; j < picture.count; j++) { // all bars of the same promise
        if (picture.number[j] !== picture.number[i]) continue;
        const b = boxOf(picture, j, port);
        if (!b) continue;
        c.strokeStyle = color;
        c.lineWidth = weight;
        c.strokeRect(side + b.x0 - 0.5, roof + stripHeight + b.y0 - 0.5, b.x1 - b.x0 + 1, b.y1 - b.y0 + 1);
      }
    };
    if (hover) outline(hover.i, ink, 1.5);
    outline(index, ink, 3);
    if (drag?.zoom && drag.moved) {
      c.fillStyle = soft;
      c.fillRect(Math.min(drag.x, drag.at), axis, Math.abs(drag.at - drag.x), h - axis);
    }
    const x = nowX;
    c.strokeStyle = theme === 'dark' ? '#ff6b8b' : '#c01048';
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(x, axis);
    c.lineTo(x, h);
    c.stroke();
    c.restore();
    if (x > side && x < w) {
      c.fillStyle = theme === 'dark' ? '#ff6b8b' : '#c01048';
      c.font = '600 11px system-ui, sans-serif';
      c.fillText(nowLabel, nowAt, axis / 2 - 2);
    }
    c.font = '11px system-ui, sans-serif';
    c.fillStyle = faint;
    lanes.forEach((l, row) => c.fillText(lanes.length === 1 ? text.book.lane : text.book.laneOf(l.npe, length(l.duration)), 8, axis + (row + 0.5) * laneHeight, side - 12));
    // Names of rows.
    c.save();
    c.beginPath();
    c.rect(0, roof + stripHeight, side - 4, height);
    c.clip();
    c.font = '12px system-ui, sans-serif';
    for (const n of labels) {
      const y0 = roof + stripHeight + (n.from - top) * rowHeight;
      const y1 = roof + stripHeight + (n.to - top) * rowHeight;
      if (y1 < roof + stripHeight || y0 > h) continue;
      c.fillStyle = faint;
      c.fillText(n.label, 8, (y0 + y1 - (n.to === pes ? foot : 0)) / 2);
      c.strokeStyle = soft;
      c.beginPath();
      c.moveTo(0, Math.round(y0) - 0.5);
      c.lineTo(side, Math.round(y0) - 0.5);
      c.stroke();
    }
    if (extra > 0) c.fillText(text.unplaced, 8, roof + stripHeight + (pes - top + extra / 2) * rowHeight - foot / 2);
    c.restore();
  }, [picture, port, marks, labels, foot, width, hover, index, props.now, zone, drag, extra, props.ghosts, props.ready, props.deadline, lanes, roof, start, paper]);

  // What has the focus is said, but not each of several that are passed quickly.
  useEffect(() => {
    if (!picture || index < 0) return;
    let over = false;
    const timer = setTimeout(async () => {
      const what = about(picture, index, zone, rows);
      const name = (await who?.(picture.number[index]!, (picture.flags[index]! & Flag.mine) !== 0)) ?? '';
      if (!over) setSaid(name ? `${what}, ${name}` : what);
    }, 150);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [picture, index, zone, rows, who]);

  // React attaches wheel listeners passively, and a passive one cannot keep the page from scrolling.
  const wheel = useRef<(e: WheelEvent) => void>(() => undefined);
  wheel.current = (e) => {
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : e.shiftKey ? e.deltaY : 0;
    if (e.ctrlKey) {
      e.preventDefault();
      const x = e.clientX - over.current!.getBoundingClientRect().left - side;
      zoomAt(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 200))), Math.max(0, Math.min(1, x / plot)));
    } else if (sideways !== 0) {
      e.preventDefault();
      props.onWindow(from + sideways * port.perPixel, to + sideways * port.perPixel);
    } else if (full > height) {
      const next = Math.max(0, Math.min(shownPEs - height / rowHeight, top + e.deltaY / rowHeight));
      if (next !== top) {
        e.preventDefault();
        setTop(next);
      }
    }
  };
  useEffect(() => {
    const el = box.current!;
    const on = (e: WheelEvent) => wheel.current(e);
    el.addEventListener('wheel', on, { passive: false });
    return () => el.removeEventListener('wheel', on);
  }, []);

  const zoomAt = (factor: number, part: number) => {
    const at = from + (to - from) * part;
    props.onWindow(at - (at - from) * factor, at + (to - at) * factor);
  };

  const point = (e: React.PointerEvent) => {
    const r = over.current!.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  };
  /** laneUnder returns which start is at a point, null if none is. */
  const laneUnder = (at: { x: number; y: number }) => {
    const lane = Math.floor((at.y - axis) / laneHeight);
    if (lane < 0 || lane >= lanes.length || at.x < side) return null;
    const time = Math.round((from + (at.x - side) * port.perPixel) / 60) * 60;
    const s = lanes[lane]!.stretches[stretchAt(lanes[lane]!, time)];
    return { lane, at: s && !s.refusal ? Math.max(time, s.first) : time, ...at };
  };
  const under = (at: { x: number; y: number }) => {
    const x = at.x - side;
    const y = at.y - axis - stripHeight;
    return picture && x >= 0 && y >= 0 ? hit(picture, port, Math.floor(x), Math.floor(y)) : -1;
  };

  /** show moves the view to a bar that keys went to outside of it. */
  const show = (i: number) => {
    const p = picture!;
    const start = p.t0 + p.start[i]!;
    if (start >= to || start + p.length[i]! <= from) {
      const middle = start + Math.min(p.length[i]!, to - from) / 2;
      props.onWindow(middle - (to - from) / 2, middle + (to - from) / 2);
    }
    const rowsShown = height / rowHeight;
    if (p.first[i]! < top || p.first[i]! >= top + rowsShown) setTop(Math.max(0, Math.min(shownPEs - rowsShown, p.first[i]! - rowsShown / 3)));
  };

  const keys = (e: React.KeyboardEvent) => {
    const ways: Record<string, 'left' | 'right' | 'up' | 'down'> = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' };
    const way = ways[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (way && e.shiftKey) {
      const by = ((to - from) / 8) * (way === 'left' ? -1 : way === 'right' ? 1 : 0);
      if (by) props.onWindow(from + by, to + by);
    } else if (way) {
      if (picture) {
        const next = beside(picture, port, index, way);
        if (next >= 0) {
          props.onSelect(picture.number[next]!);
          show(next);
        }
      }
    } else if (e.key === '+' || e.key === '=') zoomAt(0.7, 0.5);
    else if (e.key === '-') zoomAt(1 / 0.7, 0.5);
    else if (e.key === 'Enter' && index >= 0) props.onOpen();
    else if (['0', 'n', 'm', 't', 'g', '/', '?', 'Escape'].includes(e.key)) props.onKey(e.key);
    else return;
    e.preventDefault();
  };

  return (
    <>
    {(tall || rowHeight < 6) && <RowsHead tall={tall} said={full > height ? `PEs ${Math.ceil(top)} to ${Math.min(pes, Math.floor(top + height / rowHeight)) - 1} of ${pes}; the wheel scrolls.` : 'Rows are thinner than their names: a name is that of several.'} onBegin={begin} />}
    <div className="gantt" ref={box} style={{ height: roof + stripHeight + height }}>
      <canvas ref={pixels} aria-hidden="true" style={{ left: side, top: roof + stripHeight, width: plot, height }} className={props.stale ? 'stale' : undefined} />
      <canvas
        ref={over}
        tabIndex={0}
        role="application"
        aria-label={`Picture of ${props.name}`}
        aria-describedby="gantt-help"
        style={{ width, height: roof + stripHeight + height, cursor: drag?.moved ? 'grabbing' : hover ? 'pointer' : 'grab' }}
        onKeyDown={keys}
        onPointerDown={(e) => {
          if (e.button !== 0) return;
          const at = point(e);
          e.currentTarget.setPointerCapture(e.pointerId);
          touches.current.set(e.pointerId, at.x);
          if (touches.current.size === 2) { // two fingers zoom
            const [a, b] = [...touches.current.values()] as [number, number];
            pinch.current = { from, to, middle: (a + b) / 2 - side, apart: Math.max(20, Math.abs(a - b)) };
            setDrag(null);
            return;
          }
          const deadline = props.deadline !== undefined && props.onDeadline !== undefined && Math.abs(at.x - side - (props.deadline - from) / port.perPixel) <= 8;
          setDrag({ x: at.x, from, to, moved: false, zoom: at.y < axis && !deadline, deadline, at: at.x });
        }}
        onPointerMove={(e) => {
          const at = point(e);
          if (touches.current.has(e.pointerId)) touches.current.set(e.pointerId, at.x);
          const began = pinch.current;
          if (began) {
            const [a, b] = [...touches.current.values()] as [number, number];
            const scale = ((began.to - began.from) / plot) * (began.apart / Math.max(20, Math.abs(a - b)));
            const left = began.from + (began.middle * (began.to - began.from)) / plot - ((a + b) / 2 - side) * scale;
            props.onWindow(left, left + scale * plot);
            return;
          }
          if (drag) {
            const moved = drag.moved || Math.abs(at.x - drag.x) > 3;
            setDrag({ ...drag, moved, at: at.x });
            if (moved && drag.deadline) props.onDeadline!(from + (at.x - side) * port.perPixel);
            else if (moved && !drag.zoom) {
              const by = (drag.x - at.x) * port.perPixel;
              props.onWindow(drag.from + by, drag.to + by);
            }
            return;
          }
          const i = under(at);
          setHover(i >= 0 ? { i, ...at } : null);
          setStart(laneUnder(at));
        }}
        onPointerCancel={(e) => {
          touches.current.delete(e.pointerId);
          pinch.current = null;
          setDrag(null);
        }}
        onPointerUp={(e) => {
          touches.current.delete(e.pointerId);
          pinch.current = null;
          if (!drag) return;
          setDrag(null);
          const at = point(e);
          const begin = drag.moved ? null : laneUnder(at);
          if (begin) {
            setSaid(startSaid(lanes[begin.lane]!, begin.at, zone));
            props.onStart?.(begin.lane, begin.at);
          } else if (!drag.moved) {
            const i = under(at);
            props.onSelect(i >= 0 ? picture!.number[i]! : -1);
            if (i >= 0) props.onOpen();
          } else if (drag.zoom && Math.abs(at.x - drag.x) > 8) {
            const a = from + (Math.min(at.x, drag.x) - side) * port.perPixel;
            const b = from + (Math.max(at.x, drag.x) - side) * port.perPixel;
            props.onWindow(a, b);
          }
        }}
        onPointerLeave={() => { setHover(null); setStart(null); }}
      />
      {hover && picture && hover.i < picture.count && !drag && (
        <div className="tip" role="presentation" style={{ left: Math.min(hover.x + 14, width - 320), top: hover.y + 14 }}>
          <strong>{picture.class[hover.i] === Class.promise && picture.flags[hover.i]! & Flag.mine ? 'Your promise' : capital(text.classes[picture.class[hover.i]!]!)}</strong>
          {', '}
          {text.pes(picture.size[hover.i]!)}, {place(picture, hover.i, rows)}
          <br />
          {pointed && <><span className="named">{pointed}</span><br /></>}
          {begins(picture, hover.i, zone)} –{' '}
          {picture.flags[hover.i]! & Flag.openEnd ? 'end unknown' : picture.flags[hover.i]! & Flag.openStart ? time(picture.t0 + picture.start[hover.i]! + picture.length[hover.i]!, zone) : `${hour(picture.t0 + picture.start[hover.i]! + picture.length[hover.i]!, zone)} (${length(picture.length[hover.i]!)})`}
          <br />
          <small>
            {zone}
            {aheadOfUTC(props.now, zone) !== 0 && !(picture.flags[hover.i]! & Flag.openStart) && ` · ${hour(picture.t0 + picture.start[hover.i]!, 'UTC')} UTC`}
            {picture.flags[hover.i]! & Flag.held ? ' · held' : ''}
            {picture.flags[hover.i]! & Flag.active ? ' · running' : ''}
            {picture.flags[hover.i]! & Flag.over ? ' · over' : ''}
            {picture.flags[hover.i]! & Flag.provisional ? ` · ${text.provisional}` : ''}
            {picture.flags[hover.i]! & Flag.announced ? ' · announced' : ''}
          </small>
        </div>
      )}
      {start && lanes[start.lane] && !drag && (
        <div className="tip" role="presentation" style={{ left: Math.min(start.x + 14, Math.max(0, width - 320)), top: start.y + 14 }}>{startSaid(lanes[start.lane]!, start.at, zone)}</div>
      )}
      <div className="unseen" role="status" aria-live="polite">{said}</div>
    </div>
    </>
  );
}

export const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);
