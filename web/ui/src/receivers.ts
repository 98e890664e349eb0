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

/** usual is how long before or after, in seconds, a receiver is told what follows from the time, if nothing is chosen; leads is which kind that is about. */
export const usual = { starts: 900, unused: 600, ends: 600 };
export const leads = { starts: 'starting', unused: 'unused', ends: 'ending' } as const;
export type Lead = keyof typeof leads;

/** hookState says how a receiver is, as berth notify list does. */
export const hookState = (h: Hook) => (h.disabled ? 'disabled' : h.failing ? 'fails' : 'works');

/** Form is what a receiver is sent. */
export type Form = 'webhook' | 'chat' | 'email';
export const forms: Form[] = ['webhook', 'chat', 'email'];

/** Wanted is a receiver to be made, or what one is to be; without a length where it is not told the kind that this is about. */
export interface Wanted { url: string; form: Form; kinds: string[]; site: string; note: string; text: string; starts?: number; ends?: number; unused?: number }

/** bodyOf is what the API is asked for; what is as it is by default is left out. */
export function bodyOf(w: Wanted): Record<string, unknown> {
  return {
    url: target(w.url), ...(w.form === 'chat' && { form: 'chat' }), ...(!same(w.kinds, acting) && { kinds: w.kinds }), ...(w.site && { site: w.site }), ...(w.note && { note: w.note }), ...(w.form === 'chat' && w.text && { text: w.text }), ...lengths(w, usual),
  };
}

/** changeOf is what the API is asked to change of a receiver: what is wanted otherwise than it is. Its address is not known here, and stays if none is wanted. */
export function changeOf(h: Hook, w: Wanted): Record<string, unknown> {
  return {
    ...(w.url && { url: target(w.url) }), ...(!same(w.kinds, h.kinds) && { kinds: w.kinds }), ...(w.site !== (h.site ?? '') && { site: w.site }), ...(w.note !== (h.note ?? '') && { note: w.note }),
    ...(w.form === 'chat' && w.text !== (h.text ?? '') && { text: w.text }), ...lengths(w, h),
  };
}

const same = (a: string[], b: string[]) => a.length === b.length && a.every((k) => b.includes(k));

/** lengths are those that are wanted otherwise than they are. */
const lengths = (w: Wanted, are: Record<Lead, number>) => Object.fromEntries((Object.keys(leads) as Lead[]).filter((l) => w[l] !== undefined && w[l] !== are[l]).map((l) => [l, w[l]]));

/** addLine is how the command line makes it. The address may be a secret, so it is a variable there; one of e-mail is none. */
export const addLine = (w: Wanted) => [`berth notify add ${isMail(w.url) ? quoted(w.url) : '"$URL"'}`, w.form === 'chat' && '--chat', ...flags(bodyOf(w))].filter(Boolean).join(' ');

/** changeLine is how the command line changes it. */
export const changeLine = (h: Hook, w: Wanted) => [`berth notify change ${quoted(h.id)}`, w.url && `--url ${isMail(w.url) ? quoted(w.url) : '"$URL"'}`, ...flags(changeOf(h, w))].filter(Boolean).join(' ');

function flags(body: Record<string, unknown>): (string | false)[] {
  const word = (name: string) => typeof body[name] === 'string' && `--${name} ${quoted(body[name])}`;
  const long = (name: Lead) => typeof body[name] === 'number' && `--${name} ${spoken(body[name])}`;
  const told = body.kinds as string[] | undefined;
  return [told ? `--kinds ${told.length === kinds.length ? 'all' : told.join(',')}` : false, word('site'), word('text'), long('starts'), long('ends'), long('unused'), word('note')];
}

/** isMail reports whether a text could be an address of e-mail, with its scheme or without. */
export const isMail = (text: string) => /^(mailto:)?[^\s@:/]+@[^\s@:/]+$/.test(text);

/** target is an address as the API takes it. */
const target = (text: string) => (isMail(text) && !text.startsWith('mailto:') ? `mailto:${text}` : text);

/** isAddress reports whether a text could be the address of a receiver; which ones are taken the service says. */
export function isAddress(text: string): boolean {
  try {
    return ['https:', 'http:'].includes(new URL(text).protocol);
  } catch {
    return false;
  }
}
