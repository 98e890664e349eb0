// A workflow as it is read from a file, laid out and summed up. Pure.

export interface WorkflowTask { id: string; seconds: number; alpha: number; parents: number[] }
export interface PlannedTask { npe: number; start: string; end: string }
export interface Plan { planner: string; about: string; deadline?: string; tightest?: string; reason?: string; end?: string; turnaround?: number; pe_seconds?: number; critical?: number[]; tasks?: PlannedTask[] }
export interface PlannedWorkflow { name: string; notes: string[]; tasks: WorkflowTask[]; site: string; pool: string; pes: number; free: number; now: string; bound: string; held: { npe: number; start?: string; end?: string }[] }

/** largest is the largest file that is read: traces of thousands of tasks are smaller. */
export const largest = 64e6;

type Json = Record<string, unknown>;
const isObject = (v: unknown): v is Json => typeof v === 'object' && v !== null && !Array.isArray(v);
const keep = (v: unknown, names: string[]) => (isObject(v) ? Object.fromEntries(names.filter((n) => n in v).map((n) => [n, v[n]])) : v);
const list = (v: unknown, names: string[]) => (Array.isArray(v) ? v.map((t) => keep(t, names)) : v);

const ofTask = ['id', 'name', 'parents', 'children', 'runtimeInSeconds', 'runtime', 'coreCount', 'cores', 'alpha'];

/** slim returns a document in WfFormat without what plans do not need, such as lists of files, which are most of it. null if it is none. */
export function slim(doc: unknown): Json | null {
  if (!isObject(doc) || !isObject(doc.workflow)) return null;
  const flow = doc.workflow;
  const out: Json = keep(flow, ['tasks', 'jobs', 'specification', 'execution']) as Json;
  for (const n of ['tasks', 'jobs']) if (n in out) out[n] = list(out[n], ofTask);
  for (const n of ['specification', 'execution']) if (isObject(out[n])) out[n] = { tasks: list((out[n] as Json).tasks, ofTask) };
  return { ...(keep(doc, ['name', 'schemaVersion']) as Json), workflow: out };
}

/** commandsOf returns what the tasks of a document in WfFormat run, by their names. Tasks without one are left out. */
export function commandsOf(doc: unknown): Map<string, string[]> {
  const out = new Map<string, string[]>();
  const flow = isObject(doc) && isObject(doc.workflow) ? doc.workflow : {};
  for (const tasks of [flow.tasks, flow.jobs, isObject(flow.execution) && flow.execution.tasks, isObject(flow.specification) && flow.specification.tasks]) {
    for (const t of Array.isArray(tasks) ? (tasks as unknown[]) : []) {
      if (!isObject(t) || !isObject(t.command) || typeof t.command.program !== 'string') continue;
      const words = [t.command.program, ...(Array.isArray(t.command.arguments) ? t.command.arguments.map(String) : [])];
      for (const name of [t.id, t.name]) if (typeof name === 'string' && !out.has(name)) out.set(name, words);
    }
  }
  return out;
}

/** levels returns for each task on how long a path of parents it hangs. */
export function levels(tasks: { parents: number[] }[]): number[] {
  const level = new Array<number>(tasks.length).fill(-1);
  const find = (first: number) => {
    const stack = [first];
    while (stack.length > 0) {
      const i = stack[stack.length - 1]!;
      const open = tasks[i]!.parents.filter((p) => level[p]! < 0);
      if (open.length > 0) stack.push(...open);
      else {
        level[i] = tasks[i]!.parents.reduce((most, p) => Math.max(most, level[p]! + 1), 0);
        stack.pop();
      }
    }
  };
  for (let i = 0; i < tasks.length; i++) if (level[i]! < 0) find(i);
  return level;
}

/** kind is what the numbered tasks of one program have in common. */
export const kind = (id: string) => id.replace(/[_.-]?(ID|id)?[_.-]?\d+$/, '') || id;

export interface Dot { label: string; tasks: number[]; parents: number[]; level: number; place: number }

/** dots returns what a drawing of the workflow shows, task by task or those of one kind and level together, placed by four sweeps of barycentres. */
export function dots(tasks: WorkflowTask[], together: boolean): Dot[] {
  const level = levels(tasks);
  const of = new Array<number>(tasks.length);
  const out: Dot[] = [];
  const named = new Map<string, number>();
  tasks.forEach((t, i) => {
    const name = together ? `${level[i]}\0${kind(t.id)}` : String(i);
    let d = named.get(name);
    if (d === undefined) {
      d = out.length;
      named.set(name, d);
      out.push({ label: together ? kind(t.id) : t.id, tasks: [], parents: [], level: level[i]!, place: 0 });
    }
    out[d]!.tasks.push(i);
    of[i] = d;
  });
  out.forEach((d, n) => {
    d.parents = [...new Set(d.tasks.flatMap((i) => tasks[i]!.parents.map((p) => of[p]!)))].filter((p) => p !== n);
  });
  const rows: number[][] = [];
  out.forEach((d, i) => (rows[d.level] ??= []).push(i));
  const children: number[][] = out.map(() => []);
  out.forEach((d, i) => d.parents.forEach((p) => children[p]!.push(i)));
  for (const row of rows) row.forEach((d, n) => (out[d]!.place = n - (row.length - 1) / 2));
  for (let sweep = 0; sweep < 4; sweep++) {
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      const weight = new Map(row.map((d) => {
        const near = sweep % 2 === 0 ? out[d]!.parents : children[d]!;
        return [d, near.length > 0 ? near.reduce((sum, n) => sum + out[n]!.place, 0) / near.length : out[d]!.place];
      }));
      row.sort((a, b) => weight.get(a)! - weight.get(b)! || a - b);
      row.forEach((d, n) => (out[d]!.place = n - (row.length - 1) / 2));
    }
  }
  return out;
}

export interface Step { from: number; to: number; npe: number }

/** sums returns how many PEs some blocks take together over time. */
export function sums(blocks: Step[]): Step[] {
  const changes = blocks.flatMap((b) => (b.from < b.to ? [[b.from, b.npe] as const, [b.to, -b.npe] as const] : [])).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const out: Step[] = [];
  let npe = 0;
  changes.forEach(([at, by], i) => {
    npe += by;
    const next = changes[i + 1]?.[0];
    if (next === undefined || next === at || npe === 0) return;
    const last = out[out.length - 1];
    if (last && last.to === at && last.npe === npe) last.to = next;
    else out.push({ from: at, to: next, npe });
  });
  return out;
}

/** above returns steps with how much stands below each of them. */
export function above(steps: Step[], below: Step[]): (Step & { base: number })[] {
  const out: (Step & { base: number })[] = [];
  for (const s of steps) {
    let at = s.from;
    for (const b of below) {
      if (b.to <= at || b.from >= s.to) continue;
      if (b.from > at) out.push({ from: at, to: b.from, npe: s.npe, base: 0 });
      out.push({ from: Math.max(at, b.from), to: Math.min(s.to, b.to), npe: s.npe, base: b.npe });
      at = Math.min(s.to, b.to);
    }
    if (at < s.to) out.push({ from: at, to: s.to, npe: s.npe, base: 0 });
  }
  return out;
}

/** steps is for how many deadlines plans are asked. */
export const steps = 12;

/** deadlines returns deadlines from the tightest that can be met up to three times as long. */
export function deadlines(now: number, tightest: number): number[] {
  const span = Math.max(steps, 2 * (tightest - now));
  return Array.from({ length: steps }, (_, i) => Math.ceil(tightest + (span * i) / (steps - 1)));
}

/** nearest returns which of some numbers is nearest to another one. */
export const nearest = (to: number, of: number[]) => of.reduce((best, n, i) => (Math.abs(n - to) < Math.abs(of[best]! - to) ? i : best), 0);
