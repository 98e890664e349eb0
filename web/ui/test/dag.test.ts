import assert from 'node:assert/strict';
import { test } from 'node:test';
import { above, deadlines, dots, kind, levels, nearest, slim, sums, type WorkflowTask } from '../src/dag.js';
import { holdLasts, lines, roomy, type Line } from '../src/plans.js';

const task = (id: string, ...parents: number[]): WorkflowTask => ({ id, seconds: 1, alpha: 0, parents });
const fork = [task('split_1'), ...Array.from({ length: 9 }, (_, i) => task(`map_${i}`, 0)), task('join_1', 1, 2, 3, 4, 5, 6, 7, 8, 9)];

test('tasks stand below their parents, those of one kind together', () => {
  assert.deepEqual(levels([task('d', 1, 2), task('b', 3), task('c', 1), task('a')]), [3, 1, 2, 0]);
  const apart = dots(fork, false);
  assert.deepEqual(apart.map((d) => d.level), [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
  assert.equal(new Set(apart.slice(1, 10).map((d) => d.place)).size, 9);
  assert.deepEqual(dots(fork, true).map((d) => [d.label, d.tasks.length, d.parents]), [['split', 1, []], ['map', 9, [0]], ['join', 1, [1]]]);
  assert.deepEqual(['mProject_ID0000012', 'blastall_00000002', 'a', '17', 'x.3'].map(kind), ['mProject', 'blastall', 'a', '17', 'x']);
  const chain = Array.from({ length: 20_000 }, (_, i) => task(String(i), ...(i > 0 ? [i - 1] : [])));
  assert.equal(levels(chain.map((_, i) => chain[i]!)).at(-1), 19_999); // deeper than calls may nest
});

test('lines cross less after the sweeps', () => {
  const crossed = [task('a'), task('b'), task('x', 1), task('y', 0)];
  const d = dots(crossed, false);
  assert.ok((d[0]!.place - d[1]!.place) * (d[3]!.place - d[2]!.place) > 0, 'the child of the left one is on the left');
});

test('what is not needed of a file is left out, and what is no workflow is none', () => {
  const doc = { name: 'n', schemaVersion: '1.5', author: 1, workflow: { makespan: 1, specification: { files: [1], tasks: [{ id: 'a', parents: [], inputFiles: ['x'], name: 'a' }] }, execution: { machines: [], tasks: [{ id: 'a', runtimeInSeconds: 2, coreCount: 3, avgCPU: 1 }] } } };
  assert.deepEqual(slim(doc), { name: 'n', schemaVersion: '1.5', workflow: { specification: { tasks: [{ id: 'a', parents: [], name: 'a' }] }, execution: { tasks: [{ id: 'a', runtimeInSeconds: 2, coreCount: 3 }] } } });
  assert.deepEqual([slim(null), slim([]), slim('x'), slim({}), slim({ workflow: [] })], [null, null, null, null, null]);
  assert.deepEqual(slim({ workflow: { tasks: 'x' } }), { workflow: { tasks: 'x' } }); // the service says what is wrong with it
});

test('PEs add up over time, and stand on those of others', () => {
  assert.deepEqual(sums([{ from: 0, to: 10, npe: 2 }, { from: 5, to: 15, npe: 3 }, { from: 20, to: 20, npe: 9 }, { from: 30, to: 40, npe: 1 }]), [
    { from: 0, to: 5, npe: 2 }, { from: 5, to: 10, npe: 5 }, { from: 10, to: 15, npe: 3 }, { from: 30, to: 40, npe: 1 },
  ]);
  assert.deepEqual(above([{ from: 0, to: 10, npe: 2 }], [{ from: 3, to: 5, npe: 7 }]), [{ from: 0, to: 3, npe: 2, base: 0 }, { from: 3, to: 5, npe: 2, base: 7 }, { from: 5, to: 10, npe: 2, base: 0 }]);
});

test('deadlines begin with the tightest', () => {
  const list = deadlines(1000, 1600);
  assert.deepEqual([list.length, list[0], list.at(-1)], [12, 1600, 2800]);
  assert.equal(nearest(1750, list), 1);
});

test('a deadline that is booked has room after the tightest', () => {
  assert.equal(roomy(1600, 1600, 1000), 2220, 'ten minutes, then whole minutes');
  assert.equal(roomy(2199, 1600, 1000), 2220);
  assert.equal(roomy(2200, 1600, 1000), 2200, 'there is room');
  assert.equal(roomy(80_000, 80_000, 0), 84_000, 'a twentieth of a long time');
});

test('a hold lasts until the first task would end', () => {
  const at = (s: number) => new Date(s * 1000).toISOString();
  const plan = (...tasks: [number, number][]) => ({ planner: 'p', about: '', tasks: tasks.map(([start, end]) => ({ npe: 1, start: at(start), end: at(end) })) });
  assert.equal(holdLasts(plan([1000, 9000], [1000, 1420]), 1100), 420, 'what begins at once begins when it is booked');
  assert.equal(holdLasts(plan([1500, 1900]), 1100), 800, 'what begins later begins then');
  assert.equal(holdLasts(plan([1000, 9000]), 1100), 1800);
  assert.equal(holdLasts(plan([1050, 1090]), 1100), 40, 'what should have begun begins now');
  assert.equal(holdLasts(null, 1100), 1800);
});

test('lines are put together from whatever pieces they come in', async () => {
  const bytes = new TextEncoder().encode('{"done":false}\n\n{"plan":{"planner":"é","about":""}}\n{"done":true}\n');
  const heard: Line[] = [];
  await lines(new ReadableStream({ start(c) { for (const b of bytes) c.enqueue(Uint8Array.of(b)); c.close(); } }), (l) => heard.push(l));
  assert.deepEqual(heard, [{ done: false }, { plan: { planner: 'é', about: '' } }, { done: true }]);
});
