// Draws a picture into pixels: a pure function of picture and view, one pixel of the buffer
// for one CSS pixel of the screen. What is not colour alone (hatches, edges) is drawn here too,
// so that it is there at every zoom.

import { Class, Flag, type Picture } from './picture.js';
import { fills, ground, pixel, type Theme } from './palette.js';
import { eachRun, lowest, own, rowsOf, toneOf } from './rows.js';

export interface Port {
  width: number; // pixels
  height: number;
  from: number; // the time of the left edge, in seconds
  perPixel: number; // seconds
  top: number; // the PE of the upper edge, perhaps between two
  rowHeight: number; // pixels of a PE
  theme: Theme;
  mask: Uint8Array | null; // bars with 0 are left out; null shows all
}

/** Box is where a bar is drawn: [x0, x1) × [y0, y1), clipped to the port. */
export interface Box {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  left: number; // the same before it was clipped
  right: number;
}

/** boxOf returns where a bar is drawn, or null if outside of the port. What is thinner than a pixel gets one. */
export function boxOf(p: Picture, i: number, v: Port): Box | null {
  const left = (p.t0 + p.start[i]! - v.from) / v.perPixel;
  const x0 = Math.floor(left);
  let x1 = Math.max(x0 + 1, Math.floor(left + p.length[i]! / v.perPixel));
  if (x1 - x0 >= 4) x1--; // a gap between one bar and the next
  if (x1 <= 0 || x0 >= v.width) return null;
  const upper = (p.first[i]! - v.top) * v.rowHeight;
  const lower = upper + p.size[i]! * v.rowHeight;
  let y0 = Math.round(upper);
  let y1 = Math.max(y0 + 1, Math.round(lower));
  if (y1 - y0 >= 4) y1--;
  if (p.class[i] === Class.job) {
    const sixth = y1 - y0 < 3 ? 0 : Math.max(1, Math.floor(Math.min(v.rowHeight, y1 - y0) / 6)); // a sixth on each side
    y0 += sixth;
    y1 -= sixth;
  }
  if (y1 <= 0 || y0 >= v.height) return null;
  return { x0: Math.max(0, x0), x1: Math.min(v.width, x1), y0: Math.max(0, y0), y1: Math.min(v.height, y1), left: x0, right: x1 };
}

/** shown reports whether a bar is drawn, whatever its place. */
export function shown(_: Picture, i: number, v: Port): boolean {
  return v.mask === null || v.mask[i] !== 0;
}

/**
 * aligned returns the port whose left edge is a whole number of pixels behind 1970, so that a
 * port that was moved by whole pixels shows the same pixels elsewhere.
 */
export const aligned = (v: Port): Port => ({ ...v, from: Math.round(v.from / v.perPixel) * v.perPixel });

/** finer returns the port that shows the same with n times as many pixels in each direction. */
export const finer = (v: Port, n: number): Port => ({ ...v, width: v.width * n, height: v.height * n, perPixel: v.perPixel / n, rowHeight: v.rowHeight * n });

/** raster draws a picture on an aligned port. out has v.width * v.height pixels and is written whole. */
export function raster(p: Picture | null, v: Port, out: Uint32Array): void {
  columns(p, v, out, 0, v.width);
}

/**
 * shifted returns by how many pixels what was drawn on one aligned port has to be moved to the
 * left for another one, or null if that is not all that differs.
 */
export function shifted(a: Port, b: Port): number | null {
  if (a.width !== b.width || a.height !== b.height || a.perPixel !== b.perPixel || a.top !== b.top || a.rowHeight !== b.rowHeight || a.theme !== b.theme || a.mask !== b.mask) return null;
  const by = Math.round((b.from - a.from) / b.perPixel);
  return Math.abs(by) < b.width ? by : null;
}

/** pan draws what raster draws, out of what was drawn with the port that was by pixels to the left, and returns which columns are new: [x0, x1). */
export function pan(p: Picture | null, v: Port, out: Uint32Array, by: number): [number, number] {
  if (by === 0) return [0, 0];
  out.copyWithin(Math.max(0, -by), Math.max(0, by), out.length - Math.max(0, -by)); // what leaves a row enters the next one, and is drawn over
  const fresh: [number, number] = by > 0 ? [v.width - by, v.width] : [0, -by];
  columns(p, v, out, ...fresh);
  return fresh;
}

/** columns draws the columns [c0, c1) of a port. Pixels are written as signed numbers: a browser's compiler keeps those in registers, and others often as fractions. */
function columns(p: Picture | null, v: Port, pixels: Uint32Array, c0: number, c1: number): void {
  const out = new Int32Array(pixels.buffer, pixels.byteOffset, pixels.length);
  const phase = phaseOf(v);
  const known0 = p ? Math.ceil((p.t0 - v.from) / v.perPixel) : v.width;
  const known1 = p ? Math.floor((p.t0 + p.width * p.step - v.from) / v.perPixel) : v.width;
  checkers(v, out, c0, Math.min(c1, known0), phase);
  checkers(v, out, Math.max(c0, known1), c1, phase);
  const k0 = Math.min(c1, Math.max(c0, known0));
  const k1 = Math.max(k0, Math.min(c1, known1));
  if (!p) return;
  if (p.cells) {
    rasterCells(p, p.cells, v, out, c0, c1, k0, k1);
    return;
  }
  const ink = inksOf(v.theme);
  const paper = solid(ink, Class.free);
  const { apart, pe, most, faded, latest, tones } = rowsOf(p);
  let blank = 0; // from this row of pixels on the columns [k0, k1) hold what was there before
  const clear = (end: number) => {
    for (; blank < Math.min(end, v.height); blank++) out.fill(paper, blank * v.width + k0, blank * v.width + k1);
  };
  for (const i of faded) { // bars are drawn over these
    clear(v.height);
    if (shown(p, i, v)) fade(p, i, v, ink, out, c0, c1, phase);
  }
  const since = v.from + (c0 - 1) * v.perPixel - p.t0; // nothing that ends before it or begins behind the other is drawn
  const until = v.from + c1 * v.perPixel - p.t0;
  const thin = v.rowHeight < 2; // then a bar of one PE has a row of pixels, or two, and no inside
  eachRun(p, since, until, v.top - 1 / v.rowHeight, v.top + (v.height + 1) / v.rowHeight, (i0, i1, run) => {
    const upper = (pe[run]! - v.top) * v.rowHeight;
    const y0 = Math.round(upper);
    const y1 = Math.max(y0 + 1, Math.round(upper + v.rowHeight));
    if (thin && apart[run] && (i1 - i0) * 16 >= k1 - k0 && k1 > k0) {
      clear(y0);
      row(p, i0, i1, tones, v, ink, out, Math.max(0, y0), Math.min(v.height, y1), blank, k0, k1, phase);
      blank = Math.max(blank, Math.min(v.height, y1));
      if (k0 > c0) threads(p, i0, lowest(p.start, i0, i1, since + (k0 - c0 + 2) * v.perPixel), y0, y1, v, ink, out, c0, k0, phase);
      if (k1 < c1) threads(p, lowest(latest, i0, i1, since + (k1 - c0) * v.perPixel), i1, y0, y1, v, ink, out, k1, c1, phase);
      return;
    }
    clear(Math.max(y1, Math.round(upper + most * v.rowHeight)));
    if (thin) threads(p, i0, i1, y0, y1, v, ink, out, c0, c1, phase);
    else bars(p, i0, i1, v, ink, out, c0, c1, phase);
  });
  clear(v.height);
}

/** checkers draws what is not fetched yet, which is not free. */
function checkers(v: Port, out: Int32Array, x0: number, x1: number, phase: number): void {
  if (x0 >= x1) return;
  const checker = pixel(fills[v.theme].job, ground[v.theme], 0.18);
  const paper = pixel(ground[v.theme], ground[v.theme], 1);
  const rows = [0, 1].map((odd) => {
    const row = new Int32Array(x1 - x0);
    for (let n = 0; n < row.length; n++) row[n] = (((x0 + n + phase) >> 3) + odd) & 1 ? checker : paper;
    return row;
  });
  for (let y = 0; y < v.height; y++) out.set(rows[(y >> 3) & 1]!, y * v.width + x0);
}

/** reach is how many pixels before its first one an outage fades out whose beginning is not known. */
const reach = 24;

/** fade draws that an outage began before it was first seen: the fewer points the earlier. */
function fade(p: Picture, i: number, v: Port, ink: Int32Array, out: Int32Array, c0: number, c1: number, phase: number): void {
  const b = boxOf(p, i, { ...v, width: v.width + reach }); // also one that begins to the right of the port
  if (!b) return;
  const x0 = Math.max(c0, b.left - reach);
  const x1 = Math.min(c1, b.left);
  const color = solid(ink, Class.outage);
  const paper = solid(ink, Class.free);
  for (let y = b.y0; y < b.y1; y++) {
    for (let x = x0; x < x1; x++) {
      if (((((x + phase) * 5 + y * 3) & 7) * reach) / 8 < reach - (b.left - x) && out[y * v.width + x] === paper) out[y * v.width + x] = color;
    }
  }
}

/**
 * threads draws bars of one run in rows of less than two pixels. Most are of one PE: what boxOf and bar do is done for these together,
 * with the rows of pixels worked out once for all of them.
 */
function threads(p: Picture, i0: number, i1: number, upper: number, lower: number, v: Port, ink: Int32Array, out: Int32Array, c0: number, c1: number, phase: number): void {
  const { t0, start, length, size, flags } = p;
  const { from, perPixel, width, mask } = v;
  const { tones } = rowsOf(p);
  const y0 = Math.max(0, upper);
  const y1 = Math.min(v.height, lower);
  for (let i = i0; i < i1; i++) {
    if (mask !== null && mask[i] === 0) continue;
    const flag = flags[i]!;
    if (size[i] !== 1 || flag & (Flag.held | Flag.announced)) {
      bars(p, i, i + 1, v, ink, out, c0, c1, phase);
      continue;
    }
    const left = (t0 + start[i]! - from) / perPixel;
    const begin = Math.floor(left);
    let end = Math.floor(left + length[i]! / perPixel);
    if (end <= begin) end = begin + 1;
    if (end - begin >= 4) end--;
    if (end <= c0 || begin >= c1) continue;
    const x0 = (begin < c0 ? c0 : begin) | 0;
    const x1 = (end > c1 ? c1 : end) | 0;
    const tone = tones[i]!;
    for (let y = y0; y < y1; y++) {
      const dots = tone | ((y & 7) << 3);
      const stop = y * width + x1;
      for (let at = y * width + x0, n = x0 + phase; at < stop; at++, n++) out[at] = ink[dots | (n & 7)]!;
    }
  }
}

let rest = new Int32Array(0); // steps of a row without bars: along the eight pixels that repeat, and back
let restPhase = 0;
let steps = new Int32Array(0); // from the ink of one pixel to that of the next; at rest between rows
let line = new Int32Array(0);

/**
 * row is threads for many bars that are apart, in the columns [k0, k1) and the rows of pixels [y0, y1). Where a bar begins its tone is added and where it ends taken away, so that one
 * pass over the pixels, without a branch, sums up what each of them shows. From the row blank on that is paper where no bar is, above it what was drawn before.
 * A bar ends where the next one begins if both are within a pixel: that one hides it.
 */
function row(p: Picture, i0: number, i1: number, tones: Uint16Array, v: Port, ink: Int32Array, out: Int32Array, y0: number, y1: number, blank: number, k0: number, k1: number, phase: number): void {
  const { t0, start, length } = p;
  const { from, perPixel, width, mask } = v;
  const columns = k1 - k0;
  const first = (k0 + phase) & 7;
  if (line.length !== columns || restPhase !== first) {
    restPhase = first;
    if (line.length !== columns) [rest, steps, line] = [new Int32Array(columns + 1), new Int32Array(columns + 1), new Int32Array(columns)];
    for (let x = 0; x <= columns; x++) rest[x] = (x + first) & 7 ? 1 : -7;
    steps.set(rest);
  }
  const step = steps; // a compiler knows that these stay
  const dots = line;
  const before = k0 - 4; // whatever begins before it begins outside, and is not short
  let stop = 0; // of the bar before
  let tone = 0;
  for (let i = i0; i < i1; i++) {
    if (mask !== null && mask[i] === 0) continue;
    const left = (t0 + start[i]! - from) / perPixel;
    const right = left + length[i]! / perPixel;
    const begin = (Math.floor(left < before ? before : left) | 0) - k0; // small enough for whole numbers
    let end = (Math.floor(right > k1 + 1 ? k1 + 1 : right) | 0) - k0;
    if (end <= begin) end = begin + 1;
    if (end - begin >= 4) end--;
    if (end <= 0 || begin >= columns) continue;
    const x0 = begin < 0 ? 0 : begin;
    const at = stop < x0 ? stop : x0;
    step[at]! -= tone;
    tone = tones[i]!;
    step[x0]! += tone;
    stop = end > columns ? columns : end;
  }
  step[stop]! -= tone;
  for (let y = y0; y < y1; y++) {
    const at = (y * width + k0) | 0;
    let now = ((y & 7) << 3) | ((first + 7) & 7);
    if (y >= blank) {
      for (let x = 0; x < columns; x++) {
        now = (now + step[x]!) | 0;
        dots[x] = ink[now]!;
      }
      out.set(dots, at);
      continue;
    }
    for (let x = 0; x < columns; x++) {
      now = (now + step[x]!) | 0;
      const free = (now - 64) >> 31; // all bits if no bar is here
      out[at + x] = (ink[now]! & ~free) | (out[at + x]! & free);
    }
  }
  step.set(rest);
}

/** phaseOf is where the patterns of a port begin: they move with what they fill. */
const phaseOf = (v: Port) => (Math.round(v.from / v.perPixel) % 16 + 16) % 16;

const inks = new Map<Theme, Int32Array>();

/**
 * inksOf returns what bars are drawn with: for each class, and for what is over of it, the eight rows of eight pixels that
 * repeat. So a bar of any kind is drawn without asking at each pixel what it is.
 */
function inksOf(theme: Theme): Int32Array {
  let ink = inks.get(theme);
  if (ink) return ink;
  ink = new Int32Array(toneOf(own + 1, 0));
  const f = fills[theme];
  const paper = pixel(ground[theme], ground[theme], 1);
  [ground[theme], f.promise, f.job, f.degraded, f.outage, f.mine].forEach((hue, kind) => {
    for (const over of [0, Flag.over]) {
      const color = pixel(hue, ground[theme], over ? 0.4 : 1);
      for (let y = 0; y < 8; y++) {
        for (let n = 0; n < 8; n++) ink![toneOf(kind, over) | (y << 3) | n] = (kind === Class.degraded && hatched(n, y)) || (kind === Class.outage && crossed(n, y)) ? paper : color;
      }
    }
  });
  inks.set(theme, ink);
  return ink;
}

const hatched = (n: number, y: number) => ((n + y) & 7) < 2;
const crossed = (n: number, y: number) => ((n + y) & 7) === 0 || ((n - y) & 7) === 0;

/** solid returns the colour of a class, without its pattern. */
const solid = (ink: Int32Array, kind: number, flags = 0) => ink[toneOf(kind, flags) | 4]!;

/** bars draws bars of any size. */
function bars(p: Picture, i0: number, i1: number, v: Port, ink: Int32Array, out: Int32Array, c0: number, c1: number, phase: number): void {
  for (let i = i0; i < i1; i++) {
    if (!shown(p, i, v)) continue;
    const b = boxOf(p, i, v);
    if (b && b.x0 < c1 && b.x1 > c0) bar(b, p.class[i]!, p.flags[i]!, v, ink, out, c0, c1, phase);
  }
}

function bar(b: Box, kind: number, flags: number, v: Port, ink: Int32Array, out: Int32Array, c0: number, c1: number, phase: number): void {
  const tone = toneOf(kind, flags);
  const color = solid(ink, kind === Class.promise && flags & Flag.mine ? own : kind, flags);
  const paper = solid(ink, Class.free);
  const tall = b.y1 - b.y0 >= 5;
  const hollow = (flags & Flag.held) !== 0;
  const announced = kind === Class.outage && (flags & Flag.announced) !== 0;
  const plain = kind !== Class.degraded && kind !== Class.outage;
  const x0 = Math.max(b.x0, c0);
  const x1 = Math.min(b.x1, c1);
  for (let y = b.y0; y < b.y1; y++) {
    const row = y * v.width;
    const edge = y === b.y0 || y === b.y1 - 1;
    if (announced) { // the lines of the hatch alone, so that what is promised there until it is moved can be seen
      for (let x = x0; x < x1; x++) if (crossed(x + phase, y) || (tall && (edge || x === b.left || x === b.right - 1))) out[row + x] = color;
      continue;
    }
    if (hollow) {
      for (let x = x0; x < x1; x++) {
        const rim = edge || x === b.left || x === b.right - 1;
        out[row + x] = rim && ((x + phase + y) & 7) < 5 ? color : paper;
      }
      continue;
    }
    if (plain && x1 - x0 > 24) out.fill(color, row + x0, row + x1);
    else for (let x = x0, dots = tone | ((y & 7) << 3); x < x1; x++) out[row + x] = ink[dots | ((x + phase) & 7)]!;
    if (tall && flags & Flag.provisional && y === b.y1 - 1) {
      for (let x = x0; x < x1; x++) if ((x + phase) & 2) out[row + x] = paper;
    }
  }
  const notch = b.left + 4; // behind a thick left edge
  if (flags & Flag.active && tall && !hollow && b.right - b.left >= 8 && notch >= x0 && notch < x1) {
    for (let y = b.y0 + 1; y < b.y1 - 1; y++) out[y * v.width + notch] = paper;
  }
}

function rasterCells(p: Picture, cells: Uint8Array, v: Port, out: Int32Array, c0: number, c1: number, k0: number, k1: number): void {
  const f = fills[v.theme];
  const list = [ground[v.theme], p.own ? f.mine : f.promise, f.job, f.degraded, f.outage];
  const shade = Int32Array.from({ length: 256 }, (_, i) => pixel(list[Math.min(4, i >> 4)]!, ground[v.theme], (i & 15) / 15));
  const bucketOf = (x: number) => Math.floor((v.from + (x + 0.5) * v.perPixel - p.t0) / p.step);
  const buckets = new Int32Array(k1 - k0);
  for (let x = 0; x < buckets.length; x++) buckets[x] = bucketOf(k0 + x);
  const rims = [k0 - 1, k1].filter((x) => x >= c0 && x < c1 && (x < k0 || x >= k1) && bucketOf(x) >= 0 && bucketOf(x) < p.width); // known by less than all of their pixels
  const dots = new Int32Array(k1 - k0);
  let above = -1; // the group of dots: several rows of pixels may show one
  for (let y = 0; y < v.height; y++) {
    const group = Math.floor((v.top + (y + 0.5) / v.rowHeight - p.lo) / p.group);
    const at = y * v.width;
    if (group < 0 || group >= p.height) {
      out.fill(shade[0]!, at + k0, at + k1);
      continue;
    }
    const line = group * p.width;
    if (group !== above) for (let x = 0; x < dots.length; x++) dots[x] = shade[cells[line + buckets[x]!]!]!;
    above = group;
    out.set(dots, at + k0);
    for (const x of rims) {
      const cell = cells[line + bucketOf(x)]!;
      if (cell !== 0) out[at + x] = shade[cell]!;
    }
  }
}

/** hit returns the index of the bar at a point, of several the last drawn; -1 if there is none. */
export function hit(p: Picture, v: Port, x: number, y: number): number {
  let found = -1;
  const at = v.from - p.t0;
  eachRun(p, at + (x - 1) * v.perPixel, at + (x + 1) * v.perPixel, v.top + (y - 1.5) / v.rowHeight, v.top + (y + 1.5) / v.rowHeight, (i0, i1) => {
    for (let i = i0; i < i1; i++) {
      if (!shown(p, i, v)) continue;
      const b = boxOf(p, i, v);
      if (b && x >= b.x0 && x < b.x1 && y >= b.y0 && y < b.y1) found = i;
    }
  });
  return found;
}

/**
 * beside returns the bar that a key goes to from another one: 'left' and 'right' to the bar
 * before or behind it on the same PE, 'up' and 'down' to the one at about the same time on the
 * nearest other PE. -1 from nothing is the first; -1 as an answer means that there is none.
 */
export function beside(p: Picture, v: Port, from: number, way: 'left' | 'right' | 'up' | 'down'): number {
  let best = -1;
  let distance = Infinity;
  if (from < 0) {
    for (let i = 0; i < p.count; i++) if (shown(p, i, v) && boxOf(p, i, v)) return i;
    return -1;
  }
  const row = p.first[from]!;
  const middle = p.start[from]! + p.length[from]! / 2;
  for (let i = 0; i < p.count; i++) {
    if (i === from || !shown(p, i, v)) continue;
    let d: number;
    if (way === 'left' || way === 'right') {
      if (row < p.first[i]! || row >= p.first[i]! + p.size[i]!) continue;
      d = way === 'left' ? p.start[from]! - p.start[i]! : p.start[i]! - p.start[from]!;
      if (d <= 0) continue;
    } else {
      const rows = way === 'up' ? row - p.first[i]! : p.first[i]! - row;
      if (rows <= 0) continue;
      const off = Math.max(0, p.start[i]! - middle, middle - p.start[i]! - p.length[i]!);
      d = off * 1e4 + rows;
    }
    if (d < distance) {
      distance = d;
      best = i;
    }
  }
  return best;
}
