// Times and lengths of time as people type them, a part of what the command line reads. What
// was understood stands below the field, so nothing is guessed silently.

import { aheadOfUTC } from './clock.js';

const unit: Record<string, number> = { s: 1, sec: 1, second: 1, m: 60, min: 60, minute: 60, h: 3600, hour: 3600, d: 86400, day: 86400, w: 604800, week: 604800 };

const pieces = /(\d{1,9})\s*(seconds?|sec|s|minutes?|min|m|hours?|h|days?|d|weeks?|w)/g;

/** parseLength reads 2h30m, 90 min, 02:30:00 or 1-02:30:00; a number alone is refused, since nobody knows its unit. null if it is no length. */
export function parseLength(text: string): number | null {
  const t = text.trim().toLowerCase();
  const clock = /^(?:(\d{1,5})-)?(\d{1,5}):(\d\d):(\d\d)$/.exec(t);
  if (clock) {
    const [days, h, m, s] = [clock[1] ?? '0', clock[2]!, clock[3]!, clock[4]!].map(Number) as [number, number, number, number];
    if (m > 59 || s > 59 || (clock[1] !== undefined && h > 23)) return null;
    return positive(days * 86400 + h * 3600 + m * 60 + s);
  }
  if (t === '' || t.replace(pieces, '').trim() !== '') return null;
  let sum = 0;
  let last = Infinity;
  for (const p of t.matchAll(pieces)) {
    const u = unit[p[2]!] ?? unit[p[2]!.replace(/s$/, '')]!;
    if (u >= last) return null; // 30m2h is a slip
    last = u;
    sum += Number(p[1]) * u;
  }
  return positive(sum);
}

const positive = (n: number) => (n > 0 && n < 1e10 ? n : null);

/** parseTime reads now, now+2h30m, 18:00, today or tomorrow 18:00, 2026-11-23 18:00 (in the zone) and RFC 3339. null if it is no time. */
export function parseTime(text: string, now: number, zone: string): number | null {
  const t = text.trim();
  if (t === 'now') return Math.floor(now);
  const later = /^now\s*\+\s*(.+)$/i.exec(t);
  if (later) {
    const by = parseLength(later[1]!);
    return by === null ? null : Math.floor(now) + by;
  }
  if (/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)$/.test(t)) {
    const at = Date.parse(t.replace(' ', 'T')) / 1000;
    return Number.isFinite(at) ? at : null;
  }
  const m = /^(?:(today|tomorrow|\d{4}-\d\d-\d\d)[T ]\s*)?(\d{1,2}):(\d\d)$/i.exec(t);
  if (!m) return null;
  const [h, min] = [Number(m[2]), Number(m[3])];
  if (h > 23 || min > 59) return null;
  const wall = new Date((now + aheadOfUTC(now, zone)) * 1000);
  let day = Date.UTC(wall.getUTCFullYear(), wall.getUTCMonth(), wall.getUTCDate()) / 1000;
  if (m[1]?.toLowerCase() === 'tomorrow') day += 86400;
  else if (m[1] && m[1].toLowerCase() !== 'today') {
    day = Date.parse(m[1] + 'T00:00:00Z') / 1000;
    if (!Number.isFinite(day) || new Date(day * 1000).toISOString().slice(0, 10) !== m[1]) return null;
  }
  const at = day + h * 3600 + min * 60;
  const first = at - aheadOfUTC(at, zone);
  return at - aheadOfUTC(first, zone); // near a change of the clock the first is that of another hour
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
