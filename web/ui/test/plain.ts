// The plain rasteriser: every bar is looked at, in the order of the picture, and each pixel is worked out by itself. src/raster.ts must draw the same.

import { fills, ground, pixel, type Theme } from '../src/palette.js';
import { Class, Flag, type Picture } from '../src/picture.js';
import { boxOf, type Box, type Port } from '../src/raster.js';

/** plain draws a picture on an aligned port. */
export function plain(p: Picture | null, v: Port, out: Uint32Array): void {
  const [c0, c1] = [0, v.width];
  const paper = pixel(ground[v.theme], ground[v.theme], 1);
  const checker = pixel(fills[v.theme].job, ground[v.theme], 0.18);
  out.fill(paper);
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
  for (let i = 0; i < p.count; i++) {
    const start = p.start[i]!;
    if (start >= last || start + p.length[i]! < first || p.first[i]! > lower || p.first[i]! + p.size[i]! < upper) continue;
    if (v.mask !== null && v.mask[i] === 0) continue;
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
    if (kind === Class.outage && flags & Flag.announced) {
      for (let x = x0; x < x1; x++) {
        const line = ((x + phase + y) & 7) === 0 || ((x + phase - y) & 7) === 0;
        if (line || (tall && (edge || x === b.left || x === b.right - 1))) out[row + x] = color;
      }
      continue;
    }
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
  for (let y = 0; y < v.height; y++) {
    const group = Math.floor((v.top + (y + 0.5) / v.rowHeight - p.lo) / p.group);
    if (group < 0 || group >= p.height) continue;
    for (let x = c0; x < c1; x++) {
      const bucket = buckets[x - c0]!;
      if (bucket < 0) continue;
      const cell = cells[group * p.width + bucket]!;
      if (cell !== 0) out[y * v.width + x] = shade[cell]!;
    }
  }
}
