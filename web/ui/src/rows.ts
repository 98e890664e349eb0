// The bars of a picture by rows, so that what is not in view is not looked at. Made once for a
// picture, and kept as long as it is. Pure.

import { Class, Flag, type Picture } from './picture.js';

/** Rows are runs of bars that begin on one PE, each with later and later starts: those of a PE, in the order in which the service sends bars. */
export interface Rows {
  from: Uint32Array; // the first bar of each run; one more than there are runs
  pe: Uint32Array;
  ascending: boolean; // each run is of a later PE than the one before
  most: number; // PEs of the largest bar
  latest: Float64Array; // of each bar: the latest end in its run up to it
  apart: Uint8Array; // of each run: its bars are of one PE, hide what is below, and one is over when the next begins
  tones: Uint16Array; // of each bar
  faded: number[]; // outages whose beginning is not known
}

/** own is the row of one's own promises behind the classes. */
export const own = 5;

/** toneOf returns where the pixels of a bar begin in the inks of a theme. */
export const toneOf = (kind: number, flags: number) => ((((kind === Class.promise && flags & Flag.mine ? own : kind) << 1) | (flags & Flag.over ? 1 : 0)) << 6);

const kept = new WeakMap<Picture, Rows>();

/** rowsOf returns the rows of a picture. */
export function rowsOf(p: Picture): Rows {
  let rows = kept.get(p);
  if (!rows) kept.set(p, (rows = arrange(p)));
  return rows;
}

function arrange(p: Picture): Rows {
  const { count, start, length, first, size, flags } = p;
  const from: number[] = [];
  const pe: number[] = [];
  const apart: number[] = [];
  const faded: number[] = [];
  const latest = new Float64Array(count);
  const tones = new Uint16Array(count);
  let ascending = true;
  let most = 0;
  for (let i = 0; i < count; i++) {
    const end = start[i]! + length[i]!;
    const run = pe.length - 1;
    tones[i] = toneOf(p.class[i]!, flags[i]!);
    if (i > 0 && first[i] === first[i - 1] && start[i]! >= start[i - 1]!) {
      if (start[i]! < latest[i - 1]!) apart[run] = 0;
      latest[i] = Math.max(latest[i - 1]!, end);
    } else {
      if (i > 0 && first[i]! <= pe[run]!) ascending = false;
      from.push(i);
      pe.push(first[i]!);
      apart.push(1);
      latest[i] = end;
    }
    if (size[i] !== 1 || p.class[i] === Class.free || flags[i]! & (Flag.held | Flag.announced)) apart[apart.length - 1] = 0;
    if (size[i]! > most) most = size[i]!;
    if (p.class[i] === Class.outage && flags[i]! & Flag.openStart) faded.push(i);
  }
  from.push(count);
  return { from: Uint32Array.from(from), pe: Uint32Array.from(pe), ascending, most, latest, apart: Uint8Array.from(apart), tones, faded };
}

/**
 * eachRun calls visit with stretches of bars [i0, i1), in their order, and the run that each is of. They hold all bars that
 * touch PEs from lo to hi, begin before until and do not end before since, and some others.
 */
export function eachRun(p: Picture, since: number, until: number, lo: number, hi: number, visit: (i0: number, i1: number, run: number) => void): void {
  const r = rowsOf(p);
  const runs = r.pe.length;
  let run = r.ascending ? firstWhere(0, runs, (k) => r.pe[k]! + r.most >= lo) : 0;
  for (; run < runs; run++) {
    if (r.pe[run]! > hi) {
      if (r.ascending) return;
      continue;
    }
    const end = r.from[run + 1]!;
    const i0 = lowest(r.latest, r.from[run]!, end, since);
    const i1 = lowest(p.start, i0, end, until);
    if (i0 < i1) visit(i0, i1, run);
  }
}

/** lowest returns the first index in [i, end) of an ascending list with at least some value, else end. */
export function lowest(list: Float64Array | Int32Array, i: number, end: number, value: number): number {
  while (i < end) {
    const middle = (i + end) >>> 1;
    if (list[middle]! < value) i = middle + 1;
    else end = middle;
  }
  return i;
}

function firstWhere(i: number, end: number, is: (k: number) => boolean): number {
  while (i < end) {
    const middle = (i + end) >>> 1;
    if (is(middle)) end = middle;
    else i = middle + 1;
  }
  return i;
}
