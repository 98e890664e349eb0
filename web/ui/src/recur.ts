// What is told about requests that repeat: their forms, rules in words, commands. Pure.

import { parseLength, quoted, spoken } from './grammar.js';
import { at, over, type Place } from './life.js';
import type { Refusal } from './starts.js';

export interface Offer extends Place { id: string; difference: string; start: string; end: string; npe: number }

export interface Occurrence extends Place {
  number: number; id?: string; state?: string; expires?: string; ready: string; deadline: string; parts?: Place[]; shift?: string; note?: string; reason?: string; refusal?: Refusal; offers?: Offer[];
}

export interface Series {
  id: string; name?: string; user?: string; repeat?: string; time_zone: string; at_least: number; decision: string; created: string; count: number; live: number; occurrences?: Occurrence[];
  ahead?: number; open?: boolean; promised_until?: string; prolonged?: string; again?: string; ends?: string; skipped?: number[]; moved?: { from: number; to: number; by: number }[];
}

export interface SeriesAnswer { decision: string; series: Series; refusals?: { number: number; reason: string; refusal: Refusal }[] }

/** alive are the occurrences of a series with a reservation that is not over, in order. */
export const alive = (s: Series) => (s.occurrences ?? []).filter((o) => o.id && !over(o.state ?? ''));

/** nextOf returns the occurrence that comes or runs next. */
export const nextOf = <T extends { start?: string; state?: string }>(list: T[]): T | undefined =>
  list.filter((o) => o.start && !over(o.state ?? '')).sort((a, b) => at(a.start!) - at(b.start!))[0];

const days: Record<string, string> = { MO: 'Monday', TU: 'Tuesday', WE: 'Wednesday', TH: 'Thursday', FR: 'Friday', SA: 'Saturday', SU: 'Sunday' };
const units: Record<string, string> = { HOURLY: 'hour', DAILY: 'day', WEEKLY: 'week', MONTHLY: 'month', YEARLY: 'year' };
const places: Record<string, string> = { '1': 'first', '2': 'second', '3': 'third', '4': 'fourth', '5': 'fifth', '-1': 'last', '-2': 'last but one' };
const listed = (list: string[]) => (list.length > 1 ? `${list.slice(0, -1).join(', ')} and ${list.at(-1)}` : list.join());

/** inWords says how something repeats. A rule that is given in words is those; an RRULE with parts that are not told here is itself. */
export function inWords(rule: string): string {
  if (!/^RRULE:/i.test(rule)) return rule;
  const parts = new Map(rule.slice(6).toUpperCase().split(';').map((p) => p.split('=') as [string, string]));
  const take = (name: string) => {
    const value = parts.get(name);
    parts.delete(name);
    return value;
  };
  const unit = units[take('FREQ') ?? ''];
  const every = Number(take('INTERVAL') ?? '1');
  const byDay = take('BYDAY');
  const monthDays = take('BYMONTHDAY')?.split(',');
  const hours = take('BYHOUR')?.split(',');
  const minutes = take('BYMINUTE')?.split(',') ?? [];
  const times = take('COUNT');
  take('WKST');
  const until = /^(\d{4})(\d\d)(\d\d)/.exec(take('UNTIL') ?? '');
  if (!unit || parts.size > 0 || !(every > 0) || minutes.length > 1) return rule;
  let words = every === 1 ? `every ${unit}` : `every ${every} ${unit}s`;
  if (byDay === 'MO,TU,WE,TH,FR' && unit === 'week' && every === 1) words = 'every weekday';
  else if (byDay) {
    const on = byDay.split(',').map((d) => {
      const [, place, day] = /^([+-]?\d)?(\w\w)$/.exec(d) ?? [];
      const nth = place && places[place.replace('+', '')];
      return !day || !days[day] || (place && !nth) ? null : nth ? `the ${nth} ${days[day]}` : days[day]!;
    });
    if (on.includes(null)) return rule;
    words += ` on ${listed(on as string[])}`;
  }
  if (monthDays) words += ` on day ${listed(monthDays)}`;
  const minute = (minutes[0] ?? '0').padStart(2, '0');
  if (hours) words += ` at ${listed(hours.map((h) => `${h.padStart(2, '0')}:${minute}`))}`;
  else if (minutes.length > 0) words += ` at minute ${minutes[0]}`;
  if (times) words += `, ${times} times`;
  if (until) words += `, until ${until[1]}-${until[2]}-${until[3]}`;
  return words;
}

/** cancelLine is the command that gives occurrences back: one, those from one on, or all. */
export const cancelLine = (id: string, from?: number, to?: number) => (from === undefined ? `berth series cancel ${quoted(id)}` : from === to ? `berth series skip ${quoted(id)} ${from}` : `berth series cancel ${quoted(id)} --from ${from}`);

/** Way says which occurrences: from one to another; without from all, without to those after it too. */
export type Way = { from?: number; to?: number };

/** SeriesChange says what occurrences become: later by some seconds, or earlier, with other PEs or another duration. */
export interface SeriesChange extends Way { by?: number; npe?: number; duration?: number }

/** ChangeForm is what stands in the fields; what is empty stays. */
export interface ChangeForm { by: string; npe: string; duration: string }

/** readChange reads the fields. A time with a minus before it is earlier. The change is null if something is wrong or nothing is asked for. */
export function readChange(f: ChangeForm): { change: Omit<SeriesChange, 'from' | 'to'> | null; wrong: Set<keyof ChangeForm> } {
  const [, minus, length] = /^([-\u2212]?)(.*)$/s.exec(f.by.trim())!;
  const by = length === '' && minus === '' ? undefined : parseLength(length!);
  const npe = f.npe.trim() === '' ? undefined : /^\d{1,7}$/.test(f.npe.trim()) && Number(f.npe) > 0 ? Number(f.npe) : null;
  const duration = f.duration.trim() === '' ? undefined : parseLength(f.duration);
  const wrong = new Set((Object.entries({ by, npe, duration }) as [keyof ChangeForm, number | null | undefined][]).filter(([, v]) => v === null).map(([k]) => k));
  const change = { ...(by && { by: minus ? -by : by }), ...(npe && { npe }), ...(duration && { duration }) };
  return { change: wrong.size > 0 || Object.keys(change).length === 0 ? null : change, wrong };
}

/** changeSeriesLine is the command that changes occurrences. */
export const changeSeriesLine = (id: string, c: SeriesChange) =>
  [
    `berth series modify ${quoted(id)}`, c.from && `--from ${c.from}`, c.to && `--to ${c.to}`, c.by && (c.by > 0 ? `--later ${spoken(c.by)}` : `--earlier ${spoken(-c.by)}`), c.npe && `--npe ${c.npe}`, c.duration && `--duration ${spoken(c.duration)}`,
  ].filter(Boolean).join(' ');

/** readLater reads the number of an occurrence that is still to be asked for, of a series in which so many have had their turn. null if it is none. */
export const readLater = (text: string, count: number, most: number) => (/^\d{1,4}$/.test(text.trim()) && Number(text) > count && Number(text) <= most ? Number(text) : null);
