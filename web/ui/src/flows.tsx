// The workflows that the service has promised, and booking one.

import { Alert, Anchor, Button, Checkbox, Group, Paper, ScrollArea, Select, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { useRef, useState } from 'react';
import { act, Failure, get, post, type Me } from './api.js';
import { length, period, ticks, time } from './clock.js';
import type { Plan, PlannedWorkflow } from './dag.js';
import { useAsked, useGot } from './follow.js';
import { isWord, parseTime, stampOf } from './grammar.js';
import { at } from './life.js';
import { Command, Stamp, State, Trouble, Waiting } from './parts.js';
import { halfAnHour, holdLasts, roomy } from './plans.js';
import { text as shared } from './text.js';
import { words } from './words.js';

const w = words.flows;
const hours = words.workflow.hours;

interface Step {
  id: string; after?: string[]; reservation?: string; state: string; why?: string; tries?: number; retries?: number; site?: string; pool?: string; npe?: number;
  start?: string; end?: string; planned_start?: string; planned_end?: string; critical?: boolean; output?: string;
}
interface Flow {
  id: string; name?: string; user?: string; state: string; version: number; deadline?: string; end?: string; planned_end?: string; slack?: number; expires?: string; algorithm: string; planner?: string; account?: string; qos?: string;
  replanned?: number; cause?: string; why?: string; refusal?: { detail: string }; cpu_hours: number; tasks: Step[];
}
interface Offer { deadline: string; algorithm: string; end: string; cpu_hours: number; critical: string[] }
interface Answer { decision: string; workflow: Flow; offers?: Offer[] }

const isOver = (state: string) => !['held', 'promised', 'running'].includes(state);
const good: Record<string, string> = { held: 'held', promised: 'confirmed', running: 'active', succeeded: 'ok', failed: 'failed', refused: 'refused' };
const FlowState = ({ of }: { of: string }) => <State of={good[of] ?? of} words={w.states[of] ?? of} />;
const spare = (f: Flow) => (f.slack === undefined ? (f.deadline ? '–' : w.noDeadline) : f.slack < 0 ? w.late(length(-f.slack)) : w.slack(length(f.slack)));
const left = (f: Flow, clock: number) => words.promises.left(length(Math.max(0, at(f.expires!) - clock)));
const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);
const most = 100; // tries of a task that the service takes
const drawn = 200; // lanes that a browser scrolls well

/** Flows lists workflows, and shows all about the one that the address names. */
export function Flows({ me, zone, clock, changes, query, change, onActed, onEnded }: { me: Me; zone: string; clock: number; changes: number; query: URLSearchParams; change: (name: string, value: string) => void; onActed: (id: string) => void; onEnded: () => void }) {
  const all = query.get('over') === '1';
  const everybody = me.role === 'operator' && query.get('everybody') === '1';
  const chosen = query.get('flow') ?? '';
  const path = `v1/workflows?limit=200${everybody ? '' : `&user=${encodeURIComponent(me.user)}`}${all ? '' : '&state=held,promised,running'}`;
  const { value, failure, seen, again } = useAsked<{ workflows: Flow[] }>((signal) => fetchList(path, signal), path, changes, onEnded);
  const list = value?.workflows ?? [];
  return (
    <section aria-labelledby="flows-title">
      <Group justify="space-between" mb={6}>
        <Title order={2} size="h5" id="flows-title">{everybody ? w.titleAll : w.title}</Title>
        <Group gap="md">
          {me.role === 'operator' && <Checkbox size="xs" label={w.everybody} checked={everybody} onChange={(e) => change('everybody', e.currentTarget.checked ? '1' : '')} />}
          <Checkbox size="xs" label={w.over} checked={all} onChange={(e) => change('over', e.currentTarget.checked ? '1' : '')} />
        </Group>
      </Group>
      <Trouble failure={failure} seen={seen} zone={zone} again={again} />
      {!value && !failure && <Waiting height={60} />}
      {value && list.length === 0 && <Text size="sm" c="dimmed" data-testid="no-flow">{all ? w.noneAll : `${w.none}. ${w.noneAbout}`}</Text>}
      {list.length > 0 && (
        <Paper withBorder radius="sm">
          <ScrollArea.Autosize mah={300} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.title }}>
            <Table stickyHeader verticalSpacing={4} aria-label={w.title} className="list">
              <Table.Thead><Table.Tr><Table.Th>State</Table.Th><Table.Th>Workflow</Table.Th>{everybody && <Table.Th>User</Table.Th>}<Table.Th>Ends ({zone})</Table.Th><Table.Th visibleFrom="sm">Slack</Table.Th><Table.Th ta="right" visibleFrom="sm">CPU-hours</Table.Th><Table.Th><span className="unseen">Details</span></Table.Th></Table.Tr></Table.Thead>
              <Table.Tbody>
                {list.map((f) => (
                  <Table.Tr key={f.id} data-flow={f.id} data-selected={f.id === chosen || undefined}>
                    <Table.Td><FlowState of={f.state} />{f.expires && <Text size="xs" c="dimmed">{left(f, clock)}</Text>}</Table.Td>
                    <Table.Td className="named">{f.name && f.name !== f.id ? <>{f.name} <span className="faint wide-only">{f.id}</span></> : f.id}</Table.Td>
                    {everybody && <Table.Td className="named">{f.user}</Table.Td>}
                    <Table.Td><Stamp of={f.end ? time(at(f.end), zone) : '–'} /></Table.Td>
                    <Table.Td visibleFrom="sm">{spare(f)}</Table.Td>
                    <Table.Td ta="right" visibleFrom="sm">{f.cpu_hours.toFixed(2)}</Table.Td>
                    <Table.Td ta="right"><Button size="compact-xs" variant="default" aria-label={`Details of ${f.id}`} aria-expanded={f.id === chosen} onClick={() => change('flow', f.id === chosen ? '' : f.id)}>Details</Button></Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollArea.Autosize>
        </Paper>
      )}
      {chosen && <OneFlow key={chosen} id={chosen} zone={zone} clock={clock} changes={changes} onEnded={onEnded} onDone={again} onActed={() => onActed(chosen)} />}
    </section>
  );
}

async function fetchList(path: string, signal: AbortSignal): Promise<{ workflows: Flow[] }> {
  const list: Flow[] = [];
  for (let next = '', n = 0; n === 0 || (next && n < 10); n++) {
    const page = await get<{ workflows: Flow[]; next?: string }>(path + (next ? `&cursor=${encodeURIComponent(next)}` : ''), signal);
    list.push(...page.workflows);
    next = page.next ?? '';
  }
  return { workflows: list };
}

type Act = keyof typeof w.acts;

/** OneFlow is all about a workflow: planned against what is, and what can be done. */
function OneFlow({ id, zone, clock, changes, onEnded, onDone, onActed }: { id: string; zone: string; clock: number; changes: number; onEnded: () => void; onDone: () => void; onActed: () => void }) {
  const path = `v1/workflows/${encodeURIComponent(id)}`;
  const got = useGot<Flow>(path, changes, onEnded);
  const [form, setForm] = useState<'cancel' | 'retry' | null>(null);
  const [deadline, setDeadline] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [done, setDone] = useState<Act | null>(null);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [table, setTable] = useState(false);
  const f = got.value;
  if (!f) return got.failure ? (got.failure.problem.status === 404 ? <Alert mt="xs" color="gray">{w.gone}</Alert> : <Trouble failure={got.failure} again={got.again} />) : <Waiting height={120} />;
  const by = deadline.trim() === '' ? null : parseTime(deadline, clock, zone);
  const badDeadline = deadline.trim() !== '' && by === null;
  const run = async (what: Act) => {
    setBusy(true);
    setFailure(null);
    setAnswer(null);
    try {
      const said = what === 'cancel' ? await act<Answer>('DELETE', path, null) : await act<Answer>('POST', `${path}/${what}`, what === 'retry' ? (by === null ? {} : { deadline: stampOf(by) }) : null, what === 'confirm' ? f.version : undefined);
      if (said?.decision === 'refused') setAnswer(said);
      else {
        setDone(what);
        setForm(null);
        onActed();
      }
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      if (e.problem.status === 401) onEnded();
      setFailure(e);
    } finally {
      setBusy(false);
      got.again();
      onDone();
    }
  };
  const moved = f.end && f.planned_end ? at(f.end) - at(f.planned_end) : 0;
  const facts = [
    f.deadline ? w.by(`${time(at(f.deadline), zone)} ${zone}`) : w.noDeadline,
    f.end && (isOver(f.state) ? w.ended : w.expected)(`${time(at(f.end), zone)} ${zone}`),
    f.end && f.planned_end && (moved === 0 ? w.asPlanned : w.was(length(Math.abs(moved)), moved > 0)),
    f.account && w.account(f.account), f.qos && w.qos(f.qos), f.slack !== undefined && spare(f), f.planner && w.found(f.planner), hours(f.cpu_hours), f.replanned && w.replanned(f.replanned, (f.cause ?? '').replaceAll('_', ' ')),
  ].filter(Boolean);
  const line = { confirm: `berth workflow confirm ${id}`, cancel: `berth workflow cancel ${id}`, retry: `berth workflow retry ${id}` };
  return (
    <Paper withBorder radius="sm" p="sm" mt="xs" role="group" aria-label={`${words.workflow.title} ${id}`} data-testid="flow-one">
      <Stack gap="xs">
        <Group gap="xs"><FlowState of={f.state} /><Text fw={600} className="named brief" title={f.name || f.id}>{f.name || f.id}</Text></Group>
        {f.expires && <Text size="sm" data-testid="flow-left">{w.heldUntil(`${time(at(f.expires), zone)} ${zone}`, left(f, clock))}</Text>}
        <Text size="sm" data-testid="flow-facts">{capital(facts.join('; '))}.{f.why && <span className="named"> {capital(f.why)}.</span>}</Text>
        {f.refusal && <Text size="sm" className="named">{f.refusal.detail}</Text>}
        <Trouble failure={failure} />
        {done && <Alert color="green" variant="light" role="alert" title={w.done[done]}><Command line={line[done]} /></Alert>}
        {answer && <Refused answer={answer} zone={zone} />}
        {!form && (
          <Group gap="xs" role="group" aria-label="What can be done">
            {f.state === 'held' && <Button size="compact-sm" loading={busy} onClick={() => void run('confirm')}>{w.acts.confirm}</Button>}
            {!isOver(f.state) && <Button size="compact-sm" variant="default" disabled={busy} onClick={() => { setForm('cancel'); setDone(null); }}>{w.acts.cancel}</Button>}
            {(f.state === 'failed' || f.state === 'cancelled') && <Button size="compact-sm" variant="default" disabled={busy} onClick={() => { setForm('retry'); setDone(null); }}>{w.acts.retry}</Button>}
            <Checkbox size="xs" label={w.table} checked={table} onChange={(e) => setTable(e.currentTarget.checked)} />
          </Group>
        )}
        {form === 'cancel' && (
          <div role="group" aria-label={w.acts.cancel}>
            <Text size="sm" mb="xs">{w.sure}</Text>
            <Group gap="xs"><Button size="compact-sm" color="red" loading={busy} onClick={() => void run('cancel')}>{w.yes}</Button><Button size="compact-sm" variant="default" onClick={() => setForm(null)}>{w.keep}</Button></Group>
          </div>
        )}
        {form === 'retry' && (
          <form aria-label={w.acts.retry} onSubmit={(e) => { e.preventDefault(); if (!badDeadline && !busy) void run('retry'); }}>
            <TextInput label={w.retryDeadline} size="xs" maw={320} value={deadline} onChange={(e) => setDeadline(e.currentTarget.value)} error={badDeadline && words.laboratory.badTime(deadline)} description={by === null ? w.retryAbout : `${time(by, zone)} ${zone}`} inputWrapperOrder={['label', 'input', 'description', 'error']} />
            <Group gap="xs" mt="xs"><Button type="submit" size="compact-sm" loading={busy} disabled={badDeadline}>{w.retry}</Button><Button size="compact-sm" variant="default" onClick={() => setForm(null)}>{w.back}</Button></Group>
          </form>
        )}
        {f.tasks.some((t) => t.start) && (table ? <StepTable f={f} zone={zone} /> : <Lanes f={f} zone={zone} clock={clock} />)}
        <Command line={`berth workflow show ${id}`} />
      </Stack>
    </Paper>
  );
}

const failed = (s: string) => ['failed', 'lost', 'timeout', 'cancelled', 'skipped'].includes(s);

/** Lanes draws each task as it was planned at first, and as it is. */
function Lanes({ f, zone, clock }: { f: Flow; zone: string; clock: number }) {
  const list = f.tasks.filter((t) => t.start && t.end).sort((a, b) => at(a.start!) - at(b.start!) || (a.id < b.id ? -1 : 1));
  const stamps = list.flatMap((t) => [t.start, t.end, t.planned_start, t.planned_end].filter((s): s is string => Boolean(s)).map(at));
  const from = Math.min(...stamps);
  const to = Math.max(from + 60, ...stamps, f.deadline ? Math.min(at(f.deadline), Math.max(...stamps) + (Math.max(...stamps) - from) / 4) : 0);
  const x = (t: number) => `${((Math.min(to, Math.max(from, t)) - from) / (to - from)) * 100}%`;
  const wide = (a: string, b: string) => `max(2px, ${(Math.max(0, at(b) - at(a)) / (to - from)) * 100}%)`;
  const span = (a?: string, b?: string) => (a && b ? `${time(at(a), zone)} to ${time(at(b), zone)}` : '–');
  return (
    <div className="planned">
      <Group gap="2px 16px" component="ul" className="legend" mb={4} aria-label="Legend">
        {([['plan', w.plannedAt], ['critical', words.workflow.critical], ['own', words.workflow.others2], ['failed', 'failed']] as const).map(([c, name]) => <Group key={c} component="li" gap={6} wrap="nowrap"><span className={`swatch ${c}`} /><Text size="xs">{name}</Text></Group>)}
      </Group>
      <div className="rows" aria-hidden="true">
        <span />
        <svg width="100%" height={18}>{ticks(from, to, (to - from) / 6, zone).map((t) => <text key={t.at} x={x(t.at)} y={13} textAnchor="middle">{t.label}</text>)}</svg>
      </div>
      <ScrollArea.Autosize mah={360} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.tasks }}>
        {list.slice(0, drawn).map((t) => (
          <div key={t.id} className="rows" data-task={t.id}>
            <span className="named" title={t.id}>{t.id}</span>
            <svg width="100%" height={20} role="img" aria-label={`${t.id}, ${t.state}: ${t.npe} PEs, ${span(t.start, t.end)}; ${w.plannedAt} ${span(t.planned_start, t.planned_end)}${t.critical ? `, ${words.workflow.critical}` : ''}`}>
              <line x1="0" x2="100%" y1={19.5} y2={19.5} className="rule" />
              <rect x={x(at(t.start!))} width={wide(t.start!, t.end!)} y={5} height={10} rx={2} className={failed(t.state) ? 'failed' : t.critical ? 'critical' : 'own'}><title>{`${t.id}, ${t.state}: ${t.npe} PEs, ${span(t.start, t.end)}`}</title></rect>
              {t.planned_start && t.planned_end && <rect x={x(at(t.planned_start))} width={wide(t.planned_start, t.planned_end)} y={2} height={16} rx={2} className="plan" pointerEvents="none" />}
              {clock > from && clock < to && <line x1={x(clock)} x2={x(clock)} y1="0" y2="20" className="now" />}
              {f.deadline && at(f.deadline) <= to && <line x1={x(at(f.deadline))} x2={x(at(f.deadline))} y1="0" y2="20" className="chosen" />}
            </svg>
          </div>
        ))}
      </ScrollArea.Autosize>
      {list.length > drawn && <Text size="xs" c="dimmed">{w.shown(drawn, list.length)}</Text>}
    </div>
  );
}

function StepTable({ f, zone }: { f: Flow; zone: string }) {
  const stamp = (t?: string) => (t ? <Stamp of={time(at(t), zone)} /> : '–');
  return (
    <ScrollArea.Autosize mah={420} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.tasks }}>
      <Table stickyHeader verticalSpacing={3} aria-label={w.tasks} className="facts">
        <Table.Thead><Table.Tr><Table.Th>Task</Table.Th><Table.Th>State</Table.Th><Table.Th ta="right">PEs</Table.Th><Table.Th>Starts ({zone})</Table.Th><Table.Th>Ends</Table.Th><Table.Th>Planned</Table.Th><Table.Th>Waits for</Table.Th></Table.Tr></Table.Thead>
        <Table.Tbody>
          {f.tasks.map((t) => (
            <Table.Tr key={t.id}>
              <Table.Td className="named">{t.reservation ? <Anchor size="sm" href={`promises?sel=${encodeURIComponent(t.reservation)}`}>{t.id}</Anchor> : t.id}{t.critical && `, ${words.workflow.critical}`}</Table.Td>
              <Table.Td><State of={t.state === 'succeeded' ? 'ok' : t.state} words={t.state} />{(t.tries ?? 0) > 1 && <Text size="xs">try {t.tries}</Text>}{t.why && <Text size="xs" className="named">{t.why}</Text>}</Table.Td>
              <Table.Td ta="right">{t.npe ?? '–'}</Table.Td><Table.Td>{stamp(t.start)}</Table.Td><Table.Td>{stamp(t.end)}</Table.Td>
              <Table.Td>{t.planned_start && t.planned_end ? <Stamp of={period(at(t.planned_start), at(t.planned_end), zone)} /> : '–'}</Table.Td><Table.Td className="named">{t.after?.join(', ') || '–'}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea.Autosize>
  );
}

/** Refused says why a workflow was refused. */
function Refused({ answer, zone }: { answer: Answer; zone: string }) {
  return (
    <Alert color="orange" variant="light" title={w.refused} role="alert" data-testid="flow-refused">
      <Text size="sm" className="named">{answer.workflow.refusal?.detail}</Text>
      {answer.offers?.length ? <ul className="plain">{answer.offers.map((o) => <li key={o.deadline + o.algorithm}>{offerLine(o, zone)}</li>)}</ul> : null}
    </Alert>
  );
}

const offerLine = (o: Offer, zone: string) => w.offer(`${time(at(o.deadline), zone)}`, `${time(at(o.end), zone)} ${zone}`, hours(o.cpu_hours), o.algorithm);

/** BookAll books what was planned: all tasks or none. A refusal keeps the form, and what could be had instead is held or booked from there. */
export function BookAll({ flow, plan, tightest, commands, zone, clock, acted, onBooked, onEnded }: { flow: PlannedWorkflow; plan: Plan | null; tightest: number | null; commands: Map<string, string[]>; zone: string; clock: number; acted: string; onBooked: (id: string) => void; onEnded: () => void }) {
  const [typed, setTyped] = useState<{ id: string; deadline: string | null; planner: string | null; retries: string; folder: string; account: string; qos: string }>({ id: '', deadline: null, planner: null, retries: '0', folder: '', account: '', qos: '' });
  const [base, setBase] = useState(clock); // what now means while the form is filled in
  const [busy, setBusy] = useState('');
  const [failure, setFailure] = useState<Failure | null>(null);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [offers, setOffers] = useState<Offer[] | null>(null);
  const keys = useRef(new Map<string, string>()); // pressing twice is once
  const planned = at(flow.now);
  const chosen = plan?.deadline ? at(plan.deadline) : null;
  const usual = chosen === null ? null : tightest === null ? chosen : roomy(chosen, tightest, planned);
  const roomier = typed.deadline === null && tightest !== null && usual !== chosen;
  const deadlineText = typed.deadline ?? (usual !== null ? stampOf(usual) : ''); // what was chosen above, until something is typed
  const lasts = holdLasts(plan, clock);
  const planner = typed.planner ?? (plan?.deadline ? plan.planner : 'best');
  const by = deadlineText.trim() === '' ? null : parseTime(deadlineText, base, zone);
  const retries = /^\d{1,2}$/.test(typed.retries.trim()) && Number(typed.retries) <= most ? Number(typed.retries) : null;
  const wrong = {
    id: typed.id !== '' && !isWord(typed.id) && w.badId(typed.id),
    account: typed.account !== '' && !isWord(typed.account) && shared.book.badWord(typed.account), qos: typed.qos !== '' && !isWord(typed.qos) && shared.book.badWord(typed.qos),
    deadline: deadlineText.trim() !== '' && (by === null ? words.laboratory.badTime(deadlineText) : by <= clock && w.overDeadline),
    retries: retries === null && w.badRetries(typed.retries, most),
    folder: typed.folder !== '' && !typed.folder.startsWith('/') && w.badFolder,
  };
  const right = Object.values(wrong).every((x) => !x);
  const set = (c: Partial<typeof typed>) => {
    setTyped((t) => ({ ...t, ...c }));
    setAnswer(null);
    setOffers(null);
    keys.current.clear();
  };
  const known = flow.tasks.filter((t) => commands.has(t.id)).length;
  const body = (more: { deadline?: string; algorithm?: string; hold?: boolean }) => JSON.stringify({
    ...(typed.id ? { id: typed.id } : {}), name: flow.name.slice(0, 64), site: flow.site, pool: flow.pool, algorithm: planner, ...(typed.account && { account: typed.account }), ...(typed.qos && { qos: typed.qos }), ...(by !== null ? { deadline: stampOf(by) } : {}), ...more,
    tasks: flow.tasks.map((t) => ({
      id: t.id, seconds: t.seconds, alpha: t.alpha, after: t.parents.map((p) => flow.tasks[p]!.id), ...(retries ? { retries } : {}),
      ...(typed.folder && commands.has(t.id) ? { command: commands.get(t.id), dir: typed.folder } : {}),
    })),
  });
  const doing = async (what: string, f: () => Promise<void>) => {
    setBusy(what);
    setFailure(null);
    try {
      await f();
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      if (e.problem.status === 401) onEnded();
      setFailure(e);
    } finally {
      setBusy('');
    }
  };
  const submit = (what: string, more: { deadline?: string; algorithm?: string; hold?: boolean }) => doing(what, async () => {
    const text = body(more);
    const key = keys.current.get(text) ?? crypto.randomUUID();
    keys.current.set(text, key);
    const a = await post<Answer>('v1/workflows', text, { key });
    setAnswer(a);
    setOffers(a.decision === 'refused' ? a.offers ?? [] : null);
    if (a.decision === 'refused') keys.current.clear(); // what is asked again may be had by then
    else onBooked(a.workflow.id);
  });
  const ask = () => doing('ask', async () => {
    setAnswer(null);
    setOffers((await post<{ offers: Offer[] }>('v1/workflows/offers', body({}))).offers);
  });
  const order: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error'];
  return (
    <Paper withBorder radius="sm" p="sm" component="form" aria-labelledby="book-title" onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (right && busy === '') void submit('book', {}); }}>
      <Title order={2} size="h5" id="book-title">{w.book}</Title>
      <Text size="sm" c="dimmed" mb="xs">{w.bookAbout}</Text>
      <Group gap="md" align="start" className="fields">
        <TextInput label={w.deadline} size="xs" w={230} value={deadlineText} onChange={(e) => { setBase(clock); set({ deadline: e.currentTarget.value }); }} error={wrong.deadline} description={by === null ? w.asEarly : `${time(by, zone)} ${zone}${roomier ? `. ${w.room(length(usual! - tightest!))}` : ''}`} inputWrapperOrder={order} />
        <Select label={w.planner} size="xs" w={210} data={[{ value: 'best', label: w.best }, ...(plan && plan.planner !== 'best' ? [plan.planner] : []), ...(planner !== 'best' && planner !== plan?.planner ? [planner] : [])]} value={planner} onChange={(v) => v && set({ planner: v })} allowDeselect={false} />
        <TextInput label={w.retries} size="xs" w={190} value={typed.retries} onChange={(e) => set({ retries: e.currentTarget.value })} error={wrong.retries} inputMode="numeric" />
        <TextInput label={w.id} size="xs" w={170} value={typed.id} onChange={(e) => set({ id: e.currentTarget.value.trim() })} error={wrong.id} description={w.idAbout} inputWrapperOrder={order} />
        <TextInput label={shared.book.account} size="xs" w={140} autoComplete="off" value={typed.account} onChange={(e) => set({ account: e.currentTarget.value.trim() })} error={wrong.account} />
        <TextInput label={shared.book.qos} size="xs" w={140} autoComplete="off" value={typed.qos} onChange={(e) => set({ qos: e.currentTarget.value.trim() })} error={wrong.qos} />
        {known > 0 && <TextInput label={w.folder} size="xs" w={330} value={typed.folder} onChange={(e) => set({ folder: e.currentTarget.value.trim() })} error={wrong.folder} description={w.folderAbout(known)} inputWrapperOrder={order} />}
      </Group>
      <Group gap="xs" mt="sm">
        <Button type="submit" size="compact-md" loading={busy === 'book'} disabled={!right || busy !== ''}>{w.bookIt}</Button>
        <Button size="compact-md" variant="default" loading={busy === 'hold'} disabled={!right || busy !== ''} onClick={() => void submit('hold', { hold: true })} aria-describedby="hold-lasts">{w.hold}</Button>
        <Button size="compact-md" variant="default" loading={busy === 'ask'} disabled={!right || busy !== ''} onClick={() => void ask()}>{w.ask}</Button>
      </Group>
      <Text size="xs" c="dimmed" mt={4} id="hold-lasts" data-testid="hold-lasts">{lasts < halfAnHour ? w.holdShort(length(lasts)) : w.holdLong(length(halfAnHour))}</Text>
      <Stack gap="xs" mt="xs">
        <Trouble failure={failure} />
        {answer && answer.decision === 'refused' && <Alert color="orange" variant="light" title={w.refused} role="alert" data-testid="flow-refused"><Text size="sm" className="named">{answer.workflow.refusal?.detail}</Text></Alert>}
        {answer && answer.decision !== 'refused' && answer.workflow.id !== acted && <Alert color="green" variant="light" title={w.booked[answer.decision] ?? answer.decision} role="alert" data-testid="flow-booked"><Text size="sm"><code className="named">{answer.workflow.id}</code></Text><Button mt="xs" size="compact-xs" variant="default" onClick={() => document.getElementById('flows-title')?.scrollIntoView()}>{w.look}</Button></Alert>}
        {offers && (
          <section aria-label={w.offers}>
            <Text size="sm" fw={600}>{offers.length > 0 ? w.offers : w.noOffers}</Text>
            {offers.length > 0 && <Text size="xs" c="dimmed">{w.offersAbout}</Text>}
            <ul className="plain" aria-label={w.offers}>
              {offers.map((o) => (
                <li key={o.deadline + o.algorithm}>
                  <Group gap="xs" py={3}>
                    <Text size="sm">{offerLine(o, zone)}</Text>
                    <Button size="compact-xs" disabled={busy !== ''} onClick={() => void submit('take', { deadline: o.deadline, algorithm: o.algorithm })} aria-label={`${w.takeIt}: ${offerLine(o, zone)}`}>{w.takeIt}</Button>
                    <Button size="compact-xs" variant="default" disabled={busy !== ''} onClick={() => void submit('take', { deadline: o.deadline, algorithm: o.algorithm, hold: true })} aria-label={`${w.holdIt}: ${offerLine(o, zone)}`}>{w.holdIt}</Button>
                  </Group>
                </li>
              ))}
            </ul>
          </section>
        )}
        <Command line={`berth workflow submit FILE${by !== null ? ` --deadline ${stampOf(by)}` : ''} --algorithm ${planner} --site ${flow.site} --pool ${flow.pool}${typed.id ? ` --id ${typed.id}` : ''}${typed.account ? ` --account ${typed.account}` : ''}${typed.qos ? ` --qos ${typed.qos}` : ''}`} />
      </Stack>
    </Paper>
  );
}
