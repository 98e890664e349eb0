import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aheadOfUTC, length, period, ticks, time } from '../src/clock.js';
import { fills, ground, rgb, type Theme } from '../src/palette.js';
import { parse, type Picture } from '../src/picture.js';
import { beside, hit, raster, type Port } from '../src/raster.js';
import { offset, readView, relative, writeView, normal } from '../src/view.js';

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

const port = (change: Partial<Port> = {}): Port => ({ width: 40, height: 20, from: 1000, perPixel: 60, top: 0, rowHeight: 4, theme: 'light', mineOnly: false, ...change });

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
  const kinds = { promise: {}, job: { class: 2 }, degraded: { class: 3 }, outage: { class: 4 }, held: { flags: 8 }, active: { flags: 16 }, provisional: { flags: 1 } };
  const all = Object.values(kinds).map(texture);
  assert.equal(new Set(all).size, all.length, 'two kinds have the same shape');
});

test('mine only leaves others out, but not what is out of use', () => {
  const p = parse(encode([{ start: 0, length: 600, first: 0, size: 1 }, { start: 0, length: 600, first: 1, size: 1, flags: 32 }, { start: 0, length: 600, first: 2, size: 1, class: 4 }], Array(40).fill(0), 5));
  const at = drawn(p, port({ mineOnly: true }));
  assert.deepEqual(at(3, 2), [255, 255, 255]);
  assert.deepEqual(at(3, 6), rgb(fills.light.mine));
  assert.notDeepEqual(at(3, 9), [255, 255, 255]);
  assert.equal(hit(p, port({ mineOnly: true }), 3, 2), -1);
  assert.equal(hit(p, port(), 3, 2), 0);
  assert.equal(hit(p, port(), 3, 6), 1);
  assert.equal(hit(p, port(), 30, 6), -1);
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
    normal, { ...normal, site: 'a b/ü', mine: true, selected: 'a b/ü/12' }, { ...normal, following: false, from: 1795219200, to: 1795305600, zone: 'Europe/Berlin', table: true }, { ...normal, from: -90 * 60, to: 86400 * 7 },
  ]) {
    assert.deepEqual(readView(writeView(v)), { view: v, wrong: [] }, writeView(v));
  }
  assert.equal(writeView(normal), '');
  for (const [query, wrong] of [['?t=now..now', 't'], ['?t=now+1h..now', 't'], ['?t=now-1y..now', 't'], ['?t=2026-11-21..now', 't'], ['?t=a..b..c', 't'], ['?tz=Mars/Olympus', 'tz'], ['?sel=7', 'sel'], ['?t=now..2026-11-21T00:00:00Z', 't']]) {
    assert.deepEqual(readView(query!), { view: normal, wrong: [wrong] }, query);
  }
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
