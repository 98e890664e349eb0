import { Alert, Anchor, Button, Group, Paper, Stack, Table, Text } from '@mantine/core';
import { useRef, useState } from 'react';
import { act, Failure, post } from './api.js';
import { period, time } from './clock.js';
import { useGot } from './follow.js';
import { at, over, where } from './life.js';
import { Command, Stamp, State, Trouble, Waiting } from './parts.js';
import { alive, cancelLine, inWords, nextOf, type Occurrence, type Offer, type Series, type SeriesAnswer } from './recur.js';
import { refused } from './starts.js';
import { text } from './text.js';
import { words } from './words.js';

const w = words.series;

interface OccurrencesProps { series: Series; zone: string; acts?: (o: Occurrence) => React.ReactNode; offers?: (o: Occurrence) => React.ReactNode }

/** Occurrences is what became of each occurrence: when and where, or why it cannot be. */
function Occurrences({ series, zone, acts, offers }: OccurrencesProps) {
  return (
    <Table aria-label={w.occurrences} verticalSpacing={5} className="list" data-testid="occurrences">
      <Table.Thead><Table.Tr><Table.Th ta="right" w={36}>No.</Table.Th><Table.Th>State</Table.Th><Table.Th>When and where</Table.Th></Table.Tr></Table.Thead>
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

type Way = { from?: number; to?: number };

/** OneSeries is all about a series, and what can be done. */
export function OneSeries({ id, zone, changes, onEnded, onDone }: { id: string; zone: string; changes: number; onEnded: () => void; onDone: () => void }) {
  const path = `v1/series/${encodeURIComponent(id)}`;
  const got = useGot<Series>(path, changes, onEnded);
  const [asked, setAsked] = useState<Way | null>(null); // what is to be given back, once that is sure
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [done, setDone] = useState<{ title: string; line: string } | null>(null);
  const top = useRef<HTMLDivElement>(null);
  const s = got.value;
  if (!s) return got.failure ? (got.failure.problem.status === 404 ? <Alert color="gray">{w.gone}</Alert> : <Trouble failure={got.failure} again={got.again} />) : <Waiting />;
  const run = async (title: string, line: string, send: () => Promise<unknown>) => {
    setBusy(true);
    setFailure(null);
    setDone(null);
    try {
      await send();
      setDone({ title, line });
      setAsked(null);
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
  const giveBack = (way: Way) => run(w.gave, cancelLine(id, way.from, way.to), () => act('POST', `${path}/cancel`, way));
  const ask = (way: Way) => {
    setAsked(way);
    setDone(null);
    top.current?.scrollIntoView({ block: 'start' });
  };
  const held = alive(s).filter((o) => o.state === 'held');
  const confirm = () => run(w.confirmed, `berth series confirm ${id}`, async () => {
    for (const o of held) await act('POST', `v1/reservations/${encodeURIComponent(o.id!)}/confirm`, null);
  });
  const next = nextOf(alive(s));
  const refused = (s.occurrences ?? []).filter((o) => !o.id).length;
  const lines: [string, React.ReactNode][] = [
    [w.rule, `${inWords(s.repeat ?? '') || w.given}, ${s.time_zone}`], [w.next, next ? `${period(at(next.start!), at(next.end!), zone)} ${zone}` : w.nothingNext], [w.stands, w.live(s.live, s.count, refused)], [w.least, String(s.at_least)],
  ];
  if (s.name) lines.unshift([words.promises.name, s.name]);
  if (s.user) lines.push(['User', s.user]);
  return (
    <Stack gap="sm" data-testid="one-series" ref={top} tabIndex={-1} role="group" aria-label={w.one}>
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      <Table variant="vertical" layout="fixed" aria-label={w.one}><Table.Tbody>{lines.map(([k, v], i) => <Table.Tr key={i}><Table.Th w={120}>{k}</Table.Th><Table.Td className="named">{v}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
      {done && <Alert color="green" variant="light" title={done.title} role="alert" data-testid="done"><Command line={done.line} /></Alert>}
      <Trouble failure={failure} />
      {!asked && (held.length > 0 || s.live > 0) && (
        <Group gap="xs" role="group" aria-label={w.acts}>
          {held.length > 0 && <Button size="compact-sm" disabled={busy} onClick={() => void confirm()}>{w.confirm(held.length)}</Button>}
          {s.live > 0 && <Button size="compact-sm" variant="default" disabled={busy} onClick={() => ask({})}>{w.cancel}</Button>}
        </Group>
      )}
      {asked && (
        <Paper withBorder p="sm" role="group" aria-label={w.sureOf(asked.from, asked.to)}>
          <Text size="sm" mb="xs">{w.sureOf(asked.from, asked.to)}</Text>
          <Group gap="xs"><Button size="compact-sm" color="red" loading={busy} autoFocus onClick={() => void giveBack(asked)}>{w.yes}</Button><Button size="compact-sm" variant="default" onClick={() => { setAsked(null); top.current?.focus(); }}>{words.promises.keep}</Button></Group>
        </Paper>
      )}
      <Occurrences series={s} zone={zone} acts={(o) => o.id && (
        <Group gap="4px 5px" mt={4}>
          {!over(o.state ?? '') && <Button size="compact-xs" variant="default" disabled={busy} aria-label={`${w.skip}: ${o.number}`} onClick={() => ask({ from: o.number, to: o.number })}>{w.skip}</Button>}
          {!over(o.state ?? '') && o.number < s.count && <Button size="compact-xs" variant="default" disabled={busy} aria-label={`${w.rest}: ${o.number}`} onClick={() => ask({ from: o.number })}>{w.rest}</Button>}
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
