import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFileSync } from 'node:fs';
import { parseLength, parseTime, parseVariants, spoken, stampOf } from '../src/grammar.js';

test('lengths of time are read as the command line reads them', () => {
  for (const [text, want] of [['2h30m', 9000], ['90 min', 5400], ['1d', 86400], ['1w2d', 777600], ['02:30:00', 9000], ['1-02:30:00', 95400], ['45s', 45], ['1hour', 3600], ['2 hours', 7200], [' 1H ', 3600]] as const) {
    assert.equal(parseLength(text), want, text);
  }
  for (const text of ['', '90', '2x', 'h', '30m2h', '1h1h', '-1h', '0s', '0m', '1.5h', '02:60:00', '1-24:00:00', '2h 30', 'now', '9999999999h']) assert.equal(parseLength(text), null, text);
  for (const n of [1, 59, 3600, 9000, 95400, 777600]) assert.equal(parseLength(spoken(n)), n, spoken(n));
});

test('times are read in the zone, and said when they are', () => {
  const now = Date.parse('2026-11-23T23:30:10.9Z') / 1000; // in Berlin it is the next day
  const at = (text: string, zone: string) => {
    const t = parseTime(text, now, zone);
    return t === null ? null : stampOf(t);
  };
  for (const [text, zone, want] of [
    ['now', 'UTC', '2026-11-23T23:30:10Z'], ['now+2h30m', 'UTC', '2026-11-24T02:00:10Z'], ['now + 1hour', 'UTC', '2026-11-24T00:30:10Z'], ['18:00', 'UTC', '2026-11-24T18:00:00Z'], ['23:45', 'UTC', '2026-11-23T23:45:00Z'], ['now-1h', 'UTC', '2026-11-23T22:30:10Z'], ['tomorrow 18:00', 'UTC', '2026-11-24T18:00:00Z'],
    ['tomorrow 18:00', 'Europe/Berlin', '2026-11-25T17:00:00Z'], ['today 08:00', 'Europe/Berlin', '2026-11-24T07:00:00Z'], ['2026-11-23 18:00', 'Asia/Kathmandu', '2026-11-23T12:15:00Z'], ['2026-03-29 12:00', 'Europe/Berlin', '2026-03-29T10:00:00Z'],
    ['2026-11-23T18:00:00+01:00', 'Asia/Kathmandu', '2026-11-23T17:00:00Z'], ['2026-11-23T18:00:00Z', 'Europe/Berlin', '2026-11-23T18:00:00Z'],
  ] as const) assert.equal(at(text, zone), want, `${text} ${zone}`);
  for (const text of ['', 'soon', 'now+', 'now+2', '25:00', '18:60', '2026-02-30 10:00', 'yesterday 10:00', '2026-13-01T00:00:00Z', '18']) assert.equal(at(text, 'UTC'), null, text);
});

interface Vectors { lengths: { text: string; seconds: number | null }[]; times: { text: string; now: string; zone: string; at: string | null }[] }

test('what the command line reads the page reads alike, and what that refuses this does', () => {
  const vectors = JSON.parse(readFileSync('test/time-vectors.json', 'utf8')) as Vectors; // a test of internal/hpctime checks them against its parser
  assert.ok(vectors.lengths.length > 30 && vectors.times.length > 30);
  for (const { text, seconds } of vectors.lengths) assert.equal(parseLength(text), seconds, `length ${JSON.stringify(text)}`);
  for (const { text, now, zone, at } of vectors.times) {
    const got = parseTime(text, Date.parse(now) / 1000, zone);
    assert.equal(got === null ? null : stampOf(got), at, `time ${JSON.stringify(text)} in ${zone}`);
  }
});

test('shapes are PEs times lengths', () => {
  assert.deepEqual(parseVariants('64x1h, 32 x 2h30m'), [{ npe: 64, duration: 3600 }, { npe: 32, duration: 9000 }]);
  for (const text of ['', '64', 'x1h', '0x1h', '64x', '64x1h,', '64x1', '64h1', '64x1h 32x2h']) assert.equal(parseVariants(text), null, text);
});
