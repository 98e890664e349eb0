import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amount, drainLine, holders, share, tokenLine, type Limit } from '../src/duty.js';
import { quoted } from '../src/grammar.js';

test('commands to copy are taken by a shell as they are', () => {
  assert.equal(quoted('n[1-3]'), `'n[1-3]'`);
  assert.equal(quoted(`it's $HOME`), `'it'\\''s $HOME'`);
  assert.equal(quoted(''), `''`);
  assert.equal(drainLine('main', ['n1'], 'disk full'), `berth sites drain main n1 --reason 'disk full'`);
  assert.equal(drainLine('main', ['n1', 'n2'], null), `for n in n1 n2; do berth sites resume main "$n"; done`);
});

test('limits say how much of them is used', () => {
  const l = (allowed?: number, used?: number, unit = 'count'): Limit => ({ limit: 'x', unit, about: '', ...(allowed === undefined ? {} : { allowed }), ...(used === undefined ? {} : { used }) });
  assert.deepEqual([share(l(10, 5)), share(l(10, 20)), share(l(0, 0)), share(l(0, 1)), share(l(undefined, 1)), share(l(1))], [0.5, 1, 0, 1, null, null]);
  assert.deepEqual([amount(l(1, 1, 'seconds'), 5400), amount(l(1, 1, 'bytes'), 2_500_000), amount(l(1, 1, 'PE-hours'), 2.25), amount(l(1, 1, 'PEs'), 3)], ['1 h 30 min', '2.5 MB', '2.3 PE-hours', '3 PEs']);
});

test('limits are those of users, and of accounts and partitions', () => {
  const limits: Limit[] = [{ limit: 'active', unit: 'count', about: '' }];
  assert.deepEqual(holders({ quotas: [{ user: 'ann', role: 'user', limits, sites: ['main'] }], shared: [{ account: 'phys', limits }, { partition: 'gpu', limits }] }).map((h) => [h.name, h.what, h.sites]),
    [['ann', 'user', ['main']], ['phys', 'account', undefined], ['gpu', 'partition', undefined]]);
  assert.deepEqual([holders(null), holders({ quotas: [] })], [[], []]);
});

test('tokens are made by the same command', () => {
  assert.equal(tokenLine({ user: 'alice', role: 'user', scopes: ['read', 'run'] }), 'berth token add alice --scope read,run');
  assert.equal(tokenLine({ user: 'alice', role: 'user' }), 'berth token add alice');
  assert.equal(
    tokenLine({ user: 'wall', role: 'viewer', note: "the hall's screen", expires: '2026-12-24T18:00:00Z', sites: ['cm5', 'main'] }),
    `berth token add wall --role viewer --note 'the hall'\\''s screen' --expires 2026-12-24T18:00:00Z --sites cm5,main`,
  );
});
