// Calls of the service. Addresses are relative to <base>, so that a prefix needs nothing more.

export interface Problem {
  status: number;
  title: string;
  detail: string;
  code: string;
}

export class Failure extends Error {
  problem: Problem;
  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }
}

export interface Me { user: string; role: 'viewer' | 'user' | 'operator'; expires?: string }
export interface Pool { name: string; pes: number; free: number; binding: string }
export interface Node { name: string; condition: string; reason?: string }
export interface Site {
  name: string; adapter?: string; shadow?: boolean; reachable: boolean; starting?: boolean; trouble?: string; seen?: string; pools: Pool[]; nodes?: Node[]; software?: { name: string; version?: string }[];
}
export interface Row { name: string; first: number; pes: number }
export interface Rows { site: string; pool: string; pes: number; binding: string; rows: Row[] }
export interface Span { kind: string; pool: string; start?: string; end?: string; npe: number; pes?: string; state?: string; id?: string; user?: string; name?: string; seen?: string; number: number }
export interface Occupied { site: string; pool: string; from: string; to?: string; generation: number }

/** ahead is by how many milliseconds the service's clock is ahead of the browser's. */
let ahead = 0;
export const now = () => (Date.now() + ahead) / 1000;

async function send(path: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  const asked = Date.now();
  try {
    answer = await fetch(path, { credentials: 'same-origin', ...init });
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    throw new Failure({ status: 0, title: 'The service does not answer', detail: 'It may be stopped, or the connection is lost.', code: 'unavailable' });
  }
  const date = Date.parse(answer.headers.get('Date') ?? '');
  if (Number.isFinite(date)) {
    const half = (Date.now() - asked) / 2;
    const seen = date + 500 + half - Date.now(); // the header has whole seconds
    if (Math.abs(seen - ahead) > 1500) ahead = Math.abs(seen) < 1500 ? 0 : seen;
  }
  if (answer.ok || answer.status === 304) return answer;
  let problem: Problem = { status: answer.status, title: answer.statusText || `Status ${answer.status}`, detail: '', code: '' };
  try {
    problem = { ...problem, ...(await answer.json()) };
  } catch {
    // A proxy answers in its own way; the status says enough.
  }
  throw new Failure(problem);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send(path, { signal })).json() as Promise<T>;
}

export async function bytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await send(path, { signal })).arrayBuffer();
}

/** post sends JSON. Under a key asking twice is asking once. */
export async function post<T>(path: string, body: string, how: { signal?: AbortSignal; key?: string } = {}): Promise<T> {
  const headers: Record<string, string> = {};
  if (body !== '') headers['Content-Type'] = 'application/json';
  if (how.key) headers['Idempotency-Key'] = how.key;
  const answer = await send(path, { method: 'POST', headers, body: body === '' ? undefined : body, signal: how.signal });
  return answer.json() as Promise<T>;
}

/** sendFile sends a file as it is. */
export async function sendFile<T>(path: string, file: Blob, signal: AbortSignal): Promise<T> {
  return (await send(path, { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: file, signal })).json() as Promise<T>;
}

/** act sends what changes something, to the version that was seen. What has no answer returns null. */
export async function act<T>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body: object | null, version?: number): Promise<T | null> {
  const headers: Record<string, string> = { 'Idempotency-Key': crypto.randomUUID() };
  if (body) headers['Content-Type'] = 'application/json';
  if (version !== undefined) headers['If-Match'] = `"${version}"`;
  const answer = await send(path, { method, headers, body: body ? JSON.stringify(body) : undefined });
  return answer.status === 204 ? null : ((await answer.json()) as T);
}

export async function login(how: { token: string } | { code: string }): Promise<Me> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  if ('token' in how) headers.Authorization = 'Bearer ' + how.token.trim();
  const answer = await send('v1/session', { method: 'POST', headers, body: JSON.stringify('code' in how ? { code: how.code } : {}) });
  return answer.json() as Promise<Me>;
}

export async function logout(): Promise<void> {
  await send('v1/session', { method: 'DELETE' });
}
