import { Alert, Button, Checkbox, Grid, Group, Paper, ScrollArea, Select, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Failure, get, now, post, type Site } from './api.js';
import { length, period, time } from './clock.js';
import { Gantt, type Ghost } from './gantt.js';
import { type Cost, costOf } from './costs.js';
import { isWord, parseLength, parseTime, parseVariants, repeatFlags, spoken, stampOf, type Variant } from './grammar.js';
import { useLive, usePool } from './harbour.js';
import type { Theme } from './palette.js';
import type { SeriesAnswer } from './recur.js';
import { readRepeat, type RepeatForm, usualRepeat } from './repeat.js';
import { Line, Trouble, usualZone, Waiting } from './parts.js';
import { said as startSaid, lanesOf, type Lane, type Refusal, refused, type Starts, stretchAt, why } from './starts.js';
import { text } from './text.js';

interface Place { site: string; pool: string; npe: number; duration: number; start: string; end: string; pes?: string }
interface Offer extends Place { id: string; expires: string; difference: string; idle_pe_seconds: number; parts?: Place[]; cost?: Cost }
interface Reservation extends Place { id: string; state: string; version: number; expires?: string }
interface Answer { id: string; decision: string; reservation?: Reservation; reason?: string; refusal?: Refusal; offers?: Offer[] }

/** asked is a request as the API takes it. */
interface Asked { npe?: number; duration?: number; variants?: Variant[]; ready: string; deadline: string; site?: string; software?: string; constraint?: string; account?: string; qos?: string }

const Answered = lazy(() => import('./series.js'));

/** holding is what this tab holds last; the entry of its history has it too, which is there after a reload. */
const holding = { id: '' };
/** holdFor is how long an offer is held, in seconds: the clock of the page may be a little behind that of the service. */
const holdFor = 600;
/** still is how far, in pixels, the pointer may be taken before it lets go for a press to count. */
const still = 10;

/** runs reads 0-3,8. */
const runs = (pes: string | undefined) => (pes ?? '').split(',').filter(Boolean).map((r) => {
  const [a, b] = r.split('-').map(Number) as [number, number | undefined];
  return { first: a, size: (b ?? a) - a + 1 };
});

export function Book({ theme, onLive, onEnded }: { theme: Theme; onLive: (live: boolean) => void; onEnded: () => void }) {
  const zone = usualZone();
  const { sites, live, stale, failure: down, look, clock } = useLive(onEnded);
  useEffect(() => onLive(live), [live, onLive]);
  const [form, setForm] = useState({ npe: '1', duration: '1h', ready: 'now', deadline: 'now+12h', at: '', others: '', software: '', constraint: '', account: '', qos: '' });
  const [again, setAgain] = useState({ on: false, ...usualRepeat });
  const [series, setSeries] = useState<SeriesAnswer | null>(null);
  const [base, setBase] = useState(() => Math.floor(now())); // what now means while the form is filled in
  const [offers, setOffers] = useState<Offer[] | null>(null);
  const [unasked, setUnasked] = useState<Failure | null>(null); // why there are no offers
  const [tries, setTries] = useState(0);
  const [failure, setFailure] = useState<Failure | null>(null); // of what was pressed last
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [held, setHeld] = useState<Reservation | null>(null);
  useEffect(() => { // what was held before another page was looked at, or this one loaded again
    const id = holding.id || (history.state as typeof holding | null)?.id;
    if (id) get<Reservation>(`v1/reservations/${encodeURIComponent(id)}`).then((r) => setHeld((h) => h ?? (r.state === 'held' ? r : null)), () => undefined);
  }, []);
  const keep = (r: Reservation | null) => {
    setHeld(r);
    holding.id = r?.id ?? '';
    history.replaceState(r && { id: r.id }, '');
  };
  const [busy, setBusy] = useState(false);
  const key = useRef(''); // of this revision of the form: pressing twice is once
  // Where a button of an offer was pressed. An offer whose times take another line moves the button from under the
  // pointer; the press is the button's all the same, unless the pointer was taken away.
  const pressed = useRef({ x: 0, y: 0 });

  const npe = /^\d{1,7}$/.test(form.npe.trim()) && Number(form.npe) > 0 ? Number(form.npe) : null;
  const duration = parseLength(form.duration);
  const ready = parseTime(form.ready, base, zone);
  const deadline = parseTime(form.deadline, base, zone);
  const others = form.others.trim() === '' ? [] : parseVariants(form.others);
  const shortest = duration === null || others === null ? null : Math.min(duration, ...others.map((v) => v.duration));
  const repeats = again.on;
  const tooSoon = !repeats && ready !== null && deadline !== null && shortest !== null && deadline - ready < shortest;
  const othersText = others === null ? null : JSON.stringify(others);
  const programs = useMemo(() => [...new Set((sites ?? []).flatMap((s) => (s.software ?? []).map((p) => p.name)))].sort(), [sites]);
  const pools = useMemo(() => (sites ?? []).flatMap((s) => s.pools.map((p) => ({ site: s, pool: p, name: `${s.name}/${p.name}` }))), [sites]);
  const [account, qos] = [form.account.trim(), form.qos.trim()];
  const badWord = { account: account !== '' && !isWord(account), qos: qos !== '' && !isWord(qos) };
  const right = !badWord.account && !badWord.qos;
  const more: Pick<Asked, 'site' | 'software' | 'constraint' | 'account' | 'qos'> = useMemo(
    () => ({ ...(form.at && { site: form.at }), ...(form.software && { software: form.software }), ...(form.constraint.trim() && { constraint: form.constraint.trim() }), ...(account && { account }), ...(qos && { qos }) }),
    [form.at, form.software, form.constraint, account, qos],
  );
  const asked: Asked | null = useMemo(() => {
    if (!right || repeats || npe === null || duration === null || ready === null || deadline === null || othersText === null || tooSoon) return null;
    const instead = JSON.parse(othersText) as Variant[];
    const shape = instead.length > 0 ? { variants: [{ npe, duration }, ...instead] } : { npe, duration };
    return { ...shape, ready: stampOf(ready), deadline: stampOf(deadline), ...more };
  }, [right, repeats, npe, duration, ready, deadline, othersText, tooSoon, more]);
  const body = asked ? JSON.stringify(asked) : '';

  const { repetition, until, wrong } = repeats ? readRepeat(again, base, zone, shortest) : { repetition: null, until: undefined, wrong: new Set<never>() };
  const repeated: Omit<Asked, 'deadline' | 'ready'> & { ready?: string } | null = right && repetition && npe !== null && duration !== null && ready !== null && others !== null
    ? { ...(others.length > 0 ? { variants: [{ npe, duration }, ...others] } : { npe, duration }), ...(form.ready.trim() === 'now' ? {} : { ready: stampOf(ready) }), ...more }
    : null;

  const change = (c: Partial<typeof form>, r: Partial<typeof again> = {}) => {
    setForm((f) => ({ ...f, ...c }));
    setAgain((f) => ({ ...f, ...r }));
    setSeries(null);
    setAnswer(null);
    setFailure(null);
    key.current = '';
  };
  const changes = Object.values(stale).reduce((a, b) => a + b, 0);

  // What could be had is asked for again with each change, but not more often than answers come.
  useEffect(() => {
    if (body === '') {
      setOffers(null);
      setUnasked(null);
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post<{ offers: Offer[] }>('v1/offers', body, { signal: abort.signal }).then(
        (o) => {
          setOffers(o.offers);
          setUnasked(null);
        },
        (e: Failure) => {
          if (abort.signal.aborted) return;
          if (e.problem?.status === 401) onEnded();
          setOffers(null);
          setUnasked(e);
        },
      );
    }, 80);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [body, changes, tries, onEnded]);

  /** act does what a press asks for. away is whether what was pressed is gone once it is done: then the focus goes to what came of it. */
  const act = async (what: () => Promise<void>, away = true) => {
    setBusy(true);
    try {
      await what();
      setFailure(null);
    } catch (e) {
      if (e instanceof Failure) setFailure(e);
      else throw e;
    } finally {
      setBusy(false);
      setDone((d) => ({ times: d.times + 1, away }));
    }
  };
  // The answer stands above the pictures: below the form on a phone, above the offers that were looked at.
  const said = useRef<HTMLDivElement>(null);
  const [done, setDone] = useState({ times: 0, away: false });
  useEffect(() => {
    const top = said.current!.getBoundingClientRect().top;
    if (done.times > 0 && (top < 0 || top > innerHeight - 120)) said.current!.scrollIntoView({ block: 'start' });
    if (done.away) said.current!.focus({ preventScroll: true });
  }, [done]);
  const promise = () => act(async () => {
    key.current ||= crypto.randomUUID();
    if (repeated) {
      setSeries(await post<SeriesAnswer>('v1/series', JSON.stringify({ ...repeated, ...repetition }), { key: key.current }));
      return;
    }
    setAnswer(await post<Answer>('v1/requests', body, { key: key.current }));
  }, repeats); // the form of a series is long: its end may leave the window
  const hold = (o: Offer) => act(async () => {
    const a = await post<Answer>(`v1/offers/${encodeURIComponent(o.id)}/hold`, JSON.stringify({ hold: spoken(holdFor) }), { key: 'hold-' + o.id });
    if (a.decision === 'refused') setAnswer(a);
    else {
      setAnswer(null);
      keep(a.reservation ?? null);
    }
  });
  const confirm = (r: Reservation) => act(async () => {
    const c = await post<Reservation>(`v1/reservations/${encodeURIComponent(r.id)}/confirm`, '', { key: 'confirm-' + r.id });
    keep(null);
    setAnswer({ id: c.id, decision: 'accepted', reservation: c });
  });
  const giveBack = (r: Reservation) => act(async () => {
    await post<Reservation>(`v1/reservations/${encodeURIComponent(r.id)}/release`, '', { key: 'release-' + r.id });
    keep(null);
  });
  const late = held !== null && Date.parse(held.expires ?? '') / 1000 < clock; // then it is looked at
  // A hold that runs out is gone at the service; the page asks rather than counts.
  useEffect(() => {
    if (!held) return;
    get<Reservation>(`v1/reservations/${encodeURIComponent(held.id)}`).then((r) => {
      if (r.state !== 'held') keep(null);
      if (r.state === 'expired') setFailure(new Failure({ status: 0, title: text.book.expired, detail: text.book.expiredAbout, code: '' }));
    }, () => undefined);
  }, [changes, held, late]);

  const alternatives = answer?.decision === 'refused' ? answer.offers ?? [] : offers ?? [];
  const what = asked ?? repeated;
  const shape = what && (what.variants ? `--variants ${what.variants.map((v) => `${v.npe}x${spoken(v.duration)}`).join(',')}` : `--npe ${what.npe} --duration ${spoken(what.duration!)}`);
  const command = what && `berth reserve ${shape}${what.ready ? ` --ready ${what.ready}` : ''} ${asked ? `--deadline ${asked.deadline}` : repeatFlags(repetition!)}${what.site ? ` --site ${what.site}` : ''}${what.software ? ` --software '${what.software.replaceAll("'", "'\\''")}'` : ''}${what.constraint ? ` --constraint '${what.constraint.replaceAll("'", "'\\''")}'` : ''}${what.account ? ` --account ${what.account}` : ''}${what.qos ? ` --qos ${what.qos}` : ''}`;
  const ghosts = (name: string): Ghost[] => alternatives.filter((o) => `${o.site}/${o.pool}` === name).map((o) => ({ start: Date.parse(o.start) / 1000, end: Date.parse(o.end) / 1000, npe: o.npe, runs: runs(o.pes), label: text.book.differences[o.difference] ?? o.difference }));
  const shownPools = form.at ? pools.filter((p) => p.site.name === form.at) : pools;
  const spell = (p: Place) => period(Date.parse(p.start) / 1000, Date.parse(p.end) / 1000, zone);
  const understood = (at: number | null) => (at === null ? undefined : `${time(at, zone)} ${zone}`);

  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, md: 4, lg: 3 }}>
        <Stack gap="xs" component="form" onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (what && !busy) void promise(); }}>
          <Title order={1} size="h3">{text.book.title}</Title>
          <TextInput label="PEs" value={form.npe} onChange={(e) => change({ npe: e.currentTarget.value })} error={npe === null && text.book.badCount(form.npe)} inputMode="numeric" />
          <TextInput label="Duration" value={form.duration} onChange={(e) => change({ duration: e.currentTarget.value })} error={duration === null && text.book.badLength(form.duration)} description={duration === null ? undefined : length(duration)} inputWrapperOrder={['label', 'input', 'description', 'error']} />
          <TextInput label={text.book.others} placeholder="32x2h, 16x4h" value={form.others} onChange={(e) => change({ others: e.currentTarget.value })} error={others === null && text.book.badVariants(form.others)} description={others && others.length > 0 ? text.book.orElse(others.map((v) => `${text.pes(v.npe)} for ${length(v.duration)}`)) : undefined} inputWrapperOrder={['label', 'input', 'description', 'error']} />
          <TextInput label="Not before" value={form.ready} onChange={(e) => { setBase(Math.floor(now())); change({ ready: e.currentTarget.value }); }} error={ready === null && text.book.badTime(form.ready)} description={understood(ready)} inputWrapperOrder={['label', 'input', 'description', 'error']} />
          <Checkbox size="xs" label={text.book.repeats} checked={repeats} onChange={(e) => change({}, { on: e.currentTarget.checked })} />
          {repeats && <Repeats form={again} change={(r) => { setBase(Math.floor(now())); change({}, r); }} zone={zone} wrong={wrong} until={until} />}
          {!repeats && <TextInput label="Deadline" value={form.deadline} onChange={(e) => { setBase(Math.floor(now())); change({ deadline: e.currentTarget.value }); }} error={deadline === null ? text.book.badTime(form.deadline) : tooSoon && text.book.tooSoon} description={understood(deadline)} inputWrapperOrder={['label', 'input', 'description', 'error']} />}
          {!repeats && <Group gap="xs">
            {[-3600, 3600].map((by) => (
              <Button key={by} size="compact-sm" variant="default" disabled={deadline === null} onClick={() => change({ deadline: stampOf(deadline! + by) })}>{by < 0 ? 'An hour less' : 'An hour more'}</Button>
            ))}
          </Group>}
          <Select label="Where" data={[{ value: '', label: text.book.anywhere }, ...(sites ?? []).map((s) => ({ value: s.name, label: s.name }))]} value={form.at} onChange={(v) => change({ at: v ?? '' })} allowDeselect={false} />
          {programs.length > 0 && <Select label={text.book.software} data={[{ value: '', label: text.book.noSoftware }, ...programs.map((p) => ({ value: p, label: p }))]} value={form.software} onChange={(v) => change({ software: v ?? '' })} allowDeselect={false} />}
          <TextInput label={text.book.features} placeholder="intel&ib, [rack1|rack2]" value={form.constraint} onChange={(e) => change({ constraint: e.currentTarget.value })} />
          <Group gap="xs" align="start" grow>
            <TextInput label={text.book.account} autoComplete="off" value={form.account} onChange={(e) => change({ account: e.currentTarget.value })} error={badWord.account && text.book.badWord(account)} />
            <TextInput label={text.book.qos} autoComplete="off" value={form.qos} onChange={(e) => change({ qos: e.currentTarget.value })} error={badWord.qos && text.book.badWord(qos)} />
          </Group>
          <Button type="submit" loading={busy} disabled={!what}>{!repeats ? text.book.promise : repetition?.hold ? text.book.holdAll : text.book.promiseAll}</Button>
          {command && <Text size="xs" c="dimmed">As a command: <Line of={command} /></Text>}
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 8, lg: 9 }}>
        <Stack gap="sm" ref={said} tabIndex={-1} role="group" aria-label={text.book.answers}>
          {!live && <Alert color="orange" variant="light" role="status">{text.notLive}</Alert>}
          <Trouble failure={down} again={look} />
          <Trouble failure={unasked} again={() => setTries((n) => n + 1)} />
          <Trouble failure={failure} />
          {answer?.decision === 'accepted' && answer.reservation && (
            <Alert color="green" variant="light" title={text.book.promised} role="alert" data-testid="promised">
              {text.pes(answer.reservation.npe)} at {answer.reservation.site}, {spell(answer.reservation)} {zone}. <code>berth show {answer.reservation.id}</code>{' '}
              <Button size="compact-xs" variant="default" onClick={() => { setAnswer(null); key.current = ''; }}>{text.book.another}</Button>
            </Alert>
          )}
          {series && <Suspense fallback={<Waiting height={132} />}><Answered key={series.series.id} answer={series} zone={zone} onEnded={onEnded} /></Suspense>}
          {answer?.decision === 'pending' && <Alert color="blue" variant="light" title={text.book.pending} role="alert">{text.book.pendingAbout} <code>berth show {answer.id}</code></Alert>}
          {answer?.decision === 'refused' && <Alert color="orange" variant="light" title={text.book.refused} role="alert" data-testid="refused">{answer.refusal && refused(answer.refusal, zone)} <code>{answer.reason}</code></Alert>}
          {held && (
            <Alert color="blue" variant="light" title={text.book.held} role="alert" data-testid="held">
              <Text size="sm">{text.pes(held.npe)} at {held.site}, {spell(held)} {zone}. {held.expires && text.book.left(length(Math.min(holdFor, Math.max(0, Date.parse(held.expires) / 1000 - clock))))}</Text>
              <Group gap="xs" mt="xs">
                <Button size="compact-sm" disabled={busy} onClick={() => void confirm(held)}>Confirm</Button>
                <Button size="compact-sm" variant="default" disabled={busy} onClick={() => void giveBack(held)}>Give back</Button>
              </Group>
            </Alert>
          )}
          {/* The pictures below stay where they are while offers come and go. */}
          <div style={{ minHeight: answer?.decision === 'accepted' || held || repeats ? undefined : 132 }}>
          {asked && !offers && !down && !unasked && <Waiting height={132} />}
          {asked && offers && alternatives.length === 0 && !answer && <Alert color="gray" variant="light">{text.book.nothing}</Alert>}
          {!repeats && alternatives.length > 0 && !(answer?.decision === 'accepted') && (
            <Group gap="xs" align="stretch" component="ul" className="legend" aria-label="Offers">
              {alternatives.map((o) => {
                const end = Date.parse(o.end) / 1000;
                return (
                  <Paper key={`${o.difference} ${o.site}`} withBorder p="xs" component="li" className="offer">
                    <Text fw={600} size="sm">{text.book.differences[o.difference] ?? o.difference}</Text>
                    <Text size="sm" className="named">{text.pes(o.npe)} at {o.site}, {o.pool}</Text>
                    <Text size="sm">{spell(o)}</Text>
                    <Text size="xs" c="dimmed">takes {length(o.duration)}{deadline !== null && `, ends ${end === deadline ? 'at' : `${length(Math.abs(deadline - end))} ${end < deadline ? 'before' : 'after'}`} the deadline`}, leaves {Math.round(o.idle_pe_seconds / 3600)} PE-hours idle around it</Text>
                    <Costs of={o.cost} />
                    <Button mt={6} size="compact-xs" variant="default" disabled={busy}
                      onPointerDown={(e) => { e.currentTarget.setPointerCapture(e.pointerId); pressed.current = { x: e.clientX, y: e.clientY }; }}
                      onClick={(e) => { if (e.detail === 0 || Math.hypot(e.clientX - pressed.current.x, e.clientY - pressed.current.y) < still) void hold(o); }}
                      aria-label={`Hold for 10 min: ${text.book.differences[o.difference] ?? o.difference}`}>Hold for 10 min</Button>
                  </Paper>
                );
              })}
            </Group>
          )}
          </div>
          {shownPools.map((p) => (
            <BookPool key={p.name} site={p.site} pool={p.pool} zone={zone} theme={theme} clock={clock} stale={(stale[p.name] ?? 0) + (stale[''] ?? 0)} ghosts={repeats ? [] : ghosts(p.name)} ready={ready} deadline={repeats ? null : deadline} asked={asked} onEnded={onEnded}
              onReady={(at) => change({ ready: stampOf(Math.ceil(at / 60) * 60) })}
              onDeadline={(at) => change({ deadline: stampOf(Math.round(at / 60) * 60) })} />
          ))}
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

/** Costs is what an offer costs the jobs of others: a line, and behind it the rest. */
function Costs({ of }: { of: Cost | undefined }) {
  const cost = costOf(of);
  if (!cost) return null;
  return <details className="tip-below"><summary>{cost.line}</summary>{cost.more.join(' ')}</details>;
}

type Reading = ReturnType<typeof readRepeat>;

/** Repeats is how what is asked for repeats. */
function Repeats({ form, change, zone, wrong, until }: { form: RepeatForm; change: (c: Partial<RepeatForm>) => void; zone: string; wrong: Reading['wrong']; until: Reading['until'] }) {
  const field = (name: keyof RepeatForm) => ({ value: form[name], onChange: (e: React.ChangeEvent<HTMLInputElement>) => change({ [name]: e.currentTarget.value }), inputWrapperOrder: ['label', 'input', 'description', 'error'] as ('label' | 'input' | 'description' | 'error')[] });
  const b = text.book;
  return (
    <Paper withBorder p="xs" role="group" aria-label={b.repeats}>
      <Stack gap="xs">
        <TextInput label={b.repeat} placeholder={b.repeatHint} {...field('repeat')} error={wrong.has('repeat') && b.badRepeat} description={b.byClock(zone)} />
        <TextInput label={b.ahead} placeholder="42d" {...field('ahead')} error={wrong.has('ahead') && b.badLength(form.ahead)} description={b.aheadAbout} />
        <TextInput label={b.times} {...field('times')} error={wrong.has('times') ? b.badTimes(form.times) : wrong.has('endless') && b.oneEnd} description={form.ahead.trim() && !wrong.has('ahead') && form.times.trim() === '' && form.until.trim() === '' ? b.noEnd : undefined} inputMode="numeric" />
        <TextInput label={b.until} {...field('until')} error={wrong.has('until') && b.badTime(form.until)} description={typeof until === 'number' ? `${time(until, zone)} ${zone}` : undefined} />
        <TextInput label={b.except} {...field('except')} error={wrong.has('except') && b.badExcept(form.except)} description={b.exceptAbout} />
        <TextInput label={b.add} {...field('add')} error={wrong.has('add') && b.badAdd(form.add)} description={b.addAbout} />
        <TextInput label={b.atLeast} {...field('least')} error={wrong.has('least') && b.badTimes(form.least)} description={b.all} inputMode="numeric" />
        <TextInput label={b.window} {...field('window')} error={wrong.has('window') ? b.badLength(form.window) : wrong.has('short') && b.shortWindow} description={b.windowAbout} />
        <TextInput label={b.hold} {...field('hold')} error={wrong.has('hold') && b.badLength(form.hold)} description={b.holdAbout} />
      </Stack>
    </Paper>
  );
}

/** useStarts asks when what is asked for can start in a pool, while the window is looked at. */
function useStarts(site: string, pool: string, asked: Asked | null, from: number, to: number, stale: number, onEnded: () => void): Lane[] {
  const [state, set] = useState<{ body: string; lanes: Lane[] }>({ body: '', lanes: [] });
  const body = asked && (!asked.site || asked.site === site) ? JSON.stringify({ ...asked, site, pool }) : '';
  const fetched = useRef({ body: '', stale: 0, from: 0, to: 0 });
  useEffect(() => {
    const f = fetched.current;
    if (body === '' || (f.body === body && f.stale === stale && from >= f.from && to <= f.to)) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const begin = Math.max(from - (to - from) / 2, now()); // what is over is no start
      const end = to + (to - from) / 2;
      if (end <= begin) return;
      post<{ pools: Starts[] }>(`v1/rectangles?from=${stampOf(begin)}&to=${stampOf(Math.floor(end))}&most=400`, body, { signal: abort.signal }).then(
        (a) => {
          fetched.current = { body, stale, from: from - (to - from) / 2, to: end };
          set({ body, lanes: lanesOf(a.pools, Math.floor(end)) });
        },
        (e: Failure) => {
          if (abort.signal.aborted) return;
          if (e.problem?.status === 401) onEnded();
          set({ body, lanes: [] }); // the offers say what is wrong
        },
      );
    }, f.body === body ? 500 : 80); // what others do is looked at twice a second
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [body, from, to, stale, onEnded]);
  return state.body === body ? state.lanes : none;
}

const none: Lane[] = [];
const shownStretches = 100;

interface BookPoolProps {
  site: Site; pool: Site['pools'][number]; zone: string; theme: Theme; clock: number; stale: number; ghosts: Ghost[]; ready: number | null; deadline: number | null; asked: Asked | null;
  onReady: (at: number) => void; onDeadline: (at: number) => void; onEnded: () => void;
}

function BookPool({ site, pool, zone, theme, clock, stale, ghosts, ready, deadline, asked, onReady, onDeadline, onEnded }: BookPoolProps) {
  const [view, setView] = useState({ from: Math.floor(now()) - 3600, to: Math.floor(now()) + 23 * 3600 });
  const [begin, setBegin] = useState<number | null>(null);
  const { picture, rows, failure, seen, retry } = usePool(site.name, pool.name, view.from, view.to, stale);
  const lanes = useStarts(site.name, pool.name, asked, view.from, view.to, stale, onEnded);
  const [asks, setAsks] = useState<{ lane: number; at: number } | null>(null); // the start that was asked about
  const [listed, setListed] = useState(false);
  const drawn = useMemo(() => lanes.filter((l) => !l.refusal), [lanes]);
  const asking = asks && drawn[asks.lane];
  // A window that does not show the deadline is of no use here; what was chosen by hand stays otherwise.
  const shows = deadline === null || (deadline > view.from && deadline < view.to);
  const fit = useCallback(() => {
    if (deadline === null) return;
    const from = Math.min(ready ?? now(), deadline) - 3600;
    setView({ from, to: deadline + Math.max(3600, (deadline - from) * 0.15) });
  }, [ready, deadline]);
  useEffect(() => {
    if (!shows) fit();
  }, [shows, fit]);
  return (
    <Paper withBorder radius="sm" p="xs" component="section" aria-label={`${site.name}, ${pool.name}`}>
      <Group gap="xs" mb={4}><Text fw={600} size="sm" className="named">{site.name}, {pool.name}</Text><Text size="sm" c="dimmed">{text.freeNow(pool.free, pool.pes)}</Text></Group>
      <Trouble failure={failure} seen={seen} zone={zone} again={retry} />
      {picture && (
        <Gantt picture={picture} rows={rows} pes={pool.pes} from={view.from} to={view.to} now={clock} zone={zone} theme={theme} mask={null} begin={begin} onBegin={setBegin} stale={failure !== null} selected={-1} name={`${site.name}, ${pool.name}`}
          ghosts={ghosts} lanes={drawn} onStart={(lane, at) => { setAsks({ lane, at }); const s = drawn[lane]?.stretches[stretchAt(drawn[lane]!, at)]; if (s && !s.refusal) onReady(at); }} ready={ready ?? undefined} deadline={deadline ?? undefined} onDeadline={onDeadline}
          onWindow={(from, to) => setView({ from: Math.round(from), to: Math.round(Math.max(to, from + 300)) })} onSelect={() => undefined} onOpen={() => undefined} onKey={(k) => k === '0' && fit()} />
      )}
      {lanes.filter((l) => l.refusal).map((l, i) => <Text key={i} size="sm" mt={4} className="named">{startSaid(l, 0, zone)}</Text>)}
      {asking && <Text size="sm" mt={4} className="named" data-testid="why">{startSaid(asking, asks.at, zone)}</Text>}
      {drawn.length > 0 && <Button mt={4} size="compact-xs" variant="default" aria-expanded={listed} onClick={() => setListed(!listed)} aria-label={`${text.book.when}: ${site.name}, ${pool.name}`}>{listed ? '▾' : '▸'} {text.book.when}</Button>}
      {listed && (
        <ScrollArea.Autosize mah={260} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': `${text.book.when}: ${site.name}, ${pool.name}` }}>
          <Table aria-label={`${text.book.when}: ${site.name}, ${pool.name}`} verticalSpacing={3}>
            <Table.Thead><Table.Tr><Table.Th>What</Table.Th><Table.Th>Starts ({zone})</Table.Th><Table.Th>Possible</Table.Th><Table.Th><span className="unseen">Take</span></Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>
              {drawn.flatMap((l, k) => l.stretches.filter((s) => s.first < view.to && s.last >= view.from).slice(0, shownStretches).map((s) => (
                <Table.Tr key={`${k} ${s.first}`}>
                  <Table.Td>{text.pes(l.npe)} for {length(l.duration)}</Table.Td>
                  <Table.Td>{period(s.first, s.last, zone)}</Table.Td>
                  <Table.Td className="named">{s.refusal ? why(l, s.refusal) : text.book.possible}</Table.Td>
                  <Table.Td>{!s.refusal && <Button size="compact-xs" variant="default" onClick={() => onReady(s.first)} aria-label={`${text.book.from} ${time(s.first, zone)}`}>{text.book.from}</Button>}</Table.Td>
                </Table.Tr>
              )))}
            </Table.Tbody>
          </Table>
        </ScrollArea.Autosize>
      )}
    </Paper>
  );
}
