// Which bars of a picture are shown.

import type { Rows } from './api.js';
import { Class, Flag, type Picture } from './picture.js';

/** states are what bars can be told apart by, in the order of the menu. */
export const states = ['promise', 'held', 'running', 'job', 'degraded', 'outage', 'over', 'provisional'] as const;
export type State = (typeof states)[number];

/** has reports whether a bar is in a state. */
function has(p: Picture, i: number, state: State): boolean {
  const f = p.flags[i]!;
  switch (state) {
    case 'promise': return p.class[i] === Class.promise && (f & (Flag.held | Flag.over)) === 0;
    case 'held': return (f & Flag.held) !== 0;
    case 'running': return (f & Flag.active) !== 0;
    case 'job': return p.class[i] === Class.job;
    case 'degraded': return p.class[i] === Class.degraded;
    case 'outage': return p.class[i] === Class.outage;
    case 'over': return (f & Flag.over) !== 0;
    case 'provisional': return (f & Flag.provisional) !== 0;
  }
}

export interface Filter {
  owner: '' | 'mine' | 'others';
  states: State[]; // none is all
  words: string; // in names of nodes, pools, users or promises
}

/** filters reports whether a filter leaves anything out. */
export const filters = (f: Filter) => f.owner !== '' || f.states.length > 0 || f.words !== '';

/** queryOf returns a filter as the service takes it, to leave bars out before it makes shades of them. */
export function queryOf(f: Filter): string {
  const q = [];
  if (f.owner !== '') q.push(`owner=${f.owner}`);
  if (f.states.length > 0) q.push(`state=${f.states.join(',')}`);
  if (f.words.trim() !== '') q.push(`name=${encodeURIComponent(f.words.trim())}`);
  return q.map((part) => '&' + part).join('');
}

/** Fetched is how a picture was asked for: the filter whose bars it has, '' for all, and whether they came as shades. */
export interface Fetched { filter: string; shades: boolean }

/**
 * filterToSend returns which filter the service has to apply, if a window is asked for, and whether what is there
 * will not do. Single bars are filtered here, at once; shades are not, and neither is what is left out already.
 */
export function filterToSend(was: Fetched | null, wanted: string): { send: string; again: boolean } {
  if (!was || (was.filter === '' && !was.shades)) return { send: '', again: false };
  return { send: wanted, again: was.filter !== wanted };
}

/** stripes returns the PEs of the nodes whose name has a text, as [first, behind the last); null if the text is no part of any. */
export function stripes(rows: Rows | null, words: string): [number, number][] {
  const want = words.trim().toLowerCase();
  const list: [number, number][] = [];
  for (const r of rows?.rows ?? []) {
    if (!r.name.toLowerCase().includes(want)) continue;
    const last = list[list.length - 1];
    if (last && last[1] === r.first) last[1] = r.first + r.pes;
    else list.push([r.first, r.first + r.pes]);
  }
  return list;
}

const nothing: ReadonlySet<number> = new Set();

/**
 * maskOf returns 1 for each bar that is shown. What is out of use stays beside one's own or
 * others', since it says why nothing else is there. Words are looked for in the names of
 * nodes and in the number of a bar; a pool whose name has them is shown whole. known are the bars whose
 * user, name or id has them, as far as the service tells whose they are.
 */
export function maskOf(p: Picture, rows: Rows | null, pool: string, filter: Filter, known: ReadonlySet<number> = nothing): Uint8Array | null {
  if (!filters(filter) || p.cells) return null;
  const words = filter.words.trim().toLowerCase();
  const named = words !== '' && !pool.toLowerCase().includes(words);
  const nodes = named ? stripes(rows, words) : [];
  const mask = new Uint8Array(p.count);
  for (let i = 0; i < p.count; i++) {
    const mine = (p.flags[i]! & Flag.mine) !== 0;
    if (filter.owner !== '' && p.class[i] !== Class.outage && mine !== (filter.owner === 'mine')) continue;
    if (filter.states.length > 0 && !filter.states.some((s) => has(p, i, s))) continue;
    if (named && String(p.number[i]) !== words && !known.has(p.number[i]!) && !nodes.some(([a, b]) => p.first[i]! < b && p.first[i]! + p.size[i]! > a)) continue;
    mask[i] = 1;
  }
  return mask;
}
