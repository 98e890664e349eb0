// What is told about one promise: its form, sentences of its history, commands about it. Pure.

import { length, period, time } from './clock.js';
import { spoken, stampOf } from './grammar.js';
import { text } from './text.js';
import { words } from './words.js';

export interface Place { site?: string; pool?: string; npe?: number; duration?: number; start?: string; end?: string; pes?: string; nodes?: string[] }

export interface Reservation extends Place {
  id: string; name?: string; series?: string; occurrence?: number; state: string; version: number; user?: string; kind?: string; ready?: string; deadline?: string; parts?: Place[]; variants?: { npe: number; duration: number }[];
  no_show?: number; expires?: string; missing?: number; checked_in?: boolean; reason?: string; refusal?: { detail: string };
  sites?: { site: string; name: string; made: boolean; trouble?: string }[]; created?: string; changed?: string; data?: { start: string; end: string };
}

export interface Happening extends Place { at: string; what: string; by?: string; parts?: Place[]; reason?: string; token?: string; address?: string; call?: string; outages?: { site: string; pool: string; npe: number; nodes?: string[]; from?: string }[] }

export interface Task { job: string; name?: string; site: string; state: string; exit_code?: number; signal?: number; reason?: string; output?: string; submitted?: string; start?: string; end?: string }

export const at = (stamp: string) => Date.parse(stamp) / 1000;

/** over says whether nothing more can become of it. */
export const over = (state: string) => ['finished', 'cancelled', 'expired', 'no_show', 'failed', 'refused'].includes(state);

/** live are the states in which something can still become of it. */
export const live = 'pending,held,confirmed,degraded,active';

/** where names the place, or places. */
export const where = (p: Place & { parts?: Place[] }) => (p.parts?.length ? p.parts.map((q) => `${q.site}, ${q.pool}`).join('; ') : p.site ? (p.pool ? `${p.site}, ${p.pool}` : p.site) : '');

/** sentence tells one thing of a history, with by how much a promise has moved. */
export function sentence(h: Happening, before: Happening | null, zone: string): string {
  let s = words.happened[h.what] ?? h.what.replaceAll('_', ' ');
  if (h.what === 'moved' && h.start && before?.start) {
    const by = at(h.start) - at(before.start);
    if (by !== 0) s += ` by ${length(Math.abs(by))}${by < 0 ? ', earlier' : ''}`;
    else s += ' to other PEs';
  }
  if (h.by) s += ` by ${h.by}`;
  if (h.site && h.npe !== undefined) s += `, ${text.pes(h.npe)} at ${where(h)}`;
  else if (h.site) s += ` at ${h.site}`; // what a site has done of it
  else if (h.parts?.length) s += `, ${h.parts.length} parts`;
  if (h.start && h.end && (h.site || h.parts?.length)) s += `, ${period(at(h.start), at(h.end), zone)}`;
  else if (h.what === 'extended' && h.end) s += ` to ${time(at(h.end), zone)}`;
  if (h.reason) s += ` (${h.reason})`;
  if (h.outages) s += `; out of use: ${h.outages.map((o) => `${o.nodes && o.nodes.length <= 4 ? o.nodes.join(', ') : `${o.nodes ? `${o.nodes.length} nodes` : text.pes(o.npe)} of ${o.site}, ${o.pool}`}${o.from ? ` from ${time(at(o.from), zone)} on` : ''}`).join(' and ')}`;
  if (h.token) s += ` [token ${h.token}, ${h.address}]`;
  return s;
}

/** placedBefore returns what gave a promise its place before each of its happenings. */
export function placedBefore(list: Happening[]): (Happening | null)[] {
  let last: Happening | null = null;
  return list.map((h) => {
    const was = last;
    if (h.start) last = h;
    return was;
  });
}

/** ended says how a task ended, or how far it is. */
export function ended(t: Task): string {
  if (t.signal) return `${t.state}, signal ${t.signal}`;
  if (t.exit_code !== undefined) return `${t.state}, exit code ${t.exit_code}`;
  return t.state.replaceAll('_', ' ');
}

/** differences lists what of a promise is another now. */
export function differences(seen: Reservation, is: Reservation, zone: string): [string, string, string][] {
  const stamp = (t?: string) => (t ? `${time(at(t), zone)} ${zone}` : '–');
  const fields: [string, (r: Reservation) => string][] = [
    ['State', (r) => r.state], ['Where', where], ['PEs', (r) => String(r.npe ?? '–')], ['Numbers of the PEs', (r) => r.pes ?? '–'], ['Start', (r) => stamp(r.start)], ['End', (r) => stamp(r.end)],
    ['Not before', (r) => stamp(r.ready)], ['Deadline', (r) => stamp(r.deadline)], ['Missing', (r) => String(r.missing ?? 0)], ['Held until', (r) => stamp(r.expires)],
  ];
  return fields.map(([name, f]): [string, string, string] => [name, f(seen), f(is)]).filter(([, a, b]) => a !== b);
}

/** Wish is what a form asks of a promise; what is as it was is not asked for. */
export interface Wish { npe?: number; duration?: number; ready?: string; deadline?: string; site?: string | null }

/** wished returns what of a form differs from the promise. */
export function wished(r: Reservation, form: { npe: number | null; duration: number | null; ready: number | null; deadline: number | null }): Wish {
  const w: Wish = {};
  if (form.npe !== null && form.npe !== r.npe) w.npe = form.npe;
  if (form.duration !== null && form.duration !== r.duration) w.duration = form.duration;
  if (form.ready !== null && (!r.ready || form.ready !== at(r.ready))) w.ready = stampOf(form.ready);
  if (form.deadline !== null && (!r.deadline || form.deadline !== at(r.deadline))) w.deadline = stampOf(form.deadline);
  return w;
}

/** modifyLine is berth modify for a wish. */
export const modifyLine = (id: string, w: Wish) =>
  ['berth modify ' + id, w.npe && `--npe ${w.npe}`, w.duration && `--duration ${spoken(w.duration)}`, w.ready && `--ready ${w.ready}`, w.deadline && `--deadline ${w.deadline}`].filter(Boolean).join(' ');

/** curl is the same for what the command line has no word for. */
export const curl = (method: string, path: string) => `curl -X ${method} "$BERTH/${path}" -H "Authorization: Bearer $TOKEN"`;
