// Receivers of notices: forms, states, commands. Pure.

import { quoted, spoken } from './grammar.js';

export interface Try { at: string; status?: number; trouble?: string }

export interface Hook {
  id: string; user: string; form: string; host: string; note?: string; kinds: string[]; site?: string; text?: string; starts: number; ends: number; unused: number;
  created: string; rotated?: string; disabled?: string; failing?: string; missed?: number; waiting: number; dead: number; last?: Try; secret?: string;
}

export interface Delivery { id: string; kind: string; at: string; state: string; reservation?: string; workflow?: string; next?: string; tries: Try[] }

/** kinds are what a receiver can be told, and acting those that it is told if nothing is chosen. */
export const kinds = ['granted', 'refused', 'moved', 'degraded', 'whole', 'lost', 'starting', 'unused', 'ending', 'deadline', 'cancelled', 'ended'];
export const acting = ['moved', 'degraded', 'lost', 'unused', 'ending', 'deadline'];

/** hookState says how a receiver is, as berth notify list does. */
export const hookState = (h: Hook) => (h.disabled ? 'disabled' : h.failing ? 'fails' : 'works');

/** Wanted is a receiver to be made. */
export interface Wanted { url: string; chat: boolean; kinds: string[]; site: string; note: string; text: string; starts?: number; ends?: number; unused?: number }

/** bodyOf is what the API is asked for; what is as it is by default is left out. */
export function bodyOf(w: Wanted): Record<string, unknown> {
  const usual = w.kinds.length === acting.length && acting.every((k) => w.kinds.includes(k));
  return {
    url: w.url, ...(w.chat && { form: 'chat' }), ...(!usual && { kinds: w.kinds }), ...(w.site && { site: w.site }), ...(w.note && { note: w.note }), ...(w.chat && w.text && { text: w.text }),
    ...(w.starts !== undefined && { starts: w.starts }), ...(w.ends !== undefined && { ends: w.ends }), ...(w.unused !== undefined && { unused: w.unused }),
  };
}

/** addLine is how the command line makes it. The address may be a secret, so it is a variable there. */
export function addLine(w: Wanted): string {
  const body = bodyOf(w);
  return [
    'berth notify add "$URL"', w.chat && '--chat', body.kinds && `--kinds ${w.kinds.length === kinds.length ? 'all' : w.kinds.join(',')}`, w.site && `--site ${quoted(w.site)}`, body.text && `--text ${quoted(w.text)}`,
    w.starts !== undefined && `--starts ${spoken(w.starts)}`, w.ends !== undefined && `--ends ${spoken(w.ends)}`, w.unused !== undefined && `--unused ${spoken(w.unused)}`, w.note && `--note ${quoted(w.note)}`,
  ].filter(Boolean).join(' ');
}

/** isAddress reports whether a text could be the address of a receiver; which ones are taken the service says. */
export function isAddress(text: string): boolean {
  try {
    return ['https:', 'http:'].includes(new URL(text).protocol);
  } catch {
    return false;
  }
}
