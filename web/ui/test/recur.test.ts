import assert from 'node:assert/strict';
import { test } from 'node:test';
import { repeatFlags } from '../src/grammar.js';
import { acting, addLine, bodyOf, hookState, isAddress, kinds, type Hook, type Wanted } from '../src/receivers.js';
import { called } from '../src/names.js';
import { alive, cancelLine, inWords, nextOf, seriesOf, type Series } from '../src/recur.js';

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

test('an occurrence knows its series, and a series what comes next', () => {
  assert.deepEqual(['01K.3', 'a.b.12', '01K', 'a.b', '.5'].map(seriesOf), ['01K', 'a.b', '', '', '']);
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

test('receivers of notices are asked for and told as the command line does', () => {
  const plain: Wanted = { url: 'https://a.example/x', chat: false, kinds: [...acting].reverse(), site: '', note: '', text: 'left from before' };
  assert.deepEqual(bodyOf(plain), { url: 'https://a.example/x' });
  assert.equal(addLine(plain), 'berth notify add "$URL"');
  const chat: Wanted = { ...plain, chat: true, kinds, site: 'main', note: 'on call', text: '{link} {kind}', starts: 3600 };
  assert.deepEqual(bodyOf(chat), { url: 'https://a.example/x', form: 'chat', kinds, site: 'main', note: 'on call', text: '{link} {kind}', starts: 3600 });
  assert.equal(addLine(chat), `berth notify add "$URL" --chat --kinds all --site main --text '{link} {kind}' --starts 1h --note 'on call'`);
  assert.deepEqual([{}, { failing: 'x' }, { failing: 'x', disabled: 'by ann' }].map((h) => hookState(h as Hook)), ['works', 'fails', 'disabled']);
  assert.deepEqual(['https://x.example', 'http://127.0.0.1:9', 'ftp://x', 'x', ''].map(isAddress), [true, true, false, false, false]);
});

test('a bar is called by its user and name as far as they are told', () => {
  const span = { kind: 'request', pool: 'p', npe: 1, number: 1 };
  assert.equal(called([{ ...span }], 'ann'), '');
  assert.equal(called([], 'ann'), '');
  assert.equal(called([{ ...span, id: '01K', user: 'ann' }], 'ann'), '01K');
  assert.equal(called([{ ...span, id: '01K', user: 'bob', name: 'weekly' }], 'ann'), 'bob, weekly');
});
