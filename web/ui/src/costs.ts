// What an offer costs the ordinary jobs, in words. Pure.

import { length } from './clock.js';
import { text } from './text.js';

/** Cost is what the API tells of an offer: seconds, and how many jobs were compared. Unless it is complete it is that much at least. */
export interface Cost { delayed_jobs: number; delay_sum: number; delay_largest: number; idle_pe_seconds: number; jobs: number; complete: boolean }

/** costOf says what an offer costs, in a line and in the sentences behind it; null if that is not known, or if there is no job that it could cost anything. */
export function costOf(c: Cost | undefined): { line: string; more: string[] } | null {
  if (!c || (c.jobs === 0 && c.complete)) return null;
  const least = !c.complete;
  const more = [text.book.costBy];
  const idle = (c.idle_pe_seconds / 3600).toFixed(1);
  if (idle !== '0.0') more.unshift(text.book.costIdle(idle, least));
  if (c.delayed_jobs > 1) more.unshift(text.book.costSum(length(c.delay_sum), least));
  if (least) more.push(text.book.costLeast);
  return { line: text.book.cost(c.delayed_jobs, c.jobs, length(c.delay_largest), least), more };
}
