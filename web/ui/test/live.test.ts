import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Heard, listen } from '../src/live.js';

/** Source stands in for the stream of a browser. */
class Source extends EventTarget {
  static CLOSED = 2;
  static last: Source;
  readyState = 1;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  constructor(_: string) {
    super();
    Source.last = this;
  }
  close() { this.readyState = 2; }
  say(kind: string, data: object = {}) { this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data) })); }
}

test('a gap in the stream has everything looked at anew, and so has a stream that is open again', () => {
  Object.assign(globalThis, { EventSource: Source, document: { baseURI: 'http://x/' } });
  Object.defineProperty(globalThis, 'navigator', { value: {}, configurable: true });
  const heard: Heard[] = [];
  const stop = listen((h) => heard.push(h));
  const s = Source.last;
  s.onopen!();
  s.say('occupied', { site: 's', pool: 'p', from: 'x', generation: 3 });
  s.say('accepted');
  s.say('gap');
  assert.deepEqual(heard.map((h) => h.kind), ['open', 'occupied', 'changed', 'open']);
  for (let i = 0; i < 3; i++) s.onerror!(); // the browser tries again by itself
  s.onopen!();
  s.say('end', { code: 'overflow' });
  s.say('end', { code: 'denied' });
  assert.deepEqual(heard.slice(4).map((h) => h.kind), ['lost', 'open', 'ended']);
  stop();
  s.say('accepted');
  assert.equal(heard.length, 7);
  assert.equal(s.readyState, 2);
});
