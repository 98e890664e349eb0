// What operators are told and do, except pictures. Pure.

import { length } from './clock.js';
import { quoted } from './grammar.js';
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

/** amount writes a value of a limit for people. */
export function amount(l: Limit, value: number): string {
  if (l.unit === 'seconds') return length(value);
  if (l.unit === 'bytes') return value >= 1e6 ? `${(value / 1e6).toFixed(1)} MB` : `${value} B`;
  if (l.unit === 'PE-hours') return `${value.toFixed(1)} PE-hours`;
  return l.unit === 'count' ? String(value) : `${value} ${l.unit}`;
}

/** share is how much of a limit is used, from 0 to 1; null if it is not counted. */
export const share = (l: Limit) => (l.used === undefined || l.allowed === undefined ? null : l.allowed > 0 ? Math.min(1, l.used / l.allowed) : l.used > 0 ? 1 : 0);

/** stateOf says how a site is, in words. */
export const stateOf = (s: { adapter?: string; starting?: boolean; reachable: boolean; shadow?: boolean }) => (!s.adapter ? words.operate.recorded : s.starting ? words.operate.starting : !s.reachable ? words.operate.unreachable : s.shadow ? words.operate.watched : words.operate.reachable);

/** many is from how many nodes on the name of the site is asked for. */
export const many = 10;
