import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { headOf, isText, pack } from '../src/pack.js';
import { read } from '../src/plans.js';

const noise = (bytes: number) => { // which nothing compresses
  const list = new Uint8Array(bytes);
  for (let i = 0; i < bytes; i += 65_536) crypto.getRandomValues(list.subarray(i, Math.min(bytes, i + 65_536)));
  return list;
};
const quiet = () => new AbortController().signal;

test('what begins a file says whether it is a text', async () => {
  const of = async (data: Uint8Array<ArrayBuffer> | string) => { const { packed, head } = await headOf(new Blob([data])); return [packed, isText(head)]; };
  assert.deepEqual(await of('JobID|User|Partition\n1|Jürgen|main\r\n'), [false, true]);
  assert.deepEqual(await of(new Uint8Array([0x4a, 0xfc, 0x72, 0x67, 0x0a])), [false, true]); // of an encoding that is not UTF-8
  assert.deepEqual(await of(''), [false, true]); // which the service refuses as empty
  assert.deepEqual(await of(new Uint8Array(1000)), [false, false]);
  assert.deepEqual(await of(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13])), [false, false]); // a picture
  assert.deepEqual(await of(new Uint8Array(gzipSync('1 0 -1 60 8\n'.repeat(200_000)))), [true, true]);
  assert.deepEqual(await of(new Uint8Array(gzipSync(noise(300_000)))), [true, false]); // an archive, say
  assert.deepEqual(await of(new Uint8Array([0x1f, 0x8b, 8, 0, 1, 2, 3])), [true, false]); // broken
});

test('a large file is compressed while it is read', async () => {
  const content = '1 0 -1 60 8\n'.repeat(300_000);
  const told: number[] = [];
  const came = await pack(new Blob([content]), 1e6, quiet(), (n) => told.push(n));
  assert.ok('blob' in came && came.blob.size < 1e6);
  assert.equal(gunzipSync(new Uint8Array(await came.blob.arrayBuffer())).toString(), content);
  assert.equal(told.at(-1), content.length);
  assert.ok(told.every((n, i) => i === 0 || n > told[i - 1]!));
});

test('compressing ends where the result is too large, and where it is stopped', async () => {
  const large = new Blob(Array.from({ length: 200 }, () => noise(65_536)));
  const came = await pack(large, 1e6, quiet(), () => undefined);
  assert.ok('read' in came && came.read >= 1e6, JSON.stringify(came));
  const stop = new AbortController();
  let pieces = 0;
  await assert.rejects(pack(large, 1e9, stop.signal, () => { if (++pieces === 3) stop.abort(); }), { name: 'AbortError' });
  assert.ok(pieces < 20, String(pieces));
  await assert.rejects(pack(large, 1e9, AbortSignal.abort(), () => undefined), { name: 'AbortError' });
});

test('a packed workflow is unpacked to a bound', async () => {
  assert.equal(await read(new File([new Uint8Array(gzipSync('{"a":1}'))], 'a.json.gz'), 7), '{"a":1}');
  assert.equal(await read(new File([new Uint8Array(gzipSync(' '.repeat(5e6)))], 'a.json.gz'), 1e6), null);
  assert.equal(await read(new File(['12345678'], 'a.json'), 7), null);
  await assert.rejects(read(new File(['no gzip'], 'a.json.gz'), 1e6));
});
