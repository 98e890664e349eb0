// What operators are told and do, except pictures. Pure.

import { length } from './clock.js';
import { parseLength, parseTime, quoted, spoken, stampOf } from './grammar.js';
import { words } from './words.js';

export interface Node { name: string; condition: string; reason?: string; since?: string; busy?: number }
export interface Limit { limit: string; unit: string; site?: string; pool?: string; allowed?: number; used?: number; about: string }
export interface Quota { user: string; role: string; limits: Limit[]; sites?: string[] }
export interface SharedQuota { account?: string; qos?: string; partition?: string; limits: Limit[] }
/** Holder is whose limits are listed: a user's, or those of an account, a QOS or a partition, which all who ask in it share. */
export interface Holder { name: string; what: string; limits: Limit[]; sites?: string[] }
export const holders = (got: { quotas: Quota[]; shared?: SharedQuota[] } | null | undefined): Holder[] => [
  ...(got?.quotas ?? []).map((q) => ({ name: q.user, what: q.role, limits: q.limits, sites: q.sites })),
  ...(got?.shared ?? []).map((q) => ({ name: q.account ?? q.qos ?? q.partition ?? '', what: q.account !== undefined ? 'account' : q.qos !== undefined ? 'QOS' : 'partition', limits: q.limits })),
];

/** drainLine is how the command line drains nodes, or brings them back if there is no reason. */
export function drainLine(site: string, nodes: string[], reason: string | null): string {
  const what = `berth sites ${reason === null ? 'resume' : 'drain'} ${quoted(site)}`;
  const why = reason ? ` --reason ${quoted(reason)}` : '';
  return nodes.length === 1 ? `${what} ${quoted(nodes[0]!)}${why}` : `for n in ${nodes.map(quoted).join(' ')}; do ${what} "$n"${why}; done`;
}

/** feedLine is how the command line makes a calendar feed. */
export const feedLine = (site: string, note: string) => ['berth feed create', site && `--site ${quoted(site)}`, note && `--note ${quoted(note)}`].filter(Boolean).join(' ');

/** tokenLine is how the command line makes a token. */
export const tokenLine = (t: { user: string; role: string; note?: string; expires?: string; sites?: string[]; scopes?: string[] }) =>
  [`berth token add ${quoted(t.user)}`, t.role !== 'user' && `--role ${t.role}`, t.note && `--note ${quoted(t.note)}`, t.expires && `--expires ${t.expires}`, t.sites && `--sites ${t.sites.map(quoted).join(',')}`, t.scopes && `--scope ${t.scopes.join(',')}`].filter(Boolean).join(' ');

/** Account is a principal for a program, with its tokens. */
export interface Account { name: string; owner: string; role: string; note?: string; created: string; sites?: string[]; tokens: AccountToken[] }
export interface AccountToken { id: string; user: string; note?: string; created: string; expires?: string; sites?: string[]; scopes?: string[]; secret?: string }

/** accountLine is how the command line makes a service account. */
export const accountLine = (a: { name: string; role: string; note?: string }) => [`berth service-account add ${quoted(a.name)}`, a.role !== 'user' && `--role ${a.role}`, a.note && `--note ${quoted(a.note)}`].filter(Boolean).join(' ');

/** accountTokenLine is how the command line makes a token of one. */
export const accountTokenLine = (name: string, t: { note?: string; expires?: string; scopes?: string[] }) =>
  [`berth service-account token ${quoted(name)}`, t.note && `--note ${quoted(t.note)}`, t.expires && `--expires ${t.expires}`, t.scopes && `--scope ${t.scopes.join(',')}`].filter(Boolean).join(' ');

/** Maintenance is nodes that are out of use at times that are known before. */
export interface Maintenance { name: string; site: string; nodes?: string[]; reason?: string; repeat?: string; time_zone?: string; by: string; times: { start: string; end: string; note?: string }[] }
export interface MaintenanceAnswer { maintenance: Maintenance; in_the_way: string[] }

/** Planned is maintenance as the API takes it. */
export interface Planned { name: string; site: string; nodes?: string[]; start?: string; duration: number; repeat?: string; time_zone?: string; times?: number; reason?: string }

/** usualMaintenance is what stands in the form at first. */
export const usualMaintenance = { name: '', site: '', nodes: '', start: 'tomorrow 08:00', duration: '4h', repeat: '', times: '5', reason: '' };

/** readMaintenance reads the fields. Nothing is planned if one of them is wrong, or the name or the length is missing. */
export function readMaintenance(f: typeof usualMaintenance, now: number, zone: string): { wanted: Planned | null; start: number | null; wrong: Set<keyof typeof usualMaintenance> } {
  const [name, nodes, repeat, reason] = [f.name.trim(), f.nodes.trim(), f.repeat.trim(), f.reason.trim()];
  const begins = f.start.trim() === '' ? undefined : parseTime(f.start, now, zone);
  const duration = parseLength(f.duration);
  const times = repeat === '' || f.times.trim() === '' ? undefined : /^\d{1,4}$/.test(f.times.trim()) && Number(f.times) >= 1 && Number(f.times) <= 1000 ? Number(f.times) : null;
  const faults = { name: name !== '' && !/^[\w.-]{1,64}$/.test(name), start: begins === null || (begins === undefined && repeat !== ''), duration: duration === null, times: times === null };
  const wrong = new Set((Object.keys(faults) as (keyof typeof faults)[]).filter((k) => faults[k]));
  const wanted = wrong.size > 0 || name === '' || f.site === '' ? null : {
    name, site: f.site, ...(nodes && { nodes: [nodes] }), ...(begins && { start: stampOf(begins) }), duration: duration!, ...(repeat && { repeat, time_zone: zone, ...(times && { times }) }), ...(reason && { reason }),
  };
  return { wanted, start: begins ?? null, wrong };
}

/** maintenanceLine is how the command line plans maintenance, or only says what is in its way. */
export const maintenanceLine = (m: Planned, dry: boolean) =>
  [
    `berth maintenance add ${quoted(m.name)}`, `--site ${quoted(m.site)}`, m.nodes && `--nodes ${quoted(m.nodes.join(','))}`, m.start && `--start ${m.start}`, `--duration ${spoken(m.duration)}`, m.repeat && `--repeat ${quoted(m.repeat)} --tz ${quoted(m.time_zone!)}`, m.times && `--times ${m.times}`,
    m.reason && `--reason ${quoted(m.reason)}`, dry && '--dry-run',
  ].filter(Boolean).join(' ');

/** maintenanceOff is the command that calls it off, or the time alone that begins then. */
export const maintenanceOff = (name: string, only: string) => `berth maintenance remove ${quoted(name)}${only && ` --only ${only}`}`;

/** amount writes a value of a limit for people. */
export function amount(l: Limit, value: number): string {
  if (l.unit === 'seconds') return length(value);
  if (l.unit === 'bytes') return value >= 1e6 ? `${(value / 1e6).toFixed(1)} MB` : value >= 1e3 ? `${(value / 1e3).toFixed(1)} kB` : `${value} B`;
  if (l.unit === 'PE-hours') return `${value.toFixed(1)} PE-hours`;
  return l.unit === 'count' ? String(value) : `${value} ${l.unit}`;
}

/** share is how much of a limit is used, from 0 to 1; null if it is not counted. */
export const share = (l: Limit) => (l.used === undefined || l.allowed === undefined ? null : l.allowed > 0 ? Math.min(1, l.used / l.allowed) : l.used > 0 ? 1 : 0);

/** stateOf says how a site is, in words. */
export const stateOf = (s: { adapter?: string; starting?: boolean; reachable: boolean; shadow?: boolean }) => (!s.adapter ? words.operate.recorded : s.starting ? words.operate.starting : !s.reachable ? words.operate.unreachable : s.shadow ? words.operate.watched : words.operate.reachable);

/** many is from how many nodes on the name of the site is asked for. */
export const many = 10;
