import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHash } from 'node:crypto';
import { aheadOfUTC, length, period, ticks, time } from '../src/clock.js';
import { filterToSend, maskOf, queryOf } from '../src/filter.js';
import { fills, ground, pixel, rgb, type Theme } from '../src/palette.js';
import { parse, type Picture } from '../src/picture.js';
import { aligned, beside, boxOf, finer, hit, pan, raster, shifted, type Port } from '../src/raster.js';
import { rowsOf } from '../src/rows.js';
import { plain } from './plain.js';
import { lanesOf, refused, said, stretchAt } from '../src/starts.js';
import { frozen, moving, offset, readView, relative, writeView, normal, type View } from '../src/view.js';

interface Bar { start: number; length: number; first: number; size: number; number?: number; class?: number; flags?: number }

/** encode writes a picture as the service does. */
function encode(bars: Bar[], free: number[], pes: number): ArrayBuffer {
  const need = 22 * bars.length;
  const pad = (4 - (need % 4)) % 4;
  const data = new ArrayBuffer(64 + need + pad + 4 * free.length);
  const v = new DataView(data);
  [...'BGT1'].forEach((c, i) => v.setUint8(i, c.charCodeAt(0)));
  v.setUint32(4, 1, true);
  v.setBigInt64(8, 1000n, true);
  [60, free.length, pes, bars.length, 0, 1].forEach((n, i) => v.setUint32(16 + 4 * i, n, true));
  v.setBigUint64(40, 7n, true);
  v.setBigUint64(48, 9007199254740993n, true);
  v.setUint32(56, pes, true);
  const n = bars.length;
  bars.forEach((b, i) => {
    v.setInt32(64 + 4 * i, b.start, true);
    [b.length, b.first, b.size, b.number ?? i + 1].forEach((x, c) => v.setUint32(64 + 4 * (n * (c + 1) + i), x, true));
    v.setUint8(64 + 20 * n + i, b.class ?? 1);
    v.setUint8(64 + 21 * n + i, b.flags ?? 0);
  });
  free.forEach((f, i) => v.setUint32(64 + need + pad + 4 * i, f, true));
  return data;
}

const port = (change: Partial<Port> = {}): Port => ({ width: 40, height: 20, from: 1000, perPixel: 60, top: 0, rowHeight: 4, theme: 'light', mask: null, ...change });

function drawn(p: Picture | null, v: Port): (x: number, y: number) => number[] {
  const image = new Uint8ClampedArray(4 * v.width * v.height);
  raster(p, v, new Uint32Array(image.buffer));
  return (x, y) => [...image.slice(4 * (y * v.width + x), 4 * (y * v.width + x) + 3)];
}

test('a picture is read as it was written', () => {
  const p = parse(encode([{ start: 60, length: 120, first: 1, size: 2, flags: 32 }, { start: -5, length: 9, first: 3, size: 1, class: 4 }], [5, 3, 4], 5));
  assert.deepEqual([p.t0, p.step, p.width, p.count, p.pes, p.generation, p.event], [1000, 60, 3, 2, 5, 7, '9007199254740993']);
  assert.deepEqual([...p.start, ...p.length, ...p.first, ...p.size, ...p.class, ...p.flags, ...p.free], [60, -5, 120, 9, 1, 3, 2, 1, 1, 4, 32, 0, 5, 3, 4]);
  assert.throws(() => parse(new ArrayBuffer(8)), /64/);
  assert.throws(() => parse(encode([], [1], 1).slice(0, 66)), /want 68/);
  const other = encode([], [], 1);
  new DataView(other).setUint8(3, 50);
  assert.throws(() => parse(other), /BGT2/);
});

test('bars are drawn where they are, and nowhere else', () => {
  const p = parse(encode([{ start: 300, length: 600, first: 1, size: 2 }], Array(40).fill(5), 5));
  const at = drawn(p, port());
  for (let y = 0; y < 20; y++) {
    for (let x = 0; x < 40; x++) {
      const inside = x >= 5 && x < 14 && y >= 4 && y < 11; // and a gap behind and below it
      assert.deepEqual(at(x, y), inside ? rgb(fills.light.promise) : [255, 255, 255], `${x},${y}`);
    }
  }
});

test('one that is thinner than a pixel is still seen, and what is unknown is no free PE', () => {
  const p = parse(encode([{ start: 300, length: 1, first: 0, size: 1, class: 3 }], Array(10).fill(1), 400));
  const at = drawn(p, port({ rowHeight: 0.05 }));
  assert.notDeepEqual(at(5, 0), [255, 255, 255]);
  assert.ok([...Array(16).keys()].some((x) => at(20 + x, 3).join() !== '255,255,255'), 'what is behind the picture looks free');
  assert.ok([...Array(16).keys()].some((x) => drawn(null, port())(x, 0).join() !== '255,255,255'), 'what was not fetched looks free');
});

test('kinds differ by more than their colour', () => {
  const texture = (b: Partial<Bar>) => {
    const at = drawn(parse(encode([{ start: 0, length: 2400, first: 0, size: 5, ...b }], Array(40).fill(0), 5)), port());
    let text = '';
    for (let y = 0; y < 20; y++) for (let x = 0; x < 40; x++) text += at(x, y).join() === '255,255,255' ? ' ' : '#';
    return text;
  };
  const kinds = { promise: {}, job: { class: 2 }, degraded: { class: 3 }, outage: { class: 4 }, announced: { class: 4, flags: 128 }, held: { flags: 8 }, active: { flags: 16 }, provisional: { flags: 1 } };
  const all = Object.values(kinds).map(texture);
  assert.equal(new Set(all).size, all.length, 'two kinds have the same shape');
});

test('mine only leaves others out, but not what is out of use', () => {
  const p = parse(encode([{ start: 0, length: 600, first: 0, size: 1 }, { start: 0, length: 600, first: 1, size: 1, flags: 32 }, { start: 0, length: 600, first: 2, size: 1, class: 4 }], Array(40).fill(0), 5));
  const mine = maskOf(p, null, 'pool', { owner: 'mine', states: [], words: '' });
  const at = drawn(p, port({ mask: mine }));
  assert.deepEqual(at(3, 2), [255, 255, 255]);
  assert.deepEqual(at(3, 6), rgb(fills.light.mine));
  assert.notDeepEqual(at(3, 9), [255, 255, 255]);
  assert.equal(hit(p, port({ mask: mine }), 3, 2), -1);
  assert.equal(hit(p, port(), 3, 2), 0);
  assert.equal(hit(p, port(), 3, 6), 1);
  assert.equal(hit(p, port(), 30, 6), -1);
});

/** scene returns a picture that has everything, always the same. */
function scene(): Picture {
  let seed = 7;
  const next = (n: number) => (seed = (seed * 48271) % 2147483647) % n; // Park and Miller
  const bars: Bar[] = [];
  for (let i = 0; i < 400; i++) bars.push({ start: next(90_000) - 5000, length: 60 + next(9000), first: next(60), size: 1 + next(4), class: 1 + next(4), flags: next(128), number: i + 1 });
  return parse(encode(bars, Array(1400).fill(9), 64));
}

const hashOf = (out: Uint32Array) => createHash('sha256').update(new Uint8Array(out.buffer)).digest('hex').slice(0, 16);

test('pixels are those that they were: no font, so everywhere the same', () => {
  const p = scene();
  const cells: Picture = { ...p, count: 0, cells: Uint8Array.from({ length: p.width * p.height }, (_, i) => (i * 7 + (i >> 8)) % 80), height: 64 };
  const got: Record<string, string> = {};
  for (const theme of ['light', 'dark'] as Theme[]) {
    for (const [name, change] of Object.entries({ rows: { rowHeight: 6.25 }, thin: { rowHeight: 0.7 }, tall: { rowHeight: 14, top: 3.5 }, near: { perPixel: 7.5, rowHeight: 9 } })) {
      const v = aligned(port({ width: 300, height: 180, from: 3000, perPixel: 240, theme, ...change }));
      for (const [what, picture] of Object.entries({ bars: p, cells, none: null })) {
        if (what !== 'bars' && name !== 'rows') continue;
        const out = new Uint32Array(v.width * v.height);
        raster(picture, v, out);
        got[`${theme} ${name} ${what}`] = hashOf(out);
      }
    }
  }
  assert.deepEqual(got, {
    'light rows bars': '01b239e906735d1e', 'light rows cells': '14da6736808a9307', 'light rows none': '40ade8e90993efc9', 'light thin bars': 'eb9598fa621cfcfb', 'light tall bars': 'fedc8f405b0c2961',
    'light near bars': 'b046617ba26c0b22', 'dark rows bars': 'ce8e7f004f63b796', 'dark rows cells': '9ae768f4f56f4861', 'dark rows none': '107f1f72f1b135cd', 'dark thin bars': '0a242811c5c8a8c9',
    'dark tall bars': '111e8651b376af1e', 'dark near bars': '6bb363b95c0f6365',
  });
});

test('what is drawn is what the plain rasteriser draws, whatever the picture and the view', () => {
  let seed = 11;
  const next = (n: number) => (seed = (seed * 48271) % 2147483647) % n; // Park and Miller
  const seen = { rows: 0, summed: 0, stacked: 0, crowds: 0, mixed: 0, masked: 0, hits: 0, announced: 0, cells: 0 };
  for (let round = 0; round < 400; round++) {
    const rows = 1 + next(80);
    const kind = next(4); // in rows as the service sends them, apart; crowded; one over another; in any order
    const bars: Bar[] = [];
    for (let pe = 0; pe < rows; pe++) {
      let start = next(3000) - 2000;
      for (let n = kind === 1 ? 40 + next(400) : next(20); n > 0; n--) {
        const length = 1 + next(kind === 1 ? 30 : 2500);
        bars.push({ start, length, first: pe, size: kind === 2 && next(5) === 0 ? 1 + next(6) : 1, class: 1 + next(4), flags: kind === 1 ? next(2) * 32 : next(3) === 0 ? next(256) : 0, number: bars.length + 1 });
        start += kind === 2 ? next(900) : length + next(kind === 1 ? 20 : 900);
      }
    }
    for (let n = kind === 0 ? 0 : next(4); n > 0; n--) bars.push({ start: next(4000), length: 1 + next(5000), first: rows, size: 1 + next(9), flags: 1 });
    if (kind === 3) bars.sort(() => next(3) - 1);
    const p: Picture = parse(encode(bars, Array(1 + next(120)).fill(1), rows));
    if (next(6) === 0) {
      const group = 1 << next(3);
      p.cells = Uint8Array.from({ length: p.width * Math.ceil(rows / group) }, () => (next(3) === 0 ? 0 : next(80)));
      Object.assign(p, { count: 0, group, height: Math.ceil(rows / group), own: next(2) === 0 });
      seen.cells++;
    }
    const mask = next(4) === 0 && !p.cells ? Uint8Array.from({ length: p.count }, () => next(2)) : null;
    const v = aligned(port({
      width: 20 + next(120), height: 10 + next(90), from: 1000 + next(4000) - 2000 + next(100) / 7, perPixel: [0.7, 7.5, 60, 97, 240][next(5)]!, top: next(3) === 0 ? next(rows * 8) / 8 : 0,
      rowHeight: [0.05, 0.4, 0.9, 1, 1.6, 2, 5, 14][next(8)]!, theme: next(2) === 0 ? 'light' : 'dark', mask,
    }));
    const [want, got] = [new Uint32Array(v.width * v.height), new Uint32Array(v.width * v.height)];
    plain(p, v, want);
    raster(p, v, got);
    const wrong = got.findIndex((c, at) => c !== want[at]);
    assert.equal(wrong, -1, `round ${round}: pixel ${wrong % v.width}, ${Math.floor(wrong / v.width)} of ${JSON.stringify({ ...v, mask: mask !== null, kind })}`);
    const by = next(2 * v.width - 1) - v.width + 1;
    const there = aligned({ ...v, from: v.from + by * v.perPixel });
    const part = shifted(v, there);
    if (part !== null && Number.isInteger(2 * v.perPixel)) { // else an edge that is on a pixel's edge may be rounded to either side
      pan(p, there, got, part);
      plain(p, there, want);
      assert.ok(got.every((c, at) => c === want[at]), `round ${round}: moved by ${by}`);
    }
    for (let n = 0; n < 5; n++) {
      const [x, y] = [next(v.width), next(v.height)];
      let last = -1;
      for (let i = 0; i < p.count; i++) {
        const b = mask && mask[i] === 0 ? null : boxOf(p, i, v);
        if (b && x >= b.x0 && x < b.x1 && y >= b.y0 && y < b.y1) last = i;
      }
      assert.equal(hit(p, v, x, y), last, `round ${round}: at ${x}, ${y}`);
      if (last >= 0) seen.hits++;
    }
    const r = rowsOf(p);
    seen.rows += r.ascending ? 1 : 0;
    seen.crowds += r.apart.some((a, n) => a === 1 && r.from[n + 1]! - r.from[n]! > 2 * v.width) ? 1 : 0;
    seen.summed += v.rowHeight < 2 && !p.cells && p.count > 0 && r.apart.some((a, n) => a === 1 && (r.from[n + 1]! - r.from[n]!) * 16 >= v.width) ? 1 : 0; // rows that are drawn by steps of tones
    seen.stacked += v.rowHeight < 1 && !p.cells && r.apart.filter((a, n) => a === 1 && (r.from[n + 1]! - r.from[n]!) * 16 >= v.width).length > 1 ? 1 : 0; // several of them in one row of pixels
    seen.mixed += r.most > 1 ? 1 : 0;
    seen.masked += mask ? 1 : 0;
    seen.announced += bars.some((b) => b.class === 4 && (b.flags ?? 0) & 128) ? 1 : 0;
  }
  for (const [what, n] of Object.entries(seen)) assert.ok(n >= 20, `${what}: ${n} of 400`);
});

test('bars of many years are drawn at every zoom, beside short ones', () => {
  const bars: Bar[] = [];
  for (let pe = 0; pe < 4; pe++) {
    bars.push({ start: -2_000_000_000, length: 1_999_999_000 - pe, first: pe, size: 1 });
    for (let n = 0; n < 9; n++) bars.push({ start: -900 + n * 90, length: 60, first: pe, size: 1, class: 1 + (n % 4) });
    bars.push({ start: 0, length: 4_294_967_295, first: pe, size: 1, class: 3 });
  }
  const p = parse(encode(bars, Array(40).fill(1), 4));
  for (const perPixel of [0.19, 1, 60, 86_400, 3e7]) {
    for (const from of [-1e9, 500, 1000, 1e9]) {
      const v = aligned(port({ width: 90, height: 8, from, perPixel, rowHeight: 1 }));
      const [want, got] = [new Uint32Array(v.width * v.height), new Uint32Array(v.width * v.height)];
      plain(p, v, want);
      raster(p, v, got);
      assert.deepEqual(got, want, `${perPixel} s a pixel from ${from}`);
    }
  }
});

test('what is moved by pixels is what is drawn anew', () => {
  const p = scene();
  const cells: Picture = { ...p, count: 0, cells: Uint8Array.from({ length: p.width * 64 }, (_, i) => (i * 7 + (i >> 8)) % 80), height: 64 };
  for (const picture of [p, cells, null]) {
    for (const by of [0, 1, -1, 17, -40, 299, -299]) {
      const a = aligned(port({ width: 300, height: 180, from: 3000, perPixel: 240, rowHeight: 6.25 }));
      const b = aligned({ ...a, from: a.from + by * a.perPixel + 1 }); // a second is less than a pixel
      const out = new Uint32Array(a.width * a.height);
      raster(picture, a, out);
      assert.equal(shifted(a, b), by);
      const [x0, x1] = pan(picture, b, out, by);
      assert.equal(x1 - x0, Math.abs(by));
      const want = new Uint32Array(a.width * a.height);
      raster(picture, b, want);
      assert.equal(hashOf(out), hashOf(want), `by ${by}`);
    }
  }
  const a = port();
  for (const change of [{ width: 41 }, { perPixel: 61 }, { top: 1 }, { theme: 'dark' as Theme }, { mask: new Uint8Array(1) }, { from: 1000 + 40 * 60 }]) assert.equal(shifted(a, { ...a, ...change }), null, JSON.stringify(change));
});

test('filters leave out what is not asked for', () => {
  const p = parse(encode([
    { start: 0, length: 60, first: 0, size: 1, flags: 32 }, { start: 0, length: 60, first: 1, size: 1, flags: 8 }, { start: 0, length: 60, first: 2, size: 1, class: 2, flags: 16 },
    { start: 0, length: 60, first: 3, size: 1, class: 3 }, { start: 0, length: 60, first: 4, size: 1, class: 4 }, { start: 0, length: 60, first: 0, size: 4, flags: 64, number: 77 },
  ], [1], 5));
  const rows = { site: 's', pool: 'p', pes: 5, binding: 'early', rows: ['alpha1', 'alpha2', 'beta1', 'beta2', 'beta10'].map((name, i) => ({ name, first: i, pes: 1 })) };
  const mask = (owner: '' | 'mine' | 'others', states: ('promise' | 'held' | 'running' | 'job' | 'degraded' | 'outage' | 'over')[], words = '') => [...(maskOf(p, rows, 'site/pool', { owner, states, words }) ?? ['all'])].join('');
  assert.equal(mask('', []), 'all');
  assert.equal(mask('mine', []), '100010');
  assert.equal(mask('others', []), '011111');
  assert.equal(mask('', ['held', 'job']), '011000');
  assert.equal(mask('', ['promise']), '100000');
  assert.equal(mask('', ['over', 'running']), '001001');
  assert.equal(mask('', ['degraded', 'outage']), '000110');
  assert.equal(mask('', [], 'alpha2'), '010001');
  assert.equal(mask('', [], ' BETA1'), '001011');
  assert.equal(mask('', [], '77'), '000001');
  assert.equal(mask('', [], 'nowhere'), '000000');
  assert.equal(mask('', [], 'pool'), '111111');
  assert.equal(mask('mine', ['held'], 'alpha'), '000000');
  assert.equal([...maskOf(p, rows, 'site/pool', { owner: '', states: [], words: 'ann' }, new Set([77]))!].join(''), '000001', 'by the name of its user');
});

test('an outage whose beginning is not known fades out to the left, where nothing else is', () => {
  const outage = { start: 6000, length: 6000, first: 1, size: 1, class: 4 };
  const held = { start: 3000, length: 2700, first: 1, size: 1 };
  const v = aligned(port({ width: 200, height: 40, from: 1000, perPixel: 60, rowHeight: 10 }));
  const drawn = (bars: Bar[]) => {
    const out = new Uint32Array(v.width * v.height);
    raster(parse(encode(bars, Array(400).fill(9), 4)), v, out);
    return out;
  };
  const [known, open, beside] = [drawn([outage]), drawn([{ ...outage, flags: 2 }]), drawn([held, { ...outage, flags: 2 }])];
  const ink = pixel(fills.light.outage, ground.light, 1);
  const columns = [...open].flatMap((c, at) => (c !== known[at] ? [at % v.width] : []));
  const left = Math.round((parse(encode([outage], Array(400).fill(9), 4)).t0 + 6000 - v.from) / v.perPixel);
  assert.ok(columns.length > 60 && Math.min(...columns) >= left - 24 && Math.max(...columns) < left, `columns ${columns.join()}, the outage is at ${left}`);
  const dots = (from: number, to: number) => columns.filter((x) => x >= left + from && x < left + to).length;
  assert.ok(dots(-24, -16) < dots(-16, -8) && dots(-16, -8) < dots(-8, 0), 'the later the denser');
  const blue = pixel(fills.light.promise, ground.light, 1);
  const bar = drawn([held]);
  for (let at = 0; at < bar.length; at++) if (bar[at] === blue) assert.equal(beside[at], blue, 'what was held then is seen whole');
  assert.ok([...beside].some((c, at) => c === ink && at % v.width < left), 'beside it, the outage fades');
});

test('keys go to the nearest bar', () => {
  const p = parse(encode([
    { start: 0, length: 300, first: 0, size: 2 }, { start: 600, length: 300, first: 1, size: 1 }, { start: 1200, length: 300, first: 0, size: 1 }, { start: 0, length: 300, first: 3, size: 1 },
  ], Array(40).fill(0), 5));
  const v = port();
  assert.equal(beside(p, v, -1, 'right'), 0);
  assert.equal(beside(p, v, 0, 'right'), 2);
  assert.equal(beside(p, v, 1, 'left'), 0);
  assert.equal(beside(p, v, 0, 'down'), 3);
  assert.equal(beside(p, v, 3, 'up'), 0);
  assert.equal(beside(p, v, 2, 'right'), -1);
});

test('a view comes back from its address', () => {
  for (const v of [
    normal as View, { ...normal, site: 'a b/ü', owner: 'mine', selected: 'a b/ü/12' } as View, { ...normal, owner: 'others', states: ['held', 'outage'], words: 'n1 & <b>+', rows: 'a/b c:17' } as View, { ...normal, following: false, from: 1795219200, to: 1795305600, zone: 'Europe/Berlin', table: true }, { ...normal, from: -90 * 60, to: 86400 * 7 },
  ]) {
    assert.deepEqual(readView(writeView(v)), { view: v, wrong: [] }, writeView(v));
  }
  assert.equal(writeView(normal), '');
  for (const [query, wrong] of [['?t=now..now', 't'], ['?t=now+1h..now', 't'], ['?t=now-1y..now', 't'], ['?t=2026-11-21..now', 't'], ['?t=a..b..c', 't'], ['?tz=Mars/Olympus', 'tz'], ['?sel=7', 'sel'], ['?owner=bob', 'owner'], ['?state=held,x', 'state'], ['?rows=7', 'rows'], ['?t=now..2026-11-21T00:00:00Z', 't']]) {
    assert.deepEqual(readView(query!), { view: normal, wrong: [wrong] }, query);
  }
  assert.equal(readView('?mine=1').view.owner, 'mine');
  const now = 1795219213;
  assert.deepEqual(frozen(normal, now), { ...normal, following: false, from: now - 7200, to: now + 79200 });
  assert.deepEqual(moving(frozen(normal, now), now), normal);
  assert.equal(offset('now-2h'), -7200);
  assert.equal(offset('2h'), null);
  assert.equal(relative(79200), 'now+22h');
  assert.equal(relative(-59), 'now-59s');
});

test('days are as long as they are', () => {
  const at = (text: string) => Date.parse(text) / 1000;
  assert.equal(aheadOfUTC(at('2026-07-01T00:00:00Z'), 'Europe/Berlin'), 7200);
  assert.equal(aheadOfUTC(at('2026-01-01T00:00:00Z'), 'Asia/Kathmandu'), 20700);
  for (const [day, hours] of [['2026-03-29', 23], ['2026-10-25', 25], ['2026-06-01', 24]] as const) {
    const marks = ticks(at(`${day}T00:00:00Z`) - 12 * 3600, at(`${day}T00:00:00Z`) + 36 * 3600, 86400, 'Europe/Berlin').filter((t) => t.label >= day);
    assert.equal(marks[0]!.label, day);
    assert.equal((marks[1]!.at - marks[0]!.at) / 3600, hours, day);
  }
  const hours = ticks(at('2026-11-23T04:10:00Z'), at('2026-11-24T04:00:00Z'), 5000, 'UTC');
  assert.deepEqual(hours.slice(0, 2).map((t) => t.label), ['06:00', '08:00']);
  assert.deepEqual(hours.filter((t) => t.strong).map((t) => t.label), ['2026-11-24']);
  assert.equal(time(at('2026-11-23T23:30:00Z'), 'Europe/Berlin'), 'Tue 2026-11-24 00:30');
  assert.equal(period(at('2026-11-23T22:00:00Z'), at('2026-11-23T23:30:00Z'), 'UTC'), 'Mon 2026-11-23 22:00 – 23:30');
  assert.equal(period(at('2026-11-23T22:00:00Z'), at('2026-11-23T23:30:00Z'), 'Europe/Berlin'), 'Mon 2026-11-23 23:00 – Tue 2026-11-24 00:30');
  assert.equal(length(9000), '2 h 30 min');
  assert.equal(length(59), '59 s');
});

/** luminance and contrast are those of WCAG 2.2. */
function luminance(hex: string): number {
  const [r, g, b] = rgb(hex).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test('every colour stands out from the ground', () => {
  for (const theme of ['light', 'dark'] as Theme[]) {
    for (const [name, hex] of Object.entries(fills[theme])) {
      const [a, b] = [luminance(hex), luminance(ground[theme])].sort((x, y) => y - x) as [number, number];
      const contrast = (a + 0.05) / (b + 0.05);
      assert.ok(contrast >= 3.3, `${theme} ${name}: ${contrast.toFixed(2)}`);
    }
  }
});

test('a start is found in its stretch, and what stands against it is said with its end', () => {
  const iso = (at: number) => new Date(at * 1000).toISOString();
  const [lane] = lanesOf([{ site: 's', pool: 'p', npe: 8, duration: 3600, stretches: [
    { first: iso(0), last: iso(59), end: iso(3659) },
    { first: iso(60), last: iso(119), refusal: { reason: 'no_capacity', detail: 'd', wanted: 8, nearest: { npe: 3, duration: 3600, start: iso(60) } } },
    { first: iso(120), last: iso(179), refusal: { reason: 'quota', detail: 'your limit share is 9', wanted: 8 } },
  ] }], 179);
  assert.deepEqual([-1, 0, 59, 60, 119, 120, 179, 180].map((at) => stretchAt(lane!, at)), [-1, 0, 0, 1, 1, 2, 2, -1]);
  assert.equal(said(lane!, 30, 'UTC'), '8 PEs for 1 h can start at Thu 1970-01-01 00:00, and at any time until Thu 1970-01-01 00:00.');
  assert.equal(said(lane!, 60, 'UTC'), '8 PEs for 1 h cannot start at Thu 1970-01-01 00:01: 5 of 8 PEs are missing: at most 3 are free for 1 h. That is so until Thu 1970-01-01 00:01.');
  assert.match(said(lane!, 130, 'UTC'), /your limit share is 9. That is so for all later times/);
  assert.equal(said(lane!, 999, 'UTC'), 'Not known yet.');
  assert.match(said({ ...lane!, refusal: { reason: 'too_large', detail: '9 PEs', wanted: 9 } }, 0, 'UTC'), /at no time: 9 PEs\./);
});

test('a refusal says what is missing, in the zone of the page', () => {
  const no = { reason: 'no_capacity', detail: 'd', site: 's', pool: 'p', wanted: 8, nearest: { npe: 3, duration: 3600, start: '2026-07-01T10:00:00Z' } };
  assert.equal(refused(no, 'Europe/Berlin'), 's, p: 5 of 8 PEs are missing: at most 3 are free for 1 h, from Wed 2026-07-01 12:00 Europe/Berlin on');
  assert.equal(refused({ ...no, nearest: { ...no.nearest, npe: 0 } }, 'UTC'), 's, p: no PE is free for 1 h');
  assert.equal(refused({ reason: 'quota', detail: 'your limit', wanted: 8 }, 'UTC'), 'your limit');
});

test('shades are filtered by the service, single bars here', () => {
  const mine = queryOf({ owner: 'mine', states: ['held', 'running'], words: ' n1&x ' });
  assert.equal(mine, '&owner=mine&state=held,running&name=n1%26x');
  assert.equal(queryOf({ owner: '', states: [], words: '  ' }), '');
  assert.deepEqual(filterToSend(null, mine), { send: '', again: false });
  assert.deepEqual(filterToSend({ filter: '', shades: false }, mine), { send: '', again: false });
  assert.deepEqual(filterToSend({ filter: '', shades: true }, mine), { send: mine, again: true });
  assert.deepEqual(filterToSend({ filter: '', shades: true }, ''), { send: '', again: false });
  assert.deepEqual(filterToSend({ filter: mine, shades: true }, mine), { send: mine, again: false });
  assert.deepEqual(filterToSend({ filter: mine, shades: false }, ''), { send: '', again: true }); // the others are not here
});

test('a finer port shows the same with more pixels', () => {
  const p = parse(encode([{ start: 360, length: 570, first: 1, size: 2, flags: 32 }], Array(40).fill(0), 5));
  const coarse = aligned(port());
  const fine = finer(coarse, 2);
  assert.deepEqual([fine.width, fine.height, fine.from, fine.width * fine.perPixel], [80, 40, coarse.from, coarse.width * coarse.perPixel]);
  const mine = rgb(fills.light.mine).join();
  const [few, many] = [drawn(p, coarse), drawn(p, fine)];
  const left = [...Array(80).keys()].find((x) => many(x, 12).join() === mine)!;
  for (let x = 0; x < 40; x++) if (few(x, 6).join() === mine) assert.ok(many(2 * x + 1, 12).join() === mine, `${x} is lost`);
  assert.ok(left % 2 === 1, `it begins at ${left}, which a coarse pixel cannot show`);
});
