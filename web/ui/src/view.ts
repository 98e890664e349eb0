// What of the harbour is looked at, as it stands in the address of the page, so that a link
// brings the same view back.

import { states, type Filter } from './filter.js';

export interface View extends Filter {
  site: string; // empty is all
  from: number; // seconds; behind now if following
  to: number;
  following: boolean; // relative to now
  zone: string; // an IANA name, or empty for the browser's
  rows: string; // "site/pool:PE" if the rows of a pool are tall and begin there; empty otherwise
  table: boolean;
  selected: string; // "site/number" or empty
}

export const normal: View = { site: '', from: -7200, to: 79200, following: true, zone: '', owner: '', states: [], words: '', rows: '', table: false, selected: '' };

const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

/** offset reads now, now+22h or now-90m. null if it is something else. */
export function offset(text: string): number | null {
  if (text === 'now') return 0;
  const m = /^now([+-])(\d{1,6})([smhdw])$/.exec(text);
  return m ? (m[1] === '-' ? -1 : 1) * Number(m[2]) * units[m[3]!]! : null;
}

/** relative writes what offset reads. */
export function relative(seconds: number): string {
  if (seconds === 0) return 'now';
  const sign = seconds < 0 ? '-' : '+';
  const n = Math.abs(Math.round(seconds));
  for (const unit of ['w', 'd', 'h', 'm']) if (n % units[unit]! === 0) return `now${sign}${n / units[unit]!}${unit}`;
  return `now${sign}${n}s`;
}

const instant = (text: string): number | null => {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z$/.test(text)) return null;
  const at = Date.parse(text) / 1000;
  return Number.isFinite(at) ? at : null;
};

const stamp = (at: number) => new Date(Math.round(at) * 1000).toISOString().slice(0, 19) + 'Z';

/** How much time a view may show: five minutes to ten years. */
export const least = 300;
export const most = 10 * 366 * 86400;

/** readView reads an address. Whatever in it makes no sense is as if it were not there; wrong names it. */
export function readView(search: string): { view: View; wrong: string[] } {
  const query = new URLSearchParams(search);
  const view = { ...normal };
  const wrong: string[] = [];
  view.site = query.get('site') ?? '';
  const owner = query.get('owner') ?? (query.get('mine') === '1' ? 'mine' : ''); // mine=1 is of older links
  if (owner === '' || owner === 'mine' || owner === 'others') view.owner = owner;
  else wrong.push('owner');
  const chosen = (query.get('state') ?? '').split(',').filter(Boolean);
  if (chosen.every((s) => (states as readonly string[]).includes(s))) view.states = states.filter((s) => chosen.includes(s));
  else wrong.push('state');
  view.words = (query.get('q') ?? '').slice(0, 200);
  const rows = query.get('rows') ?? '';
  if (rows === '' || /^.+\/.+:\d{1,7}(\.\d)?$/.test(rows)) view.rows = rows;
  else wrong.push('rows');
  view.table = query.get('table') === '1';
  const selected = query.get('sel') ?? '';
  if (selected === '' || /^.+\/\d{1,10}$/.test(selected)) view.selected = selected;
  else wrong.push('sel');
  const zone = query.get('tz') ?? '';
  if (zone !== '' && !isZone(zone)) wrong.push('tz');
  else view.zone = zone;
  const t = query.get('t');
  if (t !== null) {
    const [a, b, more] = t.split('..');
    const ends = more === undefined && a !== undefined && b !== undefined ? [offset(a), offset(b)] : [null, null];
    const fixed = more === undefined && a !== undefined && b !== undefined ? [instant(a), instant(b)] : [null, null];
    const span = (x: number, y: number) => y - x >= least && y - x <= most;
    if (ends[0] != null && ends[1] != null && span(ends[0], ends[1])) Object.assign(view, { from: ends[0], to: ends[1], following: true });
    else if (fixed[0] != null && fixed[1] != null && span(fixed[0], fixed[1])) Object.assign(view, { from: fixed[0], to: fixed[1], following: false });
    else wrong.push('t');
  }
  return { view, wrong };
}

/** writeView writes what readView reads, and nothing that is as usual. */
export function writeView(v: View): string {
  const query = new URLSearchParams();
  if (v.site) query.set('site', v.site);
  const t = v.following ? `${relative(v.from)}..${relative(v.to)}` : `${stamp(v.from)}..${stamp(v.to)}`;
  if (!v.following || v.from !== normal.from || v.to !== normal.to) query.set('t', t);
  if (v.zone) query.set('tz', v.zone);
  if (v.owner) query.set('owner', v.owner);
  if (v.states.length > 0) query.set('state', v.states.join(','));
  if (v.words) query.set('q', v.words);
  if (v.rows) query.set('rows', v.rows);
  if (v.table) query.set('table', '1');
  if (v.selected) query.set('sel', v.selected);
  const text = query.toString().replaceAll('%2F', '/').replaceAll('%3A', ':').replaceAll('%2C', ',');
  return text ? '?' + text : '';
}

export function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** frozen returns a view of the same times that does not move on with the clock, or one that does. */
export const frozen = (v: View, now: number): View => (v.following ? { ...v, following: false, from: Math.round(now + v.from), to: Math.round(now + v.to) } : v);
export const moving = (v: View, now: number): View => (v.following ? v : { ...v, following: true, from: Math.round((v.from - now) / 60) * 60, to: Math.round((v.to - now) / 60) * 60 });
