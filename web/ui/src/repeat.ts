// How what is asked for repeats, as a form says it: what was understood, and what is wrong. Pure.

import { parseLength, parseStarts, parseTime, type Repetition, spoken, stampOf } from './grammar.js';

/** RepeatForm is what stands in the fields. */
export interface RepeatForm { repeat: string; times: string; until: string; except: string; add: string; ahead: string; least: string; window: string; hold: string }

/** usualRepeat is what stands there at first. */
export const usualRepeat: RepeatForm = { repeat: 'every weekday 09:00', times: '5', until: '', except: '', add: '', ahead: '', least: '', window: '', hold: '' };

type Fault = keyof RepeatForm | 'short' | 'endless';

export const mostOccurrences = 4000; // of a series, as the service has it

const whole = (t: string) => (/^\d{1,4}$/.test(t.trim()) && Number(t) >= 1 && Number(t) <= mostOccurrences ? Number(t) : null);

/** given reads a field that may be empty. */
const given = <T>(t: string, read: (t: string) => T | null): T | null | undefined => (t.trim() === '' ? undefined : read(t));

/**
 * readRepeat reads the fields, for what lasts at least so long, if that is known. The repetition is null if anything is wrong. Times
 * and the latest start are of the rule, so without one they say nothing. What is promised so far ahead needs no end.
 */
export function readRepeat(f: RepeatForm, now: number, zone: string, shortest: number | null): { repetition: Repetition | null; until: number | null | undefined; wrong: Set<Fault> } {
  const rule = f.repeat.trim();
  const times = given(f.times, whole);
  const least = given(f.least, whole);
  const until = given(f.until, (t) => parseTime(t, now, zone));
  const ahead = given(f.ahead, parseLength);
  const window = given(f.window, parseLength);
  const hold = given(f.hold, parseLength);
  const except = given(f.except, (t) => parseStarts(t, true));
  const add = given(f.add, (t) => parseStarts(t, false));
  const faults: Record<Fault, boolean> = {
    repeat: rule === '' && add === undefined, times: times === null, until: until === null, except: except === null, add: add === null, ahead: ahead === null, least: least === null, window: window === null, hold: hold === null,
    short: typeof window === 'number' && shortest !== null && window < shortest, endless: rule !== '' && times === undefined && until === undefined && ahead === undefined && !/COUNT=|UNTIL=/i.test(rule),
  };
  const wrong = new Set((Object.keys(faults) as Fault[]).filter((name) => faults[name]));
  const repetition: Repetition = {
    ...(rule && { repeat: rule, ...(times && { times }), ...(until && { until: stampOf(until) }) }), time_zone: zone, ...(except && { except }), ...(add && { add }),
    ...(ahead && { ahead }), ...(least && { at_least: least }), ...(window && { window }), ...(hold && { hold: spoken(hold) }),
  };
  return { repetition: wrong.size > 0 ? null : repetition, until, wrong };
}
