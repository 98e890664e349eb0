// What is told about requests that repeat: their forms, rules in words, commands. Pure.

import { quoted } from './grammar.js';
import { at, over, type Place } from './life.js';
import type { Refusal } from './starts.js';

export interface Offer extends Place { id: string; difference: string; start: string; end: string; npe: number }

export interface Occurrence extends Place {
  number: number; id?: string; state?: string; expires?: string; ready: string; deadline: string; parts?: Place[]; shift?: string; note?: string; reason?: string; refusal?: Refusal; offers?: Offer[];
}

export interface Series {
  id: string; name?: string; user?: string; repeat?: string; time_zone: string; at_least: number; decision: string; created: string; count: number; live: number; occurrences?: Occurrence[];
}

export interface SeriesAnswer { decision: string; series: Series }

/** seriesOf returns the id of the series that a reservation would be an occurrence of, by its id. */
export const seriesOf = (id: string) => /^(.+)\.\d+$/.exec(id)?.[1] ?? '';

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
