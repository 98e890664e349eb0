// What happens, told to all tabs of a browser over one connection: browsers open few to one
// service, and a stream takes one for as long as it lasts. One tab holds the stream, by a lock,
// and passes on what it hears; when it is closed another takes over.

import type { Occupied } from './api.js';

export type Heard = { kind: 'occupied'; occupied: Occupied } | { kind: 'changed' } | { kind: 'open' } | { kind: 'lost' } | { kind: 'ended' } | { kind: 'who' };

/** told are the events about one's own reservations and tasks, which streams name by what happened. */
const told = [
  'queued', 'accepted', 'refused', 'withdrawn', 'queued_as_job', 'confirmed', 'expired', 'started', 'failed', 'requeued', 'lost', 'extended', 'shortened', 'preempted',
  'moved', 'named', 'resized', 'modified', 'change_refused', 'checked_in', 'no_show', 'ended', 'cancelled', 'staged', 'task_started', 'task_ended', 'task_left', 'site_changed',
  'workflow_promised', 'task_over', 'workflow_replanned', 'workflow_over',
];

export function listen(hear: (h: Heard) => void): () => void {
  const channel = new BroadcastChannel('berth-events:' + document.baseURI);
  const over = new AbortController();
  let last: Heard | null = null; // of open and lost, for tabs that come later
  channel.onmessage = (m: MessageEvent<Heard>) => {
    if (m.data.kind === 'who') {
      if (last) channel.postMessage(last);
    } else hear(m.data);
  };
  const say = (h: Heard) => {
    if (over.signal.aborted) return;
    if (h.kind === 'open' || h.kind === 'lost') last = h;
    channel.postMessage(h);
    hear(h);
  };
  const hold = () =>
    new Promise<void>((done) => {
      let failures = 0;
      let source: EventSource;
      let again: ReturnType<typeof setTimeout> | undefined;
      const open = () => {
        source = new EventSource('v1/events?occupied=true');
        source.onopen = () => {
          failures = 0;
          say({ kind: 'open' }); // what happened meanwhile is looked at anew
        };
        source.onerror = () => {
          if (++failures >= 3 || source.readyState === EventSource.CLOSED) say({ kind: 'lost' });
          if (source.readyState === EventSource.CLOSED) again = setTimeout(open, 5000); // an answer that is no stream
        };
        source.addEventListener('occupied', (e) => say({ kind: 'occupied', occupied: JSON.parse((e as MessageEvent<string>).data) as Occupied }));
        for (const what of told) source.addEventListener(what, () => say({ kind: 'changed' }));
        source.addEventListener('gap', () => say({ kind: 'open' }));
        source.addEventListener('end', (e) => {
          const code = (JSON.parse((e as MessageEvent<string>).data) as { code?: string }).code;
          if (code === 'denied') say({ kind: 'ended' });
        });
      };
      open();
      over.signal.addEventListener('abort', () => {
        clearTimeout(again);
        source.close();
        done();
      });
    });
  channel.postMessage({ kind: 'who' });
  if (navigator.locks) navigator.locks.request('berth-events:' + document.baseURI, { signal: over.signal }, hold).catch(() => undefined);
  else void hold();
  return () => {
    over.abort();
    channel.close();
  };
}
