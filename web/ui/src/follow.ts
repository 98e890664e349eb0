// What lists and tables show: asked for, kept while it cannot be asked again, and asked anew
// when something happened.

import { useCallback, useEffect, useRef, useState } from 'react';
import { Failure, get, now } from './api.js';
import { listen } from './live.js';

/** useChanges counts what happens, at most twice a second, and knows whether it would hear of it. */
export function useChanges(onLive: (live: boolean) => void, onEnded: () => void): { changes: number; live: boolean; clock: number } {
  const [changes, setChanges] = useState(0);
  const [live, setLive] = useState(true);
  const [clock, setClock] = useState(now);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const touch = useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      setChanges((n) => n + 1);
      setClock(now());
    }, 500);
  }, []);
  useEffect(() => onLive(live), [live, onLive]);
  useEffect(
    () =>
      listen((h) => {
        if (h.kind === 'ended') onEnded();
        else if (h.kind === 'lost') setLive(false);
        else if (h.kind !== 'who') {
          if (h.kind === 'open') setLive(true);
          touch();
        }
      }),
    [onEnded, touch],
  );
  useEffect(() => {
    const tick = setInterval(() => setClock(now()), 5000);
    return () => clearInterval(tick);
  }, []);
  useEffect(() => {
    if (live) return;
    const poll = setInterval(touch, 15000);
    return () => clearInterval(poll);
  }, [live, touch]);
  return { changes, live, clock };
}

export interface Asked<T> { value: T | null; failure: Failure | null; seen: number; again: () => void }

/** useAsked asks for something, and again with each change. What was known stays while it cannot be asked. */
export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, about: string, changes: number, onEnded?: () => void): Asked<T> {
  const [state, set] = useState<{ about: string; value: T | null; failure: Failure | null; seen: number }>({ about, value: null, failure: null, seen: 0 });
  const [tries, setTries] = useState(0);
  const how = useRef(ask);
  how.current = ask;
  useEffect(() => {
    const abort = new AbortController();
    how.current(abort.signal).then(
      (value) => abort.signal.aborted || set({ about, value, failure: null, seen: now() }),
      (e: unknown) => {
        if (abort.signal.aborted) return;
        const failure = e instanceof Failure ? e : new Failure({ status: 0, title: 'The answer cannot be read', detail: String(e), code: '' });
        if (failure.problem.status === 401) onEnded?.();
        set((s) => (s.about === about ? { ...s, failure } : { about, value: null, failure, seen: 0 }));
      },
    );
    return () => abort.abort();
  }, [about, changes, tries, onEnded]);
  const again = useCallback(() => setTries((n) => n + 1), []);
  return state.about === about ? { value: state.value, failure: state.failure, seen: state.seen, again } : { value: null, failure: null, seen: 0, again };
}

/** useGot is useAsked for one address. */
export const useGot = <T,>(path: string, changes: number, onEnded?: () => void) => useAsked<T>((signal) => get<T>(path, signal), path, changes, onEnded);

/** useAddress keeps what of a page is looked at in the address of the page. */
export function useAddress() {
  const [query, set] = useState(() => new URLSearchParams(location.search));
  useEffect(() => {
    const back = () => set(new URLSearchParams(location.search));
    addEventListener('popstate', back);
    return () => removeEventListener('popstate', back);
  }, []);
  const change = useCallback((name: string, value: string) => {
    const next = new URLSearchParams(location.search);
    if (value) next.set(name, value);
    else next.delete(name);
    history.replaceState(null, '', location.pathname + (next.size ? '?' + next : ''));
    set(next);
  }, []);
  return [query, change] as const;
}
