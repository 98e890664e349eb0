// When a request would be promised in a pool, and what stands against the other starts: what
// the service tells of it, in words.

import { length, time } from './clock.js';
import { text } from './text.js';

export interface Refusal { reason: string; detail: string; site?: string; pool?: string; wanted: number; nearest?: { npe: number; duration: number; start: string } }
export interface Stretch { first: string; last: string; end?: string; refusal?: Refusal }
export interface Starts { site: string; pool: string; npe: number; duration: number; refusal?: Refusal; stretches: Stretch[] }

/** Lane is one shape's starts with times as numbers, asked about up to a time. What it does not reach is not known. */
export interface Lane { npe: number; duration: number; to: number; refusal?: Refusal; stretches: { first: number; last: number; refusal?: Refusal }[] }

export const lanesOf = (list: Starts[], to: number): Lane[] => list.map((s) => ({
  npe: s.npe, duration: s.duration, to, refusal: s.refusal, stretches: s.stretches.map((x) => ({ first: Date.parse(x.first) / 1000, last: Date.parse(x.last) / 1000, refusal: x.refusal })),
}));

/** stretchAt returns the index of the stretch of a lane with a start; -1 if that is not known. Cost: O(log n). */
export function stretchAt(l: Lane, at: number): number {
  let [low, high] = [0, l.stretches.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (l.stretches[middle]!.last < at) low = middle + 1;
    else high = middle;
  }
  return low < l.stretches.length && l.stretches[low]!.first <= at ? low : -1;
}

/** why says what stands against a lane's starts: what is short, and by how much. */
export function why(l: Lane, no: Refusal): string {
  const n = no.nearest;
  if (no.reason === 'no_capacity' && n) return text.book.short(l.npe, n.npe, length(l.duration));
  return no.detail;
}

/** refused says why a request was refused, with times in a zone. */
export function refused(no: Refusal, zone: string): string {
  const n = no.nearest;
  if (no.reason !== 'no_capacity' || !n) return no.detail;
  return `${no.site ? `${no.site}, ${no.pool}: ` : ''}${text.book.short(no.wanted, n.npe, length(n.duration))}${n.npe > 0 ? `, ${text.book.fromOn(`${time(Date.parse(n.start) / 1000, zone)} ${zone}`)}` : ''}`;
}

/** said says in a sentence whether a lane's start at a time is possible. */
export function said(l: Lane, at: number, zone: string): string {
  const shape = `${text.pes(l.npe)} for ${length(l.duration)}`;
  if (l.refusal) return text.book.never(shape, why(l, l.refusal));
  const s = l.stretches[stretchAt(l, at)];
  if (!s) return text.book.unknown;
  const last = s.last >= l.to ? '' : time(s.last, zone); // what was not asked about may be the same
  return s.refusal ? text.book.no(shape, time(at, zone), why(l, s.refusal), last) : text.book.yes(shape, time(at, zone), last);
}
