import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accountLine, accountTokenLine, amount, drainLine, holders, maintenanceLine, maintenanceOff, readMaintenance, share, tokenLine, type Limit, usualMaintenance } from '../src/duty.js';
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
  assert.deepEqual([amount(l(1, 1, 'seconds'), 5400), amount(l(1, 1, 'bytes'), 2_500_000), amount(l(1, 1, 'bytes'), 7234), amount(l(1, 1, 'bytes'), 999), amount(l(1, 1, 'PE-hours'), 2.25), amount(l(1, 1, 'PEs'), 3)], ['1 h 30 min', '2.5 MB', '7.2 kB', '999 B', '2.3 PE-hours', '3 PEs']);
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

test('service accounts and their tokens are made by the same command', () => {
  assert.equal(accountLine({ name: 'svc-ci', role: 'user' }), 'berth service-account add svc-ci');
  assert.equal(accountLine({ name: 'svc-wall', role: 'viewer', note: 'the hall' }), "berth service-account add svc-wall --role viewer --note 'the hall'");
  assert.equal(accountTokenLine('svc-ci', { scopes: ['read', 'reserve'], expires: '2026-12-24T18:00:00Z', note: 'nightly' }), 'berth service-account token svc-ci --note nightly --expires 2026-12-24T18:00:00Z --scope read,reserve');
});

test('maintenance is planned as the command line does, once it is right', () => {
  const now = Date.parse('2026-11-23T10:00:00Z') / 1000;
  const form = { ...usualMaintenance, name: 'cooling', site: 'main' };
  const read = (change: Partial<typeof form>) => readMaintenance({ ...form, ...change }, now, 'UTC');
  assert.deepEqual(read({}), { wanted: { name: 'cooling', site: 'main', start: '2026-11-24T08:00:00Z', duration: 14400 }, start: now + 22 * 3600, wrong: new Set() });
  const whole = read({ nodes: ' n[1-4] ', repeat: 'first monday of the month 08:00', times: '3', reason: 'the pumps' }).wanted!;
  assert.equal(maintenanceLine(whole, true), "berth maintenance add cooling --site main --nodes 'n[1-4]' --start 2026-11-24T08:00:00Z --duration 4h --repeat 'first monday of the month 08:00' --tz UTC --times 3 --reason 'the pumps' --dry-run");
  assert.equal(maintenanceLine(read({ start: '' }).wanted!, false), 'berth maintenance add cooling --site main --duration 4h');
  for (const [change, wrong] of [[{ name: 'a b' }, 'name'], [{ start: 'sometime' }, 'start'], [{ start: '', repeat: 'daily 04:00' }, 'start'], [{ duration: '4' }, 'duration'], [{ repeat: 'daily 04:00', times: '0' }, 'times']] as const) {
    assert.deepEqual([read(change).wanted, [...read(change).wrong]], [null, [wrong]], JSON.stringify(change));
  }
  assert.deepEqual([read({ name: '' }).wanted, read({ site: '' }).wanted, read({ name: '' }).wrong.size], [null, null, 0]);
  assert.deepEqual([maintenanceOff('cooling', ''), maintenanceOff('cooling', '2026-11-24T08:00:00Z')], ['berth maintenance remove cooling', 'berth maintenance remove cooling --only 2026-11-24T08:00:00Z']);
});
