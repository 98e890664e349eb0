import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costOf } from '../src/costs.js';
import { parseStarts, repeatFlags } from '../src/grammar.js';
import { acting, addLine, bodyOf, changeLine, changeOf, hookState, isAddress, isMail, kinds, type Hook, type Wanted } from '../src/receivers.js';
import { readRepeat, usualRepeat } from '../src/repeat.js';
import { agentOf, called } from '../src/names.js';
import { alive, cancelLine, changeSeriesLine, inWords, nextOf, readChange, readLater, type Series } from '../src/recur.js';

test('rules are told in words, and those that are not understood as they are', () => {
  for (const [rule, want] of Object.entries({
    'every weekday 09:00': 'every weekday 09:00',
    'RRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0': 'every week on Monday at 09:00',
    'RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;BYHOUR=9,13;BYMINUTE=5': 'every 2 weeks on Monday and Friday at 09:05 and 13:05',
    'RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=18': 'every weekday at 18:00',
    'RRULE:FREQ=MONTHLY;BYDAY=1MO,-1FR;COUNT=6': 'every month on the first Monday and the last Friday, 6 times',
    'RRULE:FREQ=MONTHLY;BYMONTHDAY=1,15;UNTIL=20271231T000000Z': 'every month on day 1 and 15, until 2027-12-31',
    'rrule:freq=daily': 'every day',
    'RRULE:FREQ=HOURLY;INTERVAL=6;BYMINUTE=30': 'every 6 hours at minute 30',
    'RRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1': 'RRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1',
    'RRULE:FREQ=WEEKLY;BYDAY=XX': 'RRULE:FREQ=WEEKLY;BYDAY=XX',
    'RRULE:nonsense': 'RRULE:nonsense',
    '': '',
  })) assert.equal(inWords(rule), want, rule);
});

test('a series knows what comes next', () => {
  const s = { occurrences: [
    { number: 1, id: 's.1', state: 'finished', start: '2026-01-01T00:00:00Z' }, { number: 2, ready: '' }, { number: 3, id: 's.3', state: 'confirmed', start: '2026-01-03T00:00:00Z' }, { number: 4, id: 's.4', state: 'held', start: '2026-01-02T00:00:00Z' },
  ] } as unknown as Series;
  assert.deepEqual(alive(s).map((o) => o.number), [3, 4]);
  assert.equal(nextOf(alive(s))?.number, 4);
  assert.equal(nextOf([]), undefined);
});

test('what is done to series and what repeats is a command to copy', () => {
  assert.deepEqual([cancelLine('s'), cancelLine('s', 3, 3), cancelLine('s', 3)], ['berth series cancel s', 'berth series skip s 3', 'berth series cancel s --from 3']);
  assert.equal(repeatFlags({ repeat: 'every weekday 09:00', time_zone: 'Europe/Berlin', times: 20, at_least: 6, window: 7200 }), `--repeat 'every weekday 09:00' --tz Europe/Berlin --times 20 --within 2h --at-least 6`);
  assert.equal(repeatFlags({ repeat: 'daily', time_zone: 'UTC', until: '2027-01-01T00:00:00Z' }), '--repeat daily --tz UTC --until 2027-01-01T00:00:00Z');
});

test('occurrences are changed as the command line does', () => {
  const read = (f: Partial<Parameters<typeof readChange>[0]>) => readChange({ by: '', npe: '', duration: '', ...f });
  assert.deepEqual(read({ by: '90 min', npe: ' 8', duration: '2h' }).change, { by: 5400, npe: 8, duration: 7200 });
  assert.deepEqual(['-1h', '\u22121h', '1h'].map((by) => read({ by }).change), [{ by: -3600 }, { by: -3600 }, { by: 3600 }]);
  assert.deepEqual([read({}).change, read({}).wrong.size], [null, 0]);
  for (const [name, values] of Object.entries({ by: ['-', 'soon', '0s', '--1h', '1'], npe: ['0', '-1', 'many'], duration: ['0', '-1h', 'long'] })) {
    for (const v of values) assert.deepEqual([read({ npe: '3', [name]: v }).change, [...read({ npe: '3', [name]: v }).wrong]], [null, [name]], v);
  }
  assert.equal(changeSeriesLine('s', { by: 5400, npe: 8, duration: 7200 }), 'berth series modify s --later 1h30m --npe 8 --duration 2h');
  assert.equal(changeSeriesLine('s', { from: 3, to: 3, by: -3600 }), 'berth series modify s --from 3 --to 3 --earlier 1h');
  assert.equal(changeSeriesLine('s', { from: 3, npe: 1 }), 'berth series modify s --from 3 --npe 1');
  assert.deepEqual(['6', ' 1000', '5', '1001', 'x', ''].map((t) => readLater(t, 5, 1000)), [6, 1000, null, null, null, null]);
});

test('receivers of notices are asked for and told as the command line does', () => {
  const plain: Wanted = { url: 'https://a.example/x', form: 'webhook', kinds: [...acting].reverse(), site: '', note: '', text: 'left from before' };
  assert.deepEqual(bodyOf(plain), { url: 'https://a.example/x' });
  assert.equal(addLine(plain), 'berth notify add "$URL"');
  const chat: Wanted = { ...plain, form: 'chat', kinds, site: 'main', note: 'on call', text: '{link} {kind}', starts: 3600 };
  assert.deepEqual(bodyOf(chat), { url: 'https://a.example/x', form: 'chat', kinds, site: 'main', note: 'on call', text: '{link} {kind}', starts: 3600 });
  assert.equal(addLine(chat), `berth notify add "$URL" --chat --kinds all --site main --text '{link} {kind}' --starts 1h --note 'on call'`);
  assert.deepEqual([{}, { failing: 'x' }, { failing: 'x', disabled: 'by ann' }].map((h) => hookState(h as Hook)), ['works', 'fails', 'disabled']);
  assert.deepEqual(bodyOf({ ...plain, starts: 900, unused: 600, ends: 601 }), { url: 'https://a.example/x', ends: 601 });
  const mail: Wanted = { ...plain, form: 'email', url: 'ann@example.org' };
  assert.deepEqual(bodyOf(mail), { url: 'mailto:ann@example.org' });
  assert.equal(addLine(mail), 'berth notify add ann@example.org');
  assert.deepEqual(bodyOf({ ...mail, url: 'mailto:ann@example.org' }), { url: 'mailto:ann@example.org' });
  assert.deepEqual(['ann@example.org', 'mailto:ann@example.org', 'https://ann@example.org', 'ann', 'ann@', 'a b@x'].map(isMail), [true, true, false, false, false, false]);
  assert.deepEqual(['https://x.example', 'http://127.0.0.1:9', 'ftp://x', 'x', ''].map(isAddress), [true, true, false, false, false]);
});

test('browsers are told by name and system', () => {
  const is = (system: string, rest: string) => agentOf(`Mozilla/5.0 (${system}) ${rest}`);
  assert.equal(is('X11; Linux x86_64; rv:140.0', 'Gecko/20100101 Firefox/140.0'), 'Firefox on Linux');
  assert.equal(is('Windows NT 10.0; Win64; x64', 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0'), 'Edge on Windows');
  assert.equal(is('iPhone; CPU iPhone OS 18_0 like Mac OS X', 'AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1'), 'Safari on iOS');
  assert.equal(is('Linux; Android 15', 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36'), 'Chrome on Android');
  assert.equal(agentOf('curl/8.9'), 'curl/8.9');
});

test('of a receiver only what is wanted otherwise is changed', () => {
  const hook: Hook = { id: '1f2e', user: 'ann', form: 'chat', host: 'a.example', note: 'on call', kinds: [...acting], site: 'main', text: '{link}', starts: 0, unused: 600, ends: 600, created: '', waiting: 0, dead: 0 };
  const is: Wanted = { url: '', form: 'chat', kinds: [...acting].reverse(), site: 'main', note: 'on call', text: '{link}', starts: 0 };
  assert.deepEqual(changeOf(hook, is), {});
  const other: Wanted = { ...is, url: 'https://b.example/y', kinds, site: '', text: '', note: 'the night shift', starts: 3600, ends: 600 };
  assert.deepEqual(changeOf(hook, other), { url: 'https://b.example/y', kinds, site: '', note: 'the night shift', text: '', starts: 3600 });
  assert.equal(changeLine(hook, other), `berth notify change 1f2e --url "$URL" --kinds all --site '' --text '' --starts 1h --note 'the night shift'`);
  assert.deepEqual(changeOf({ ...hook, form: 'webhook', text: undefined }, { ...is, form: 'webhook', text: 'left from before' }), {});
});

test('what a form says of repeating is read, and what is wrong is told', () => {
  const read = (f: Partial<typeof usualRepeat>) => readRepeat({ ...usualRepeat, ...f }, Date.parse('2026-11-20T12:00:00Z') / 1000, 'UTC', 3600);
  assert.deepEqual(read({}).repetition, { repeat: 'every weekday 09:00', times: 5, time_zone: 'UTC' });
  const all = { repeat: ' daily ', times: ' ', until: '2027-01-01 10:00', except: '2026-12-24, 2026-12-25T09:00', add: '2026-12-23 09:00,', least: '3', window: '2h', hold: '90 min' };
  const repetition = read(all).repetition!;
  assert.deepEqual(repetition, { repeat: 'daily', until: '2027-01-01T10:00:00Z', time_zone: 'UTC', except: ['2026-12-24', '2026-12-25T09:00'], add: ['2026-12-23 09:00'], at_least: 3, window: 7200, hold: '1h30m' });
  assert.equal(repeatFlags(repetition), `--repeat daily --tz UTC --until 2027-01-01T10:00:00Z --except 2026-12-24,2026-12-25T09:00 --add '2026-12-23 09:00' --within 2h --at-least 3 --hold=1h30m`);
  assert.deepEqual(read({ repeat: '', add: '2026-12-23 09:00' }).repetition, { time_zone: 'UTC', add: ['2026-12-23 09:00'] });
  assert.equal(repeatFlags({ time_zone: 'UTC', add: ['2026-12-23 09:00'] }), `--tz UTC --add '2026-12-23 09:00'`);
  for (const [wrong, f] of Object.entries({
    repeat: { repeat: ' ' }, times: { times: '0' }, until: { until: 'never' }, except: { except: 'xmas' }, add: { add: '2026-12-23' }, least: { least: '4001' }, ahead: { ahead: '42' }, window: { window: '2' }, short: { window: '59m' }, hold: { hold: 'long' }, endless: { times: '' },
  })) {
    assert.deepEqual([...read(f).wrong], [wrong]);
    assert.equal(read(f).repetition, null);
  }
  assert.deepEqual([...read({ times: '', repeat: 'RRULE:FREQ=DAILY;COUNT=3' }).wrong], []);
  const open = read({ times: '', ahead: '42d' }).repetition!; // it needs no end
  assert.deepEqual(open, { repeat: 'every weekday 09:00', time_zone: 'UTC', ahead: 42 * 86400 });
  assert.equal(repeatFlags(open), `--repeat 'every weekday 09:00' --tz UTC --ahead 42d`);
  assert.deepEqual(['2026-02-30', '2026-12-24 24:00', '2026-12-24 9:00', '2026-12-24 09:00Z', '2026-12-24T09:00:00+01:00', '2026-12-24 09:00:30', ' , '].map((t) => parseStarts(t, true) !== null), [false, false, false, false, true, true, false]);
});

test('what an offer costs others is told where any job could be delayed', () => {
  const none = { delayed_jobs: 0, delay_sum: 0, delay_largest: 0, idle_pe_seconds: 0, jobs: 0, complete: true };
  assert.equal(costOf(undefined), null);
  assert.equal(costOf(none), null);
  assert.deepEqual(costOf({ ...none, jobs: 345 }), { line: 'None of 345 jobs would end later', more: ['By the queue and the estimates as they are now, if no other job comes.'] });
  assert.deepEqual(costOf({ ...none, delayed_jobs: 1, delay_sum: 60, delay_largest: 60, jobs: 1, idle_pe_seconds: 100 })!.line, '1 of 1 job would end later, by up to 1 min');
  const some = costOf({ delayed_jobs: 12, delay_sum: 7200, delay_largest: 3600, idle_pe_seconds: 5400, jobs: 345, complete: false })!;
  assert.equal(some.line, 'At least 12 of 345 jobs would end later, by 1 h or more');
  assert.equal(some.more.join(' '), 'Together they would end at least 2 h later. At least 1.5 PE-hours that jobs would use before its start would stay idle. By the queue and the estimates as they are now, if no other job comes. The queue is too long to foresee all of it.');
  assert.equal(costOf({ ...none, complete: false })!.line, 'What it costs jobs is not known');
  assert.equal(costOf({ ...none, jobs: 7, complete: false })!.line, 'None of 7 jobs that were compared would end later');
});

test('a bar is called by its user and name as far as they are told', () => {
  const span = { kind: 'request', pool: 'p', npe: 1, number: 1 };
  assert.equal(called([{ ...span }], 'ann'), '');
  assert.equal(called([], 'ann'), '');
  assert.equal(called([{ ...span, id: '01K', user: 'ann' }], 'ann'), '01K');
  assert.equal(called([{ ...span, id: '01K', user: 'bob', name: 'weekly' }], 'ann'), 'bob, weekly');
});
