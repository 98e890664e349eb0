import assert from 'node:assert/strict';
import { test } from 'node:test';
import { baselines, bodyOf, combinations, drawn, inFields, runs, size, usual, valuesOf, wrong, type Form } from '../src/compare.js';

const log: Form = { ...usual, past: false, log: 'x-1' };

test('values are divided as berth lab does', () => {
  assert.deepEqual(valuesOf(' 1, 2 ,3,'), ['1', '2', '3']);
  assert.deepEqual(valuesOf('30d,4h,16; 90d,4h,16'), ['30d,4h,16', '90d,4h,16']);
  assert.deepEqual(valuesOf(' '), []);
});

test('what is asked for is what is chosen', () => {
  assert.deepEqual(bodyOf(usual, '', '2026-11-23T00:00:00Z'), { journal: { to: '2026-11-23T00:00:00Z' }, settings: {}, sweep: [{ name: 'policy', values: ['first-fit', 'pe-worst'] }] });
  const f = { ...log, policies: ['pe-best'], bindings: ['late'], as: 'mixed', load: '1, 1.2', slack: '2', pes: ' 64 ', jobs: '100', estimates: true, passes: ['easy', 'fcfs'], replications: '7', baseline: 'backfill=fcfs' };
  assert.deepEqual(bodyOf(f, '', ''), {
    log: 'x-1', settings: { policy: 'pe-best', bind: 'late', 'deadline-factor': '2', pes: '64', jobs: '100', as: 'mixed', estimates: 'true' },
    sweep: [{ name: 'backfill', values: ['easy', 'fcfs'] }, { name: 'arrival-factor', values: ['1', '1.2'] }], replications: 7, baseline: 'backfill=fcfs',
  });
  const jobs = { ...log, as: 'jobs', slack: '1, 2', policies: ['pe-best', 'pe-worst'] };
  assert.deepEqual(bodyOf(jobs, '', ''), { log: 'x-1', settings: { as: 'jobs' }, sweep: [{ name: 'backfill', values: ['easy', 'conservative'] }] });
  assert.deepEqual(bodyOf({ ...usual, baseline: 'bind=late' }, '', ''), bodyOf(usual, '', '')); // there is none now
});

test('runs are combinations times replications where something is drawn', () => {
  assert.equal(combinations({ ...log, bindings: ['early', 'late'], load: '1,2,3' }), 12);
  assert.equal(runs({ ...log, bindings: ['early', 'late'] }), 20);
  assert.equal(runs(usual), 2);
  assert.equal(runs({ ...usual, other: 'noise', otherValues: '0.1,0.2' }), 20);
  assert.deepEqual([drawn(usual), drawn(log), drawn({ ...log, as: 'jobs' }), drawn({ ...log, as: 'jobs', other: 'failures' })], [false, true, false, true]);
  assert.deepEqual(baselines({ ...usual, bindings: ['early'] }), ['policy=first-fit', 'policy=pe-worst']);
});

test('what cannot be read is told', () => {
  assert.deepEqual(wrong({ ...log, pes: '0', jobs: 'x', load: '1, x', slack: '-1', replications: '101' }), ['pes', 'jobs', 'load', 'slack', 'replications']);
  assert.deepEqual(wrong({ ...log, load: '0' }), ['load']);
  assert.deepEqual(wrong({ ...usual, replications: 'x', pes: 'x' }), []);
  assert.deepEqual(wrong({ ...usual, other: 'order' }), ['otherValues']);
  assert.deepEqual(wrong({ ...log, pes: '1048576', load: '.5', slack: '0, 1.5' }), []);
});

test('sizes are short', () => assert.deepEqual([size(999), size(64_000), size(67_108_864)], ['999 B', '64 kB', '67.1 MB']));

test('what is wrong is said of the field, and of a flag where there is none', () => {
  assert.equal(inFields('--pes: missing; give --pes or --sites', { pes: 'PEs of the machine' }), 'PEs of the machine: missing; give PEs of the machine or --sites');
});
