// Whose bars are, and what they are called, as far as the service tells: pictures have no names.

import { useEffect, useState } from 'react';
import { get, type Me, type Span } from './api.js';

/** called is whose a bar is and its name, or else its id; empty if that is not told. */
export function called(spans: Span[], user: string): string {
  const first = spans[0];
  if (!first?.user) return '';
  return [first.user === user ? '' : first.user, first.name || first.id].filter(Boolean).join(', ');
}

/** agentOf says in short what a browser calls itself: its name, and the system that it is on. */
export function agentOf(agent: string): string {
  const browser = /Edg\//.test(agent) ? 'Edge' : /OPR\//.test(agent) ? 'Opera' : /Firefox\//.test(agent) ? 'Firefox' : /Chrom(e|ium)\//.test(agent) ? 'Chrome' : /Safari\//.test(agent) ? 'Safari' : '';
  const system = /Android/.test(agent) ? 'Android' : /iPhone|iPad/.test(agent) ? 'iOS' : /Windows/.test(agent) ? 'Windows' : /Mac OS X/.test(agent) ? 'macOS' : /Linux|X11/.test(agent) ? 'Linux' : '';
  return browser === '' ? agent.slice(0, 60) : system === '' ? browser : `${browser} on ${system}`;
}

/** spanned are the numbers of PEs, with words: they are not names of nodes. */
export const spanned = (pes: string) => `${/[,-]/.test(pes) ? 'PEs' : 'PE'} ${pes.replaceAll(/(\d)-(\d)/g, '$1 to $2').replaceAll(/,(?! )/g, ', ')}`;

/** Who tells whose bar a number is. */
export type Who = (number: number, mine: boolean) => Promise<string>;

const most = 500;

/** whoAt returns what tells that of a site. Only operators are told about the bars of others. */
export function whoAt(site: string, me: Me): Who {
  const known = new Map<number, Promise<string>>(); // a number stays that of the same promise
  return (number, mine) => {
    if (!mine && me.role !== 'operator') return Promise.resolve('');
    let is = known.get(number);
    if (!is) {
      if (known.size >= most) known.delete(known.keys().next().value!);
      is = get<{ spans: Span[] }>(`v1/sites/${encodeURIComponent(site)}/spans/${number}`).then((s) => called(s.spans, me.user), () => {
        known.delete(number); // it may be told later
        return '';
      });
      known.set(number, is);
    }
    return is;
  };
}

/** useWho is whose a bar is, once the pointer or the focus has rested on it. */
export function useWho(who: Who | undefined, number: number, mine: boolean): string {
  const [is, set] = useState({ number: -1, name: '' });
  useEffect(() => {
    if (!who || number < 0) return;
    let over = false;
    const timer = setTimeout(() => void who(number, mine).then((name) => over || set({ number, name })), 100);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [who, number, mine]);
  return is.number === number ? is.name : '';
}

/** useNamed is the numbers of bars whose user, name or id has what is looked for. What was found stays until the next is known. */
export function useNamed(site: string, pool: string, words: string, changes: number): ReadonlySet<number> | undefined {
  const [found, set] = useState<ReadonlySet<number>>();
  const text = words.trim();
  useEffect(() => {
    if (text === '') {
      set(undefined);
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get<{ numbers: number[] }>(`v1/gantt/named?site=${encodeURIComponent(site)}&pool=${encodeURIComponent(pool)}&name=${encodeURIComponent(text)}`, abort.signal).then((n) => set(new Set(n.numbers)), () => undefined); // then only nodes are found by name
    }, 120);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [site, pool, text, changes]);
  return found;
}
