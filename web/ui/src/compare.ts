// What is compared in the laboratory, as it is chosen and as it is asked for. Pure.

export interface Log { id: string; name: string; bytes: number; expires: string }
export interface Comparison {
  id: string; user: string; state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'; log?: string; done: number; runs: number; command: string;
  notes: string[]; trouble?: string; made: string; started?: string; ended?: string; expires?: string; files: string[];
}
export interface Lab { comparisons: Comparison[]; logs: Log[]; max_bytes: number; kept_seconds: number }
export interface Cell { value: string; change: string; verdict: string }
export interface Results {
  title: string; count: string; drawn: string; against: string; intervals: boolean; sentence: string;
  figures: { name: string; title: string; unit: string }[]; rows: { name: string; baseline: boolean; cells: Cell[] }[];
  best: { title: string; where: string; value: string; change: string }[]; drawings: { name: string; title: string; caption: string }[];
}

/** placements, passes and others are what berth lab knows; a test in cmd/berth compares them. */
export const placements = ['first-fit', 'pe-best', 'pe-worst', 'duration-best', 'duration-worst', 'area-best', 'area-worst', 'least-pressure'];
export const passes = ['easy', 'conservative', 'fcfs', 'lazy'];
export const others = ['preset', 'choice', 'horizon', 'order', 'match', 'trigger', 'every', 'immediate', 'compress', 'staging', 'unaware', 'preempt', 'run-times', 'noise', 'overrun', 'extension', 'artime-factor', 'reserve-share', 'failures', 'waiting-limit', 'umed'];

/** Form is what is chosen; texts are as they were typed. */
export interface Form {
  past: boolean; from: string; to: string; log: string; pes: string; as: string; estimates: boolean; jobs: string;
  policies: string[]; bindings: string[]; passes: string[]; load: string; slack: string; other: string; otherValues: string;
  replications: string; baseline: string;
}

export const usual: Form = {
  past: true, from: '', to: '', log: '', pes: '', as: 'requests', estimates: false, jobs: '', policies: ['first-fit', 'pe-worst'], bindings: [], passes: ['easy', 'conservative'],
  load: '', slack: '', other: '', otherValues: '', replications: '5', baseline: '',
};

/** valuesOf divides values as berth lab does: at semicolons if there is one, else at commas. */
export const valuesOf = (text: string) => text.split(text.includes(';') ? ';' : ',').map((v) => v.trim()).filter((v) => v !== '');

/** inFields says what berth lab says of its flags with the names of the fields that they come from. */
export const inFields = (said: string, labels: Partial<Record<string, string>>) => said.replace(/--([a-z-]+)/g, (flag, name: string) => labels[name] ?? flag);

/** over is whether nothing more comes of a comparison. */
export const over = (c: Comparison) => c.state === 'done' || c.state === 'failed' || c.state === 'cancelled';

/** drawn is whether a form has its windows or anything else drawn at random, so that repeating it tells something. */
export const drawn = (f: Form) => (f.past || f.as === 'jobs' ? ['noise', 'failures'].includes(f.other) : true);

/** numbers is whether each value of a text is a number of at least so much. */
const numbers = (text: string, least: number) => valuesOf(text).every((v) => /^\d*\.?\d+$/.test(v) && Number(v) >= least);
const whole = (text: string, most: number) => /^\d+$/.test(text.trim()) && Number(text) >= 1 && Number(text) <= most;

export type Field = 'pes' | 'jobs' | 'load' | 'slack' | 'replications' | 'otherValues';

/** wrong returns which fields cannot be read. */
export function wrong(f: Form): Field[] {
  const list: Field[] = [];
  if (!f.past) {
    if (f.pes.trim() !== '' && !whole(f.pes, 1_048_576)) list.push('pes');
    if (f.jobs.trim() !== '' && !whole(f.jobs, 2_147_483_647)) list.push('jobs');
    if (!numbers(f.load, 0.001)) list.push('load');
    if (f.as !== 'jobs' && !numbers(f.slack, 0)) list.push('slack');
  }
  if (drawn(f) && !whole(f.replications, 100)) list.push('replications');
  if (f.other !== '' && valuesOf(f.otherValues).length === 0) list.push('otherValues');
  return list;
}

/** chosen returns everything that is set, in the order in which it is compared. */
function chosen(f: Form): { name: string; values: string[] }[] {
  const list: { name: string; values: string[] }[] = [];
  const add = (name: string, values: string[]) => values.length > 0 && list.push({ name, values: [...new Set(values)] });
  if (f.past || f.as !== 'jobs') add('policy', f.policies);
  add('bind', f.bindings);
  if (!f.past) {
    if (f.as !== 'requests') add('backfill', f.passes);
    add('arrival-factor', valuesOf(f.load));
    if (f.as !== 'jobs') add('deadline-factor', valuesOf(f.slack));
  }
  if (f.other !== '') add(f.other, valuesOf(f.otherValues));
  return list;
}

/** sweepOf is what differs. */
export const sweepOf = (f: Form) => chosen(f).filter((d) => d.values.length > 1);

/** combinations is how many there are, and runs how many simulations they are. */
export const combinations = (f: Form) => sweepOf(f).reduce((n, d) => n * d.values.length, 1);
export const runs = (f: Form) => combinations(f) * (drawn(f) && whole(f.replications, 100) ? Number(f.replications) : 1);

/** baselines are what the others can be compared with: one value of what differs. */
export const baselines = (f: Form) => sweepOf(f).flatMap((d) => d.values.map((v) => `${d.name}=${v}`));

/** bodyOf is what is sent. from and to are stamps, or empty. */
export function bodyOf(f: Form, from: string, to: string): object {
  const settings: Record<string, string> = {};
  for (const d of chosen(f)) if (d.values.length === 1) settings[d.name] = d.values[0]!;
  if (!f.past) {
    if (f.pes.trim() !== '') settings.pes = f.pes.trim();
    if (f.jobs.trim() !== '') settings.jobs = f.jobs.trim();
    if (f.as !== 'requests') settings.as = f.as;
    if (f.estimates) settings.estimates = 'true';
  }
  return {
    ...(f.past ? { journal: { ...(from && { from }), ...(to && { to }) } } : { log: f.log }),
    settings, sweep: sweepOf(f), ...(drawn(f) && { replications: Number(f.replications) }), ...(baselines(f).includes(f.baseline) && { baseline: f.baseline }),
  };
}

/** size says how large a file is. */
export const size = (bytes: number) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1000).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
