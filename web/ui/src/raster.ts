// Draws a picture into pixels: a pure function of picture and view, one pixel of the buffer
// for one CSS pixel of the screen. What is not colour alone (hatches, edges) is drawn here too,
// so that it is there at every zoom.

import { Class, Flag, type Picture } from './picture.js';
import { fills, ground, pixel, type Theme } from './palette.js';

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

/** columns draws the columns [c0, c1) of a port. */
function columns(p: Picture | null, v: Port, out: Uint32Array, c0: number, c1: number): void {
  const paper = pixel(ground[v.theme], ground[v.theme], 1);
  const checker = pixel(fills[v.theme].job, ground[v.theme], 0.18);
  if (c0 === 0 && c1 === v.width) out.fill(paper);
  else for (let y = 0; y < v.height; y++) out.fill(paper, y * v.width + c0, y * v.width + c1);
  const phase = phaseOf(v);
  const known0 = p ? Math.ceil((p.t0 - v.from) / v.perPixel) : v.width;
  const known1 = p ? Math.floor((p.t0 + p.width * p.step - v.from) / v.perPixel) : v.width;
  for (let x = c0; x < c1; x++) { // what is not fetched yet is not free
    if (x >= known0 && x < known1) continue;
    for (let y = 0; y < v.height; y++) if ((((x + phase) >> 3) + (y >> 3)) & 1) out[y * v.width + x] = checker;
  }
  if (!p) return;
  if (p.cells) {
    rasterCells(p, p.cells, v, out, c0, c1);
    return;
  }
  const tint = tints(v.theme);
  const first = v.from + (c0 - 1) * v.perPixel - p.t0; // nothing that ends before it or begins behind the other is drawn
  const last = v.from + c1 * v.perPixel - p.t0;
  const upper = v.top - 1 / v.rowHeight;
  const lower = v.top + (v.height + 1) / v.rowHeight;
  for (let i = 0; i < p.count; i++) { // bars are drawn over these
    if (p.class[i] === Class.outage && p.flags[i]! & Flag.openStart && (v.mask === null || v.mask[i] !== 0)) fade(p, i, v, tint, out, c0, c1, phase);
  }
  const thin = v.rowHeight < 2; // then most bars have a row of pixels and no inside
  for (let i = 0; i < p.count; i++) {
    const start = p.start[i]!;
    if (start >= last || start + p.length[i]! < first || p.first[i]! > lower || p.first[i]! + p.size[i]! < upper) continue;
    if (v.mask !== null && v.mask[i] === 0) continue;
    if (thin && p.size[i] === 1 && (p.flags[i]! & Flag.held) === 0) {
      thread(p, i, v, tint, out, c0, c1, phase);
      continue;
    }
    const b = boxOf(p, i, v);
    if (b && b.x0 < c1 && b.x1 > c0) bar(b, p.class[i]!, p.flags[i]!, v, tint, out, c0, c1, phase);
  }
}

/** reach is how many pixels before its first one an outage fades out whose beginning is not known. */
const reach = 24;

/** fade draws that an outage began before it was first seen: the fewer points the earlier. */
function fade(p: Picture, i: number, v: Port, tint: Tint, out: Uint32Array, c0: number, c1: number, phase: number): void {
  const b = boxOf(p, i, { ...v, width: v.width + reach }); // also one that begins to the right of the port
  if (!b) return;
  const x0 = Math.max(c0, b.left - reach);
  const x1 = Math.min(c1, b.left);
  const color = tint.full[Class.outage]!;
  for (let y = b.y0; y < b.y1; y++) {
    for (let x = x0; x < x1; x++) {
      if (((((x + phase) * 5 + y * 3) & 7) * reach) / 8 < reach - (b.left - x) && out[y * v.width + x] === tint.paper) out[y * v.width + x] = color;
    }
  }
}

/** thread draws a bar of one PE whose row is less than two pixels: what boxOf and bar do together, for the many of them. */
function thread(p: Picture, i: number, v: Port, tint: Tint, out: Uint32Array, c0: number, c1: number, phase: number): void {
  const left = (p.t0 + p.start[i]! - v.from) / v.perPixel;
  const from = Math.floor(left);
  let to = Math.max(from + 1, Math.floor(left + p.length[i]! / v.perPixel));
  if (to - from >= 4) to--;
  const x0 = from < c0 ? c0 : from;
  const x1 = to > c1 ? c1 : to;
  if (x0 >= x1) return;
  const top = (p.first[i]! - v.top) * v.rowHeight;
  let y0 = Math.round(top);
  let y1 = Math.max(y0 + 1, Math.round(top + v.rowHeight));
  if (y0 < 0) y0 = 0;
  if (y1 > v.height) y1 = v.height;
  const kind = p.class[i]!;
  const flags = p.flags[i]!;
  const color = (flags & Flag.over ? tint.pale : tint.full)[kind === Class.promise && flags & Flag.mine ? 5 : kind]!;
  for (let y = y0; y < y1; y++) {
    const row = y * v.width;
    const end = row + x1;
    if (kind === Class.degraded) for (let at = row + x0, n = x0 + phase + y; at < end; at++, n++) out[at] = (n & 7) < 2 ? tint.paper : color;
    else if (kind === Class.outage) for (let at = row + x0, n = x0 + phase; at < end; at++, n++) out[at] = ((n + y) & 7) === 0 || ((n - y) & 7) === 0 ? tint.paper : color;
    else for (let at = row + x0; at < end; at++) out[at] = color;
  }
}

/** phaseOf is where the patterns of a port begin: they move with what they fill. */
const phaseOf = (v: Port) => (Math.round(v.from / v.perPixel) % 16 + 16) % 16;

interface Tint {
  full: number[]; // by class; 5 is one's own
  pale: number[]; // of what is over
  paper: number;
}

function tints(theme: Theme): Tint {
  const f = fills[theme];
  const list = [ground[theme], f.promise, f.job, f.degraded, f.outage, f.mine];
  const shade = (part: number) => list.map((c) => pixel(c, ground[theme], part));
  return { full: shade(1), pale: shade(0.4), paper: pixel(ground[theme], ground[theme], 1) };
}

function bar(b: Box, kind: number, flags: number, v: Port, tint: Tint, out: Uint32Array, c0: number, c1: number, phase: number): void {
  const hue = kind === Class.promise && flags & Flag.mine ? 5 : kind;
  const color = (flags & Flag.over ? tint.pale : tint.full)[hue]!;
  const tall = b.y1 - b.y0 >= 5;
  const hollow = (flags & Flag.held) !== 0;
  const x0 = Math.max(b.x0, c0);
  const x1 = Math.min(b.x1, c1);
  for (let y = b.y0; y < b.y1; y++) {
    const row = y * v.width;
    const edge = y === b.y0 || y === b.y1 - 1;
    if (hollow) {
      for (let x = x0; x < x1; x++) {
        const rim = edge || x === b.left || x === b.right - 1;
        out[row + x] = rim ? (((x + phase + y) & 7) < 5 ? color : tint.paper) : tint.paper;
      }
      continue;
    }
    out.fill(color, row + x0, row + x1);
    if (kind === Class.degraded) {
      for (let x = x0; x < x1; x++) if (((x + phase + y) & 7) < 2) out[row + x] = tint.paper;
    } else if (kind === Class.outage) {
      for (let x = x0; x < x1; x++) if (((x + phase + y) & 7) === 0 || ((x + phase - y) & 7) === 0) out[row + x] = tint.paper;
    }
    if (tall && flags & Flag.provisional && y === b.y1 - 1) {
      for (let x = x0; x < x1; x++) if ((x + phase) & 2) out[row + x] = tint.paper;
    }
  }
  const notch = b.left + 4; // behind a thick left edge
  if (flags & Flag.active && tall && !hollow && b.right - b.left >= 8 && notch >= x0 && notch < x1) {
    for (let y = b.y0 + 1; y < b.y1 - 1; y++) out[y * v.width + notch] = tint.paper;
  }
}

function rasterCells(p: Picture, cells: Uint8Array, v: Port, out: Uint32Array, c0: number, c1: number): void {
  const f = fills[v.theme];
  const list = [ground[v.theme], p.own ? f.mine : f.promise, f.job, f.degraded, f.outage];
  const shade = new Uint32Array(256);
  for (let i = 0; i < 256; i++) shade[i] = pixel(list[Math.min(4, i >> 4)]!, ground[v.theme], (i & 15) / 15);
  const buckets = new Int32Array(c1 - c0);
  for (let x = c0; x < c1; x++) {
    const bucket = Math.floor((v.from + (x + 0.5) * v.perPixel - p.t0) / p.step);
    buckets[x - c0] = bucket < 0 || bucket >= p.width ? -1 : bucket;
  }
  let drawn = -1; // the row of pixels above and its group: several rows of pixels show one
  let above = -1;
  for (let y = 0; y < v.height; y++) {
    const group = Math.floor((v.top + (y + 0.5) / v.rowHeight - p.lo) / p.group);
    if (group < 0 || group >= p.height) continue;
    if (group === above && c0 === 0 && c1 === v.width && known(p, v)) {
      out.copyWithin(y * v.width, drawn * v.width, (drawn + 1) * v.width);
      continue;
    }
    for (let x = c0; x < c1; x++) {
      const bucket = buckets[x - c0]!;
      if (bucket < 0) continue;
      const cell = cells[group * p.width + bucket]!;
      if (cell !== 0) out[y * v.width + x] = shade[cell]!;
    }
    above = group;
    drawn = y;
  }
}

/** known reports whether a picture has all of a port, so that no row has a checkerboard of its own. */
const known = (p: Picture, v: Port) => p.t0 <= v.from && p.t0 + p.width * p.step >= v.from + v.width * v.perPixel;

/** hit returns the index of the bar at a point, of several the last drawn; -1 if there is none. */
export function hit(p: Picture, v: Port, x: number, y: number): number {
  for (let i = p.count - 1; i >= 0; i--) {
    if (!shown(p, i, v)) continue;
    const b = boxOf(p, i, v);
    if (b && x >= b.x0 && x < b.x1 && y >= b.y0 && y < b.y1) return i;
  }
  return -1;
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
