// Times for people: one zone everywhere, named; 24 hours; ISO dates.

const formats = new Map<string, Intl.DateTimeFormat>(); // by zone: to make one takes longer than to draw a bar

/** parts of a time in a zone. */
function parts(at: number, zone: string): Record<string, string> {
  let f = formats.get(zone);
  if (!f) {
    f = new Intl.DateTimeFormat('en-CA', {
      timeZone: zone, hourCycle: 'h23', weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit',
    });
    formats.set(zone, f);
  }
  return Object.fromEntries(f.formatToParts(new Date(at * 1000)).map((p) => [p.type, p.value]));
}

/** date returns 2026-11-23. */
export const date = (at: number, zone: string) => {
  const p = parts(at, zone);
  return `${p.year}-${p.month}-${p.day}`;
};

/** time returns Mon 2026-11-23 18:00. */
export const time = (at: number, zone: string) => {
  const p = parts(at, zone);
  return `${p.weekday} ${p.year}-${p.month}-${p.day} ${p.hour}:${p.minute}`;
};

/** period returns Mon 2026-11-23 18:00 – 20:00, with the date of the end where it is another one. */
export const period = (start: number, end: number, zone: string) => `${time(start, zone)} – ${date(start, zone) === date(end, zone) ? hour(end, zone) : time(end, zone)}`;

export const hour = (at: number, zone: string) => {
  const p = parts(at, zone);
  return `${p.hour}:${p.minute}`;
};

const offsets = new Map<string, number>(); // by zone and minute: the marks of an axis are asked for with every frame

/** aheadOfUTC returns by how many seconds a zone is ahead of UTC at a time. */
export function aheadOfUTC(at: number, zone: string): number {
  const key = `${Math.floor(at / 60)} ${zone}`; // clocks are changed on whole minutes
  let ahead = offsets.get(key);
  if (ahead === undefined) {
    if (offsets.size >= 4096) offsets.clear();
    offsets.set(key, (ahead = askAhead(at, zone)));
  }
  return ahead;
}

function askAhead(at: number, zone: string): number {
  const p = parts(at, zone);
  const wall = Date.UTC(Number(p.year), Number(p.month) - 1, Number(p.day), Number(p.hour), Number(p.minute), Number(p.second)) / 1000;
  return wall - Math.floor(at);
}

const steps = [60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 2 * 86400, 7 * 86400, 14 * 86400, 28 * 86400, 91 * 86400, 365 * 86400];

export interface Tick {
  at: number;
  label: string;
  strong: boolean; // a day begins
}

/**
 * ticks returns the marks of an axis that are at least gap seconds apart, on round times of the
 * zone, so that a day of 23 or 25 hours is drawn as long as it is.
 */
export function ticks(from: number, to: number, gap: number, zone: string): Tick[] {
  const step = steps.find((s) => s >= gap) ?? steps[steps.length - 1]!;
  const list: Tick[] = [];
  let wall = Math.floor((from + aheadOfUTC(from, zone)) / step) * step;
  for (let n = 0; n < 500; n++, wall += step) {
    let at = wall - aheadOfUTC(wall, zone);
    at = wall - aheadOfUTC(at, zone); // near a change of the clock the first is that of another hour
    if (at < from) continue;
    if (at >= to) break;
    if (list.length > 0 && at <= list[list.length - 1]!.at) continue; // the hour that comes twice
    const shown = new Date((at + aheadOfUTC(at, zone)) * 1000).toISOString();
    const clock = shown.slice(11, 16);
    const midnight = clock === '00:00';
    list.push({ at, label: step >= 86400 || midnight ? shown.slice(0, 10) : clock, strong: midnight && step < 86400 });
  }
  return list;
}

/** length returns 2 h 30 min. */
export function length(seconds: number): string {
  const d = Math.floor(seconds / 86400);
  const h = Math.floor((seconds % 86400) / 3600);
  const m = Math.floor((seconds % 3600) / 60);
  const s = Math.floor(seconds % 60);
  const words = [d && `${d} d`, h && `${h} h`, m && `${m} min`, s && !d && !h && `${s} s`].filter(Boolean);
  return words.join(' ') || '0 s';
}
