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
  mineOnly: boolean;
}

/** Box is where a bar is drawn: [x0, x1) × [y0, y1), clipped to the port. */
export interface Box {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
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
  return { x0: Math.max(0, x0), x1: Math.min(v.width, x1), y0: Math.max(0, y0), y1: Math.min(v.height, y1) };
}

/** shown reports whether a bar is drawn, whatever its place. */
export function shown(p: Picture, i: number, v: Port): boolean {
  return !v.mineOnly || (p.flags[i]! & Flag.mine) !== 0 || p.class[i] === Class.outage;
}

/** raster draws a picture. out has v.width * v.height pixels and is written whole. */
export function raster(p: Picture | null, v: Port, out: Uint32Array): void {
  const paper = pixel(ground[v.theme], ground[v.theme], 1);
  const checker = pixel(fills[v.theme].job, ground[v.theme], 0.18);
  out.fill(paper);
  const known0 = p ? Math.ceil((p.t0 - v.from) / v.perPixel) : v.width;
  const known1 = p ? Math.floor((p.t0 + p.width * p.step - v.from) / v.perPixel) : v.width;
  for (let x = 0; x < v.width; x++) { // what is not fetched yet is not free
    if (x >= known0 && x < known1) continue;
    for (let y = 0; y < v.height; y++) if (((x >> 3) + (y >> 3)) & 1) out[y * v.width + x] = checker;
  }
  if (!p) return;
  if (p.cells) {
    rasterCells(p, p.cells, v, out);
    return;
  }
  const tint = tints(v.theme);
  for (let i = 0; i < p.count; i++) {
    if (!shown(p, i, v)) continue;
    const b = boxOf(p, i, v);
    if (b) bar(b, p.class[i]!, p.flags[i]!, v, tint, out);
  }
}

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

function bar(b: Box, kind: number, flags: number, v: Port, tint: Tint, out: Uint32Array): void {
  const hue = kind === Class.promise && flags & Flag.mine ? 5 : kind;
  const color = (flags & Flag.over ? tint.pale : tint.full)[hue]!;
  const tall = b.y1 - b.y0 >= 5;
  const hollow = (flags & Flag.held) !== 0;
  for (let y = b.y0; y < b.y1; y++) {
    const row = y * v.width;
    const edge = y === b.y0 || y === b.y1 - 1;
    if (hollow) {
      for (let x = b.x0; x < b.x1; x++) {
        const rim = edge || x === b.x0 || x === b.x1 - 1;
        out[row + x] = rim ? (((x + y) & 7) < 5 ? color : tint.paper) : tint.paper;
      }
      continue;
    }
    out.fill(color, row + b.x0, row + b.x1);
    if (kind === Class.degraded) {
      for (let x = b.x0; x < b.x1; x++) if (((x + y) & 7) < 2) out[row + x] = tint.paper;
    } else if (kind === Class.outage) {
      for (let x = b.x0; x < b.x1; x++) if (((x + y) & 7) === 0 || ((x - y) & 7) === 0) out[row + x] = tint.paper;
    }
    if (tall && flags & Flag.provisional && y === b.y1 - 1) {
      for (let x = b.x0; x < b.x1; x++) if (x & 2) out[row + x] = tint.paper;
    }
  }
  if (flags & Flag.active && tall && !hollow && b.x1 - b.x0 >= 8) { // a notch behind a thick left edge
    for (let y = b.y0 + 1; y < b.y1 - 1; y++) out[y * v.width + b.x0 + 4] = tint.paper;
  }
}

function rasterCells(p: Picture, cells: Uint8Array, v: Port, out: Uint32Array): void {
  const f = fills[v.theme];
  const list = [ground[v.theme], f.promise, f.job, f.degraded, f.outage];
  const shade = new Uint32Array(256);
  for (let i = 0; i < 256; i++) shade[i] = pixel(list[Math.min(4, i >> 4)]!, ground[v.theme], (i & 15) / 15);
  for (let y = 0; y < v.height; y++) {
    const group = Math.floor((v.top + (y + 0.5) / v.rowHeight - p.lo) / p.group);
    if (group < 0 || group >= p.height) continue;
    for (let x = 0; x < v.width; x++) {
      const bucket = Math.floor((v.from + (x + 0.5) * v.perPixel - p.t0) / p.step);
      if (bucket < 0 || bucket >= p.width) continue;
      const cell = cells[group * p.width + bucket]!;
      if (cell !== 0) out[y * v.width + x] = shade[cell]!;
    }
  }
}

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
