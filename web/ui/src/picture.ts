// The picture of a pool as GET /v1/gantt sends it; docs/api.md describes the form.

export const Class = { free: 0, promise: 1, job: 2, degraded: 3, outage: 4 } as const;
export const Flag = { provisional: 1, openStart: 2, openEnd: 4, held: 8, active: 16, mine: 32, over: 64, announced: 128 } as const;

export interface Picture {
  t0: number; // seconds since 1970
  step: number;
  width: number;
  height: number;
  count: number;
  lo: number;
  group: number;
  generation: number;
  event: string; // larger than what a number holds exactly
  pes: number;
  start: Int32Array; // behind t0
  length: Uint32Array;
  first: Uint32Array;
  size: Uint32Array;
  number: Uint32Array;
  class: Uint8Array;
  flags: Uint8Array;
  cells: Uint8Array | null; // if there are too many bars
  free: Uint32Array;
  own?: boolean; // only one's own bars, and what is out of use
}

/** parse reads a picture. It throws an Error that says what is wrong with it. */
export function parse(data: ArrayBuffer): Picture {
  if (data.byteLength < 64) throw new Error(`the picture has ${data.byteLength} bytes; want at least 64`);
  const view = new DataView(data);
  const magic = String.fromCharCode(...new Uint8Array(data, 0, 4));
  if (magic !== 'BGT1') throw new Error(`the picture begins with ${JSON.stringify(magic)}; want BGT1, so reload the page`);
  const u32 = (at: number) => view.getUint32(at, true);
  const form = u32(4);
  const count = u32(28);
  const width = u32(20);
  const height = u32(24);
  let at = 64;
  const words = (n: number) => {
    const from = at;
    at += 4 * n;
    return from;
  };
  const need = form === 1 ? 22 * count : width * height;
  const size = 64 + need + ((4 - (need % 4)) % 4) + 4 * width;
  if (size !== data.byteLength) throw new Error(`the picture has ${data.byteLength} bytes; want ${size}`);
  const bars = form === 1 ? count : 0;
  const start = new Int32Array(data, words(bars), bars);
  const length = new Uint32Array(data, words(bars), bars);
  const first = new Uint32Array(data, words(bars), bars);
  const pes = new Uint32Array(data, words(bars), bars);
  const number = new Uint32Array(data, words(bars), bars);
  const classes = new Uint8Array(data, at, bars);
  const flags = new Uint8Array(data, at + bars, bars);
  const cells = form === 2 ? new Uint8Array(data, at, width * height) : null;
  const strip = size - 4 * width;
  return {
    t0: Number(view.getBigInt64(8, true)), step: u32(16), width, height, count: bars, lo: u32(32), group: u32(36),
    generation: Number(view.getBigUint64(40, true)), event: view.getBigUint64(48, true).toString(), pes: u32(56),
    start, length, first, size: pes, number, class: classes, flags, cells, free: new Uint32Array(data, strip, width),
  };
}

/** end returns the second behind the last one that a picture shows. */
export const end = (p: Picture) => p.t0 + p.width * p.step;
