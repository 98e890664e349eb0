// Times and lengths of time as people type them: what the command line reads (internal/hpctime,
// with which test/time-vectors.json is shared), and besides blanks and units written out. What
// was understood stands below the field, so nothing is guessed silently.

import { aheadOfUTC } from './clock.js';

const unit: Record<string, number> = { s: 1, sec: 1, second: 1, m: 60, min: 60, minute: 60, h: 3600, hr: 3600, hour: 3600, d: 86400, day: 86400, w: 604800, week: 604800 };

const pieces = /(\d{1,13})\s*(seconds?|sec|s|minutes?|min|m|hours?|hr|h|days?|d|weeks?|w)/g;

const limit = 2 ** 42; // seconds, as berth.TimeLimit

/** parseLength reads 2h30m, 90 min, 02:30:00, 1-02:30:00, 1-12 or PT2H30M; a number alone is refused, since its unit is unknown. null if it is no length. */
export function parseLength(text: string): number | null {
  const n = anyLength(text.trim());
  return n !== null && n > 0 ? n : null;
}

/** anyLength reads a length of time, which may be 0. */
function anyLength(text: string): number | null {
  const clock = /^(?:(\d{1,13})-)?(\d{1,13})(?::(\d\d))?(?::(\d\d))?$/.exec(text);
  if (clock) {
    const days = clock[1];
    const [h, m, s] = [clock[2]!, clock[3] ?? '0', clock[4] ?? '0'].map(Number) as [number, number, number];
    if (m > 59 || s > 59 || (days === undefined ? clock[4] === undefined : h > 23 || clock[2]!.length > 2)) return null;
    return within(Number(days ?? 0) * 86400 + h * 3600 + m * 60 + s);
  }
  const iso = /^P(?:(\d{1,13})W|(?:(\d{1,13})D)?(?:T(?=\d)(?:(\d{1,13})H)?(?:(\d{1,13})M)?(?:(\d{1,13})S)?)?)$/.exec(text);
  if (iso) {
    const [w, d, h, m, s] = iso.slice(1).map((n) => Number(n ?? 0)) as [number, number, number, number, number];
    return text === 'P' ? null : within(w * 604800 + d * 86400 + h * 3600 + m * 60 + s);
  }
  const t = text.toLowerCase();
  if (t === '' || t.replace(pieces, '').trim() !== '') return null;
  let sum = 0;
  let last = Infinity;
  for (const p of t.matchAll(pieces)) {
    const u = unit[p[2]!] ?? unit[p[2]!.replace(/s$/, '')]!;
    if (u >= last) return null; // 30m2h is a slip
    last = u;
    sum += Number(p[1]) * u;
  }
  return within(sum);
}

const within = (n: number) => (n < limit ? n : null);

const words: Record<string, number> = { midnight: 0, noon: 12 * 3600, teatime: 16 * 3600 };

/** clockTime reads 18:00, 18:00:30 or noon as seconds of a day. */
function clockTime(text: string): number | null {
  if (text in words) return words[text]!;
  const m = /^(\d{1,2}):(\d\d)(?::(\d\d))?$/.exec(text);
  if (!m) return null;
  const [h, min, s] = [Number(m[1]), Number(m[2]), Number(m[3] ?? 0)];
  return h > 23 || min > 59 || s > 59 ? null : h * 3600 + min * 60 + s;
}

/** resolve returns when the clocks of a zone show what they show in UTC at a time; null if they never do, or twice, because they are put forward or back. */
function resolve(shown: number, zone: string): number | null {
  const found = new Set<number>();
  for (const around of [-86400, 86400]) {
    const offset = aheadOfUTC(shown + around, zone);
    if (aheadOfUTC(shown - offset, zone) === offset) found.add(shown - offset);
  }
  const [at] = found;
  return found.size === 1 ? inYears(at!) : null;
}

const inYears = (at: number) => (at >= 0 && at < Date.parse('9999-01-01T00:00:00Z') / 1000 ? at : null);

/** day reads 2026-11-23 as the second in UTC at which that day begins there. */
function day(text: string): number | null {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text + 'T00:00:00Z') / 1000 : NaN;
  return Number.isFinite(at) && new Date(at * 1000).toISOString().slice(0, 10) === text ? at : null;
}

/** parseTime reads now, now+2h30m, 18:00 (the next), noon, today or tomorrow 18:00, 2026-11-23 18:00 (in the zone) and RFC 3339. null if it is no time, or one that comes twice or never. */
export function parseTime(text: string, now: number, zone: string): number | null {
  const t = text.trim();
  const by = /^now\s*(?:([+-])\s*(.+))?$/i.exec(t);
  if (by) {
    const length = by[2] === undefined ? 0 : anyLength(by[2]);
    return length === null ? null : inYears(Math.floor(now) + (by[1] === '-' ? -length : length));
  }
  const zoned = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?|\d\d:\d\d)(Z|[+-]\d\d:\d\d)$/.exec(t);
  if (zoned) {
    const at = Date.parse(`${zoned[1]}T${zoned[2]}${zoned[3]}`) / 1000;
    return Number.isFinite(at) && day(zoned[1]!) !== null ? inYears(Math.floor(at)) : null;
  }
  const here = Math.floor(now + aheadOfUTC(now, zone));
  const today = here - (((here % 86400) + 86400) % 86400);
  const clock = clockTime(t.toLowerCase());
  if (clock !== null) {
    const at = resolve(today + clock, zone);
    return at !== null && at <= now ? resolve(today + 86400 + clock, zone) : at;
  }
  const [, date, rest] = /^(today|tomorrow|\d{4}-\d\d-\d\d)(?:[T ]\s*(\S+))?$/i.exec(t) ?? [];
  if (date === undefined) return null;
  const begin = /^to/i.test(date) ? today + (date.length > 5 ? 86400 : 0) : day(date);
  const shown = rest === undefined ? 0 : clockTime(rest.toLowerCase());
  return begin === null || shown === null ? null : resolve(begin + shown, zone);
}

const start = /^(\d{4}-\d\d-\d\d)(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?|T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:Z|[+-]\d\d:\d\d))?$/;

/** parseStarts reads times with commas between, by the clock of a zone that is said elsewhere, or as RFC 3339, and days where these are taken too. null if one of them is none. */
export function parseStarts(text: string, days: boolean): string[] | null {
  const list = text.split(',').map((t) => t.trim()).filter((t) => t !== '');
  const right = (t: string) => {
    const of = start.exec(t)?.[1];
    return of !== undefined && day(of) !== null && (days || t !== of);
  };
  return list.length > 0 && list.every(right) ? list : null;
}

/** stampOf writes a time as the API and the command line read it. */
export const stampOf = (at: number) => new Date(Math.round(at) * 1000).toISOString().slice(0, 19) + 'Z';

/** spoken writes a length as parseLength reads it. */
export function spoken(seconds: number): string {
  let left = Math.round(seconds);
  let text = '';
  for (const [u, n] of [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]] as const) {
    const k = Math.floor(left / n);
    if (k > 0) text += k + u;
    left -= k * n;
  }
  return text || '0s';
}

export interface Variant { npe: number; duration: number }

/** parseVariants reads 64x1h, 32x2h as the command line does: PEs times a length each. null if one of them is none. */
export function parseVariants(text: string): Variant[] | null {
  const list: Variant[] = [];
  for (const part of text.split(',')) {
    const m = /^\s*(\d{1,7})\s*[x×]\s*(.+)$/i.exec(part);
    const duration = m ? parseLength(m[2]!) : null;
    if (!m || duration === null || Number(m[1]) === 0) return null;
    list.push({ npe: Number(m[1]), duration });
  }
  return list;
}

/** isWord reports whether a site could have an account or a QOS of that name. */
export const isWord = (t: string) => /^[A-Za-z0-9._-]{1,64}$/.test(t);

/** quoted writes a word so that a shell takes it as it is. */
export const quoted = (t: string) => (/^[\w.,:/@%+=-]+$/.test(t) ? t : `'${t.replaceAll("'", "'\\''")}'`);

/** Repetition is how a request repeats, as the API takes it. */
export interface Repetition { repeat?: string; time_zone: string; times?: number; until?: string; except?: string[]; add?: string[]; at_least?: number; ahead?: number; window?: number; hold?: string }

/** repeatFlags is the same on the command line. */
export const repeatFlags = (r: Repetition) =>
  [
    r.repeat && `--repeat ${quoted(r.repeat)}`, `--tz ${quoted(r.time_zone)}`, r.times && `--times ${r.times}`, r.until && `--until ${r.until}`, r.except && `--except ${quoted(r.except.join())}`, r.add && `--add ${quoted(r.add.join())}`,
    r.ahead && `--ahead ${spoken(r.ahead)}`, r.window && `--within ${spoken(r.window)}`, r.at_least && `--at-least ${r.at_least}`, r.hold && `--hold=${r.hold}`,
  ].filter(Boolean).join(' ');
