import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differences, ended, modifyLine, placedBefore, sentence, wished, type Happening, type Reservation } from '../src/life.js';
import { spanned } from '../src/names.js';

const placed = (what: string, start: string, end: string): Happening => ({ at: '2026-11-23T08:00:00Z', what, site: 'main', pool: 'batch', npe: 4, start, end });

test('sentences of a history say by how much a promise moved', () => {
  const list = [placed('accepted', '2026-11-23T10:00:00Z', '2026-11-23T12:00:00Z'), { at: '2026-11-23T08:30:00Z', what: 'confirmed', by: 'alice' }, placed('moved', '2026-11-23T10:25:00Z', '2026-11-23T12:25:00Z'), placed('moved', '2026-11-23T10:00:00Z', '2026-11-23T12:00:00Z')];
  const before = placedBefore(list);
  assert.deepEqual(list.map((h, i) => sentence(h, before[i]!, 'Europe/Berlin')), [
    'promised, 4 PEs at main, batch, Mon 2026-11-23 11:00 – 13:00',
    'confirmed by alice',
    'moved by 25 min, 4 PEs at main, batch, Mon 2026-11-23 11:25 – 13:25',
    'moved by 25 min, earlier, 4 PEs at main, batch, Mon 2026-11-23 11:00 – 13:00',
  ]);
  assert.equal(sentence({ at: '', what: 'something_new', reason: 'quota' }, null, 'UTC'), 'something new (quota)');
  assert.equal(sentence({ at: '', what: 'resized', outages: [{ site: 'main', pool: 'batch', npe: 1, nodes: ['n07'] }, { site: 'main', pool: 'batch', npe: 3, from: '2026-11-23T10:00:00Z' }] }, null, 'UTC'),
    'has other PEs; out of use: n07 and 3 PEs of main, batch from Mon 2026-11-23 10:00 on');
  assert.equal(sentence({ at: '', what: 'made', site: 'harbour' }, null, 'UTC'), 'made at harbour');
});

test('a form asks for what differs alone, and says the same on the command line', () => {
  const r: Reservation = { id: 'x', state: 'confirmed', version: 3, npe: 4, duration: 3600, ready: '2026-11-23T10:00:00Z', deadline: '2026-11-23T12:00:00Z' };
  const same = { npe: 4, duration: 3600, ready: Date.parse(r.ready!) / 1000, deadline: Date.parse(r.deadline!) / 1000 };
  assert.deepEqual(wished(r, same), {});
  const wish = wished(r, { ...same, npe: 2, deadline: same.deadline + 1800 });
  assert.deepEqual(wish, { npe: 2, deadline: '2026-11-23T12:30:00Z' });
  assert.equal(modifyLine('x', wish), 'berth modify x --npe 2 --deadline 2026-11-23T12:30:00Z');
  assert.equal(modifyLine('x', { duration: 5400 }), 'berth modify x --duration 1h30m');
});

test('what of a promise is another now is listed, and nothing else', () => {
  const r: Reservation = { id: 'x', state: 'confirmed', version: 3, npe: 4, site: 'main', pool: 'batch', start: '2026-11-23T10:00:00Z', end: '2026-11-23T12:00:00Z' };
  assert.deepEqual(differences(r, { ...r, version: 4 }, 'UTC'), []);
  assert.deepEqual(differences(r, { ...r, version: 4, state: 'degraded', missing: 1 }, 'UTC'), [['State', 'confirmed', 'degraded'], ['Missing', '0', '1']]);
});

test('ends of tasks have their code or signal', () => {
  assert.equal(ended({ job: '1', site: 's', state: 'failed', exit_code: 3 }), 'failed, exit code 3');
  assert.equal(ended({ job: '1', site: 's', state: 'failed', signal: 9 }), 'failed, signal 9');
  assert.equal(ended({ job: '1', site: 's', state: 'node_fail' }), 'node fail');
});

test('numbers of PEs are told from names of nodes', () => {
  assert.deepEqual(['3', '0-16', '1,4-5,9'].map(spanned), ['PE 3', 'PEs 0 to 16', 'PEs 1, 4 to 5, 9']);
});
