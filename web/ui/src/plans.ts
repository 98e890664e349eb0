// Plans of a workflow, which the service tells line by line as soon as each is made.

import { Failure, type Problem } from './api.js';
import type { Plan, PlannedWorkflow } from './dag.js';

export interface Line { workflow?: PlannedWorkflow; plan?: Plan; problem?: Problem; done?: boolean }

/** lines hands on the lines of an answer in JSON lines. */
export async function lines(body: ReadableStream<Uint8Array>, hear: (l: Line) => void): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += value ?? '';
    const whole = rest.split('\n');
    rest = whole.pop()!;
    for (const l of whole) if (l.trim() !== '') hear(JSON.parse(l) as Line);
    if (done) return;
  }
}

/** plans asks for plans, and throws what went wrong, also on the way. */
export async function plans(body: string, signal: AbortSignal, hear: (l: Line) => void): Promise<void> {
  let answer: Response;
  try {
    answer = await fetch('v1/workflows/plans', { method: 'POST', credentials: 'same-origin', headers: { 'Content-Type': 'application/json' }, body, signal });
  } catch (e) {
    if (signal.aborted) throw e;
    throw new Failure({ status: 0, title: 'The service does not answer', detail: 'It may be stopped, or the connection is lost.', code: 'unavailable' });
  }
  if (!answer.ok) {
    let problem: Problem = { status: answer.status, title: answer.statusText || `Status ${answer.status}`, detail: '', code: '' };
    try {
      problem = { ...problem, ...((await answer.json()) as Problem) };
    } catch {
      // A proxy answers in its own way; the status says enough.
    }
    throw new Failure(problem);
  }
  let whole = false;
  await lines(answer.body!, (l) => {
    if (l.problem) throw new Failure(l.problem);
    whole ||= Boolean(l.done);
    hear(l);
  });
  if (!whole) throw new Failure({ status: 0, title: 'The answer was cut off', detail: 'The service stopped, or the connection was lost, while it planned.', code: 'unavailable' });
}

const least = 600; // seconds of room: who reads the page and fills in the form is done by then

/** roomy returns a deadline that can still be met when it is asked for later than it was planned: the chosen one, or, where that is the tightest or near it, a twentieth of the time until then more than that, at least ten minutes. Whole minutes. */
export function roomy(chosen: number, tightest: number, planned: number): number {
  const room = Math.max(least, (tightest - planned) / 20);
  return chosen >= tightest + room ? chosen : Math.ceil((tightest + room) / 60) * 60;
}

/** halfAnHour is how long a workflow is held at most, in seconds. */
export const halfAnHour = 1800;

/** holdLasts returns how long a hold of a plan lasts from now on, in seconds: until its first task would end. What would have begun by now begins when it is booked. */
export function holdLasts(plan: Plan | null, now: number): number {
  const ends = (plan?.tasks ?? []).map((t) => {
    const [start, end] = [Date.parse(t.start) / 1000, Date.parse(t.end) / 1000];
    return end - (start <= now ? start : now);
  });
  return Math.max(0, Math.min(halfAnHour, ...ends));
}

/** read returns the text of a file, which may be packed, or null where that is longer than most bytes: a small file may unfold to a very large one. */
export async function read(file: File, most: number): Promise<string | null> {
  if (!file.name.endsWith('.gz')) return file.size > most ? null : file.text();
  const reader = file.stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(pieces).text();
    bytes += value.length;
    if (bytes > most) {
      await reader.cancel();
      return null;
    }
    pieces.push(value);
  }
}
