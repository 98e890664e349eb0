// Measures the rasteriser beside the plain one, in alternation: npm run bench. Counts of bars and pixels say what each draws.

import { cpus } from 'node:os';
import { type Picture } from '../src/picture.js';
import { aligned, hit, pan, raster, type Port } from '../src/raster.js';
import { eachRun } from '../src/rows.js';
import { plain } from '../test/plain.js';

const day = 86_400;

/** harbour returns a picture of rows that are held all the time, three days long. */
function harbour(rows: number, each: number): Picture {
  let seed = 7;
  const next = (n: number) => (seed = (seed * 48271) % 2147483647) % n; // Park and Miller
  const count = rows * each;
  const whole = () => new Uint32Array(count);
  const p: Picture = { t0: 0, step: 60, width: 4320, height: rows, count, lo: 0, group: 1, generation: 1, event: '0', pes: rows, cells: null, free: new Uint32Array(4320), start: new Int32Array(count), length: whole(), first: whole(), size: whole().fill(1), number: whole(), class: new Uint8Array(count), flags: new Uint8Array(count) };
  const lasts = Math.floor((3 * day) / each);
  for (let i = 0; i < count; i++) {
    p.first[i] = Math.floor(i / each);
    p.start[i] = Math.floor(((i % each) * 3 * day) / each);
    p.length[i] = lasts - next(Math.ceil(lasts / 2));
    p.number[i] = i + 1;
    p.class[i] = 1 + next(4);
  }
  return p;
}

/** shades returns the cells that the service makes of too many bars. */
function shades(): Picture {
  const p = harbour(1, 1);
  return { ...p, count: 0, start: new Int32Array(0), step: 240, width: 1080, height: 500, group: 2, pes: 1000, cells: Uint8Array.from({ length: 1080 * 500 }, (_, i) => 16 + ((i * 7 + (i >> 9)) % 64)) };
}

const port = (change: Partial<Port>): Port => aligned({ width: 1600, height: 900, from: 0, perPixel: (3 * day) / 1600, top: 0, rowHeight: 0.9, theme: 'light', mask: null, ...change });

const median = (list: number[]) => [...list].sort((a, b) => a - b)[list.length >> 1]!;

function time(run: () => void): number {
  const began = performance.now();
  run();
  return performance.now() - began;
}

const rounds = 15;
const [many, crowd, tall, cells] = [harbour(1000, 200), harbour(1000, 1000), harbour(1000, 50), shades()];
console.log(`${cpus()[0]?.model ?? ''}, Node ${process.version}, medians of ${rounds} in alternation\n`);
console.log('| what | bars looked at | plain | now |\n|---|---|---|---|');
for (const [what, p, v] of [
  ['200,000 bars, all in view', many, port({})],
  ['200,000 bars, a day of them', many, port({ from: day, perPixel: day / 1600 })],
  ['200,000 bars, 60 rows of a day', many, port({ from: day, perPixel: day / 1600, rowHeight: 15, top: 400 })],
  ['1,000,000 bars, all in view', crowd, port({})],
  ['1,000,000 bars, seven days', crowd, port({ perPixel: (7 * day) / 1600 })],
  ['50,000 bars, rows of 2 pixels', tall, port({ rowHeight: 2, height: 1120, top: 100 })],
  ['500 × 1080 cells', cells, port({ rowHeight: 0.9, perPixel: (2.7 * day) / 1600 })],
] as [string, Picture, Port][]) {
  const out = [new Uint32Array(v.width * v.height), new Uint32Array(v.width * v.height)] as const;
  const took: [number[], number[]] = [[], []];
  for (let n = -2; n < rounds; n++) { // the first are warm-up
    const pair = [time(() => plain(p, v, out[0])), time(() => raster(p, v, out[1]))] as const;
    if (n >= 0) pair.forEach((t, k) => took[k]!.push(t));
  }
  if (out[0].some((c, at) => c !== out[1][at])) throw new Error(`${what}: not the same pixels`);
  let seen = 0;
  eachRun(p, v.from - v.perPixel - p.t0, v.from + v.width * v.perPixel - p.t0, v.top - 1 / v.rowHeight, v.top + (v.height + 1) / v.rowHeight, (i0, i1) => { seen += i1 - i0; });
  console.log(`| ${what} | ${seen.toLocaleString('en')} of ${p.count.toLocaleString('en')} | ${median(took[0]).toFixed(1)} ms | ${median(took[1]).toFixed(1)} ms |`);
}
const v = port({ from: day, perPixel: day / 1600 });
const out = new Uint32Array(v.width * v.height);
raster(many, v, out);
const moved = Array.from({ length: 40 }, (_, n) => time(() => pan(many, { ...v, from: v.from + (n + 1) * 5 * v.perPixel }, out, 5)));
const pointed = Array.from({ length: 40 }, (_, n) => time(() => hit(many, v, 20 * n, 15 * n)));
const indexed = Array.from({ length: rounds }, () => {
  const fresh = { ...many };
  return time(() => eachRun(fresh, 0, 1, 0, 0, () => undefined));
});
console.log(`\nPan by 5 pixels ${median(moved).toFixed(2)} ms; the bar at a point ${median(pointed).toFixed(3)} ms; rows of a picture that is new ${median(indexed).toFixed(1)} ms.`);
