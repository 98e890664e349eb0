import { Alert, Anchor, Button, Group, Paper, Select, Stack, Table, Text, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import { act, Failure, post } from './api.js';
import { length, period, time } from './clock.js';
import { useGot } from './follow.js';
import { Formed, type FormProps, inOrder } from './forms.js';
import { at, over, where } from './life.js';
import { Command, Stamp, State, Trouble, Waiting } from './parts.js';
import { alive, cancelLine, changeSeriesLine, type ChangeForm, inWords, nextOf, type Occurrence, type Offer, readChange, readLater, type Series, type SeriesAnswer, type SeriesChange, type Way } from './recur.js';
import { mostOccurrences } from './repeat.js';
import { refused } from './starts.js';
import { text } from './text.js';
import { words } from './words.js';

const w = words.series;

interface OccurrencesProps { series: Series; zone: string; acts?: (o: Occurrence) => React.ReactNode; offers?: (o: Occurrence) => React.ReactNode }

/** Occurrences is what became of each occurrence: when and where, or why it cannot be. */
function Occurrences({ series, zone, acts, offers }: OccurrencesProps) {
  return (
    <Table aria-label={w.occurrences} verticalSpacing={5} className="list" data-testid="occurrences">
      <Table.Thead><Table.Tr><Table.Th ta="right" className="whole">No.</Table.Th><Table.Th>State</Table.Th><Table.Th>When and where</Table.Th></Table.Tr></Table.Thead>
      <Table.Tbody>
        {(series.occurrences ?? []).map((o) => (
          <Table.Tr key={o.number} data-number={o.number}>
            <Table.Td ta="right">{o.number}</Table.Td>
            <Table.Td><State of={o.state ?? 'refused'} words={(o.state ?? 'refused').replaceAll('_', ' ')} /></Table.Td>
            <Table.Td>
              <Text size="sm"><Stamp of={o.start && o.end ? period(at(o.start), at(o.end), zone) : time(at(o.ready), zone)} /></Text>
              {where(o) && <Text size="xs" className="named">{where(o)}, {text.pes(o.npe ?? 0)}</Text>}
              {o.note && <Text size="xs" className="named">{o.note}</Text>}
              {!o.id && o.refusal && <Text size="sm" className="named">{refused(o.refusal, zone)}</Text>}
              {offers?.(o)}
              {acts?.(o)}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** openLines tells how far an open series is promised, and what comes next. */
function openLines(s: Series, zone: string): string {
  if (!s.ahead) return '';
  const stamp = (t: string | undefined) => (t ? `${time(at(t), zone)} ${zone}` : '');
  const lines = [w.openAbout(length(s.ahead), stamp(s.promised_until), s.open ? stamp(s.prolonged) : '')];
  if (s.again) lines.push(w.again(stamp(s.again)));
  if (s.ends) lines.push(w.lastOf(stamp(s.ends)));
  if (s.skipped?.length) lines.push(w.leftOut(s.skipped.join(', ')));
  if (!s.open) lines.push(w.closed);
  return lines.join(' ');
}

/** movedLines tells which occurrences come at another time than the rule says. */
const movedLines = (s: Series) => (s.moved ?? []).map((m) => w.movedOf(m.from, m.to, m.by > 0 ? w.byLater(length(m.by)) : w.byEarlier(length(-m.by)))).join(', ');

/** ChangeOf asks what occurrences become: one, it and those after it, or all that are to come. */
function ChangeOf({ series, number, busy, onShut, onSend }: FormProps & { series: Series; number?: number; onSend: (c: SeriesChange) => void }) {
  const [which, setWhich] = useState(number ? 'alone' : 'every');
  const [f, set] = useState<ChangeForm>({ by: '', npe: '', duration: '' });
  const { change, wrong } = readChange(f);
  const way: Way = which === 'every' ? {} : which === 'alone' ? { from: number!, to: number! } : { from: number! };
  const field = (name: keyof ChangeForm) => ({ value: f[name], onChange: (e: React.ChangeEvent<HTMLInputElement>) => set({ ...f, [name]: e.currentTarget.value }), inputWrapperOrder: inOrder });
  const by = change?.by;
  const lasts = change?.duration;
  return (
    <Formed name={w.changeOf(number)} send={which === 'alone' ? w.changeOne : w.changeIt} ready={change !== null} busy={busy} onShut={onShut} onSubmit={() => onSend({ ...way, ...change })}>
      {number && <Select label={w.which} data={[{ value: 'alone', label: w.alone(number) }, { value: 'onward', label: w.onward(number) }, { value: 'every', label: w.every }]} value={which} onChange={(v) => setWhich(v ?? 'alone')} allowDeselect={false} />}
      {series.open && which !== 'alone' && <Text size="sm">{w.openToo}</Text>}
      <TextInput label={w.later} autoFocus {...field('by')} error={wrong.has('by') && text.book.badLength(f.by)} description={by ? (by > 0 ? w.byLater(length(by)) : w.byEarlier(length(-by))) : w.laterAbout} />
      <TextInput label="PEs" {...field('npe')} error={wrong.has('npe') && text.book.badCount(f.npe)} description={w.stays} inputMode="numeric" />
      <TextInput label="Duration" {...field('duration')} error={wrong.has('duration') && text.book.badLength(f.duration)} description={lasts ? length(lasts) : w.stays} />
      {change ? <Command line={changeSeriesLine(series.id, { ...way, ...change })} /> : <Text size="sm" c="dimmed">{w.nothingYet}</Text>}
    </Formed>
  );
}

/** LeaveOut asks for the number of an occurrence that is to be left out before it is asked for. */
function LeaveOut({ series, busy, onShut, onSend }: FormProps & { series: Series; onSend: (n: number) => void }) {
  const [typed, setTyped] = useState(String(series.count + 1));
  const n = readLater(typed, series.count, mostOccurrences);
  return (
    <Formed name={w.skipLater} send={w.skip} ready={n !== null} busy={busy} onShut={onShut} onSubmit={() => onSend(n!)}>
      <TextInput label={w.number} autoFocus value={typed} onChange={(e) => setTyped(e.currentTarget.value)} error={n === null && w.badNumber(typed, series.count)} description={w.numberAbout(series.count)} inputWrapperOrder={inOrder} inputMode="numeric" />
      {n !== null && <Command line={cancelLine(series.id, n, n)} />}
    </Formed>
  );
}

type Form = { what: 'give'; way: Way; end?: boolean } | { what: 'change'; number?: number } | { what: 'later' };

/** OneSeries is all about a series, and what can be done. */
export function OneSeries({ id, zone, changes, onEnded, onDone }: { id: string; zone: string; changes: number; onEnded: () => void; onDone: () => void }) {
  const path = `v1/series/${encodeURIComponent(id)}`;
  const got = useGot<Series>(path, changes, onEnded);
  const [form, setForm] = useState<Form | null>(null); // what is to be done, once that is sure
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [no, setNo] = useState<SeriesAnswer['refusals'] | null>(null); // which occurrences stand in the way
  const [done, setDone] = useState<{ title: string; line: string } | null>(null);
  const top = useRef<HTMLDivElement>(null);
  const s = got.value;
  if (!s) return got.failure ? (got.failure.problem.status === 404 ? <Alert color="gray">{w.gone}</Alert> : <Trouble failure={got.failure} again={got.again} />) : <Waiting />;
  const run = async (title: string, line: string, send: () => Promise<unknown>) => {
    setBusy(true);
    setFailure(null);
    setNo(null);
    setDone(null);
    try {
      const answer = (await send()) as Partial<SeriesAnswer> | null | undefined;
      if (answer?.refusals?.length) setNo(answer.refusals);
      else {
        setDone({ title, line });
        setForm(null);
      }
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      if (e.problem.status === 401) onEnded();
      setFailure(e);
    } finally {
      setBusy(false);
      got.again();
      onDone();
      top.current?.focus(); // what was pressed may be gone
    }
  };
  const giveBack = (way: Way, title = w.gave) => run(title, cancelLine(id, way.from, way.to), () => act('POST', `${path}/cancel`, way));
  const modify = (c: SeriesChange) => run(w.changed, changeSeriesLine(id, c), () => act('POST', `${path}/modify`, c));
  const open = (f: Form) => {
    setForm(f);
    setDone(null);
    setNo(null);
    setFailure(null);
    top.current?.scrollIntoView({ block: 'start' });
  };
  const shut = () => {
    setForm(null);
    setNo(null);
    setFailure(null);
    top.current?.focus();
  };
  const held = alive(s).filter((o) => o.state === 'held');
  const confirm = () => run(w.confirmed, `berth series confirm ${id}`, async () => {
    for (const o of held) await act('POST', `v1/reservations/${encodeURIComponent(o.id!)}/confirm`, null);
  });
  const next = nextOf(alive(s));
  const none = (s.occurrences ?? []).filter((o) => !o.id && o.state !== 'skipped').length;
  const lines: [string, React.ReactNode][] = [
    [w.rule, `${inWords(s.repeat ?? '') || w.given}, ${s.time_zone}`], [w.next, next ? `${period(at(next.start!), at(next.end!), zone)} ${zone}` : w.nothingNext], [w.stands, w.live(s.live, s.count, none)], [w.least, String(s.at_least)],
  ];
  if (s.ahead && s.decision !== 'refused') lines.splice(2, 0, [w.open, openLines(s, zone)]);
  if (s.moved?.length) lines.splice(1, 0, [w.moved, movedLines(s)]);
  if (s.name) lines.unshift([words.promises.name, s.name]);
  if (s.user) lines.push(['User', s.user]);
  const goesOn = s.live > 0 || Boolean(s.open);
  const sure = form?.what === 'give' ? (form.end ? w.endSure : w.sureOf(form.way.from, form.way.to)) : '';
  return (
    <Stack gap="sm" data-testid="one-series" ref={top} tabIndex={-1} role="group" aria-label={w.one}>
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      <Table variant="vertical" layout="fixed" aria-label={w.one}><Table.Tbody>{lines.map(([k, v], i) => <Table.Tr key={i}><Table.Th w={120}>{k}</Table.Th><Table.Td className="named">{v}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
      {done && <Alert color="green" variant="light" title={done.title} role="alert" data-testid="done"><Command line={done.line} /></Alert>}
      {no && <Alert color="orange" variant="light" title={w.unchanged} role="alert" data-testid="no"><ul className="plain">{no.map((o) => <li key={o.number}>{w.occurrence(o.number, refused(o.refusal, zone))}</li>)}</ul></Alert>}
      <Trouble failure={failure} />
      {!form && (held.length > 0 || goesOn) && (
        <Group gap="xs" role="group" aria-label={w.acts}>
          {held.length > 0 && <Button size="compact-sm" disabled={busy} onClick={() => void confirm()}>{w.confirm(held.length)}</Button>}
          <Button size="compact-sm" variant="default" disabled={busy} onClick={() => open({ what: 'change' })}>{w.changeAll}</Button>
          {s.open && <Button size="compact-sm" variant="default" disabled={busy} onClick={() => open({ what: 'later' })}>{w.skipLater}</Button>}
          {s.open && <Button size="compact-sm" variant="default" disabled={busy} onClick={() => open({ what: 'give', way: { from: s.count + 1 }, end: true })}>{w.end}</Button>}
          <Button size="compact-sm" variant="default" disabled={busy} onClick={() => open({ what: 'give', way: {} })}>{w.cancel}</Button>
        </Group>
      )}
      {form?.what === 'give' && (
        <Paper withBorder p="sm" role="group" aria-label={sure}>
          <Text size="sm" mb="xs">{sure}</Text>
          <Group gap="xs"><Button size="compact-sm" color="red" loading={busy} autoFocus onClick={() => void giveBack(form.way, form.end ? w.ended : w.gave)}>{form.end ? w.endYes : w.yes}</Button><Button size="compact-sm" variant="default" onClick={shut}>{words.promises.keep}</Button></Group>
        </Paper>
      )}
      {form?.what === 'change' && <ChangeOf key={form.number ?? 0} series={s} number={form.number} busy={busy} onShut={shut} onSend={(c) => void modify(c)} />}
      {form?.what === 'later' && <LeaveOut series={s} busy={busy} onShut={shut} onSend={(n) => void giveBack({ from: n, to: n })} />}
      <Occurrences series={s} zone={zone} acts={(o) => o.id && (
        <Group gap="4px 5px" mt={4}>
          {!over(o.state ?? '') && o.state !== 'active' && <Button size="compact-xs" variant="default" disabled={busy} aria-label={`${w.change}: ${o.number}`} onClick={() => open({ what: 'change', number: o.number })}>{w.change}</Button>}
          {!over(o.state ?? '') && <Button size="compact-xs" variant="default" disabled={busy} aria-label={`${w.skip}: ${o.number}`} onClick={() => open({ what: 'give', way: { from: o.number, to: o.number } })}>{w.skip}</Button>}
          {!over(o.state ?? '') && (o.number < s.count || s.open) && <Button size="compact-xs" variant="default" disabled={busy} aria-label={`${w.rest}: ${o.number}`} onClick={() => open({ what: 'give', way: { from: o.number } })}>{w.rest}</Button>}
          <Anchor size="xs" href={`promises?sel=${encodeURIComponent(o.id)}`} aria-label={`Details of ${o.id}`}>Details</Anchor>
        </Group>
      )} />
      <Command line={`berth series show ${id}`} />
    </Stack>
  );
}

const offered = (f: Offer, zone: string) => `${text.book.differences[f.difference] ?? f.difference}: ${text.pes(f.npe)}, ${period(at(f.start), at(f.end), zone)}`;

/** Answered is what came of a request that repeats, with what could be had instead of what cannot be. */
export default function Answered({ answer, zone, onEnded }: { answer: SeriesAnswer; zone: string; onEnded: () => void }) {
  const [since, setSince] = useState<Record<number, Partial<Occurrence>>>({}); // what became of occurrences since
  const s: Series = { ...answer.series, occurrences: answer.series.occurrences?.map((o) => ({ ...o, ...since[o.number] })) };
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const run = async (what: () => Promise<void>) => {
    setBusy(true);
    setFailure(null);
    try {
      await what();
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      if (e.problem.status === 401) onEnded();
      setFailure(e);
    } finally {
      setBusy(false);
    }
  };
  /** take holds an offer and confirms it: the occurrence has a reservation then. */
  const take = (o: Occurrence, offer: Offer) => run(async () => {
    const a = await post<{ decision: string; reservation?: { id: string; state: string }; refusal?: { detail: string } }>(`v1/offers/${encodeURIComponent(offer.id)}/hold`, '{"hold":"10m"}', { key: 'hold-' + offer.id });
    if (!a.reservation || a.decision === 'refused') throw new Failure({ status: 0, title: w.notTaken, detail: a.refusal?.detail ?? '', code: '' });
    const c = await post<{ id: string; state: string }>(`v1/reservations/${encodeURIComponent(a.reservation.id)}/confirm`, '', { key: 'confirm-' + a.reservation.id });
    setSince((t) => ({ ...t, [o.number]: { ...offer, id: c.id, state: c.state } }));
  });
  const held = alive(s).filter((o) => o.state === 'held');
  const confirm = () => run(async () => {
    for (const o of held) {
      const c = await post<{ state: string }>(`v1/reservations/${encodeURIComponent(o.id!)}/confirm`, '', { key: 'confirm-' + o.id });
      setSince((t) => ({ ...t, [o.number]: { ...t[o.number], state: c.state } }));
    }
  });
  const promised = (s.occurrences ?? []).filter((o) => o.id).length;
  const any = answer.decision !== 'refused';
  const first = Math.min(...held.map((o) => at(o.expires!)));
  const until = held.length > 0 ? `${time(first, zone)} ${zone}` : '';
  return (
    <Alert color={answer.decision === 'accepted' ? 'green' : 'orange'} variant="light" title={held.length > 0 && answer.decision === 'accepted' ? w.held : w.decisions[answer.decision] ?? answer.decision} role="alert" data-testid="series">
      <Stack gap="xs">
        <Text size="sm">{!any ? w.refusedAbout(promised, s.count, s.at_least) : held.length > 0 ? w.heldUntil(held.length, s.count, until) : w.promised(promised, s.count)} {any && <Anchor size="sm" c="inherit" underline="always" href={`promises?series=${encodeURIComponent(s.id)}`}>{w.look}</Anchor>} <code>berth series show {s.id}</code></Text>
        {any && s.ahead && <Text size="sm">{openLines(s, zone)}</Text>}
        {held.length > 0 && <Group><Button size="compact-sm" disabled={busy} onClick={() => void confirm()}>{w.confirm(held.length)}</Button></Group>}
        <Trouble failure={failure} />
        <Occurrences series={s} zone={zone}
          offers={(o) => !o.id && any && o.offers && (
            <Group gap={6} mt={4} component="ul" className="legend" aria-label={w.offersOf(o.number)}>
              {o.offers.map((f) => (
                <li key={f.id}>
                  <Button size="compact-xs" variant="default" disabled={busy} onClick={() => void take(o, f)} aria-label={`${w.take(o.number)}: ${offered(f, zone)}`}>
                    {offered(f, zone)}
                  </Button>
                </li>
              ))}
            </Group>
          )} />
      </Stack>
    </Alert>
  );
}
