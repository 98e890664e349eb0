// Files that are sent: what they are, and how those that are large get small enough, in bounded memory.

/** Packed is what came of packing: the packed file, or how much of the file was read when it had become too large. */
export type Packed = { blob: Blob } | { read: number };

/** isPacked says whether bytes begin a file that gzip made. */
export const isPacked = (head: Uint8Array) => head.length > 1 && head[0] === 0x1f && head[1] === 0x8b;

/** isText says whether bytes can begin a text, in whatever encoding that knows ASCII: one has no bytes that control something but for those that divide lines and columns. */
export const isText = (head: Uint8Array) => head.every((b) => b > 31 || (b > 8 && b < 14) || b === 26 || b === 27);

/** headOf returns the first bytes of a file, and whether gzip made it; of such a file they are those that it was made of. */
export async function headOf(file: Blob): Promise<{ packed: boolean; head: Uint8Array }> {
  const start = new Uint8Array(await file.slice(0, 1 << 16).arrayBuffer());
  if (!isPacked(start)) return { packed: false, head: start.slice(0, 4096) };
  const reader = new Blob([start]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  try {
    return { packed: true, head: ((await reader.read()).value ?? new Uint8Array()).slice(0, 4096) };
  } catch {
    return { packed: true, head: new Uint8Array([0]) }; // it is broken, and so no text
  } finally {
    reader.cancel().catch(() => undefined); // the rest of it is missing
  }
}

/** restAfter is after how many bytes the page is given time for something else. */
const restAfter = 4e6;

/** pack compresses a file by gzip while it is read, and stops as soon as the result is larger than most bytes. told hears how much of the file is read. */
export async function pack(file: Blob, most: number, signal: AbortSignal, told: (read: number) => void): Promise<Packed> {
  let read = 0, rested = 0, large = false;
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    async transform(piece, to) {
      read += piece.length;
      told(read);
      to.enqueue(piece);
      if (read - rested < restAfter) return;
      rested = read;
      await new Promise((go) => setTimeout(go)); // or a file that is read quickly leaves the page no time to be drawn
    },
  });
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const kept = new WritableStream<Uint8Array<ArrayBuffer>>({
    write(piece) {
      bytes += piece.length;
      large = bytes > most;
      if (large) throw new RangeError('too large');
      pieces.push(piece);
    },
  });
  try {
    await file.stream().pipeThrough(counted).pipeThrough(new CompressionStream('gzip')).pipeTo(kept, { signal });
  } catch (e) {
    if (large) return { read };
    throw e;
  }
  return { blob: new Blob(pieces) };
}
