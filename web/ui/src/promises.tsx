import { Alert, Anchor, Button, Checkbox, Drawer, Group, Paper, Stack, Table, Text, Textarea, TextInput, Title } from '@mantine/core';
import { useEffect, useState } from 'react';
import { act, Failure, get, now, type Me, type Site } from './api.js';
import { length, period, time } from './clock.js';
import { useAddress, useAsked, useChanges, useGot } from './follow.js';
import { parseLength, parseTime, spoken } from './grammar.js';
import { at, curl, differences, ended, live, modifyLine, over, placedBefore, sentence, where, wished, type Happening, type Reservation, type Task } from './life.js';
import { Feeds } from './feeds.js';
import { Formed, type FormProps, inOrder } from './forms.js';
import { Hooks } from './hooks.js';
import { spanned } from './names.js';
import { inWords, nextOf, type Series } from './recur.js';
import { OneSeries } from './series.js';
import { Command, Once, Stamp, State, Trouble, usualZone, Waiting } from './parts.js';
import { text } from './text.js';
import { words } from './words.js';

const w = words.promises;
const pageSize = 200;
const seriesSize = 500;

interface Listed { reservations: Reservation[]; next?: string }

export default function Promises({ me, onLive, onEnded }: { me: Me; onLive: (live: boolean) => void; onEnded: () => void }) {
  const zone = usualZone();
  const { changes, live: hears, clock } = useChanges(onLive, onEnded);
  const [query, change] = useAddress();
  const [pages, setPages] = useState(1);
  const all = query.get('all') === '1';
  const everybody = me.role === 'operator' && query.get('everybody') === '1';
  const chosen = query.get('sel') ?? '';
  const named = query.get('name') ?? '';
  const [feeds, setFeeds] = useState(false);
  const [notices, setNotices] = useState(false);
  const base = `v1/reservations?limit=${pageSize}${everybody ? '' : `&user=${encodeURIComponent(me.user)}`}${all ? '' : `&state=${live}`}${named ? `&name=${encodeURIComponent(named)}` : ''}`;
  const { value, failure, seen, again } = useAsked<Listed>(
    async (signal) => {
      const list: Reservation[] = [];
      let next = '';
      for (let n = 0; n < pages && (n === 0 || next); n++) {
        const page = await get<Listed>(base + (next ? `&cursor=${encodeURIComponent(next)}` : ''), signal);
        list.push(...page.reservations);
        next = page.next ?? '';
      }
      return { reservations: list, next };
    },
    `${pages} ${base}`, changes, onEnded,
  );
  const group = query.get('series') ?? '';
  const each = query.get('each') === '1';
  const [seriesPages, setSeriesPages] = useState(1);
  const ofWhom = `v1/series?limit=${seriesSize}${everybody ? '' : `&user=${encodeURIComponent(me.user)}`}`;
  const repeats = useAsked<{ series: Series[]; next?: string }>(
    async (signal) => {
      const list: Series[] = [];
      let next = '';
      for (let n = 0; n < seriesPages && (n === 0 || next); n++) {
        const page = await get<{ series: Series[]; next?: string }>(ofWhom + (next ? `&cursor=${encodeURIComponent(next)}` : ''), signal);
        list.push(...page.series);
        next = page.next ?? '';
      }
      return { series: list, next };
    },
    `${seriesPages} ${ofWhom}`, changes, onEnded,
  );
  const sites = useGot<{ sites: Site[] }>('v1/sites', changes, onEnded).value?.sites ?? [];
  const list = [...(value?.reservations ?? [])].sort(
    (a, b) => Number(over(a.state)) - Number(over(b.state)) || (over(a.state) ? at(b.changed ?? '') - at(a.changed ?? '') : at(a.start ?? a.ready ?? '') - at(b.start ?? b.ready ?? '')) || (a.id < b.id ? -1 : 1),
  );
  const known = new Map((repeats.value?.series ?? []).map((s) => [s.id, s]));
  const groups = [...known.values()].filter((s) => (all || s.live > 0 || s.open) && (!named || s.name === named));
  const singles = each || named ? list : list.filter((r) => !known.has(r.series ?? ''));
  const ofSeries = new Map(groups.map((s) => [s.id, list.filter((r) => r.series === s.id)]));
  const placed = list.filter((r) => r.start && r.end && !over(r.state));
  const from = Math.min(clock, ...placed.map((r) => at(r.start!)));
  const to = Math.max(clock + 3600, ...placed.map((r) => at(r.end!)));
  const note = (r: Reservation) => {
    if (r.state === 'held' && r.expires) return w.left(length(Math.max(0, at(r.expires) - clock)));
    if (r.state === 'active' && r.end) return w.runsFor(length(Math.max(0, at(r.end) - clock)));
    if (!over(r.state) && r.start && at(r.start) > clock) return w.startsIn(length(at(r.start) - clock));
    return r.reason ?? '';
  };

  return (
    <Stack gap="sm">
      <Group justify="space-between" align="end" gap="sm">
        <div>
          <Title order={1} size="h3">{everybody ? w.titleAll : w.title}</Title>
          <Text size="sm" c="dimmed">{zone}</Text>
        </div>
        <Group gap="md">
          <TextInput key={named} size="xs" w={170} aria-label={w.name} placeholder={w.name} defaultValue={named} maxLength={64} onBlur={(e) => change('name', e.currentTarget.value.trim())} onKeyDown={(e) => { if (e.key === 'Enter') change('name', e.currentTarget.value.trim()); }} />
          {me.role === 'operator' && <Checkbox size="xs" label={w.everybody} checked={everybody} onChange={(e) => change('everybody', e.currentTarget.checked ? '1' : '')} />}
          {groups.length > 0 && <Checkbox size="xs" label={words.series.each} checked={each} onChange={(e) => change('each', e.currentTarget.checked ? '1' : '')} />}
          <Checkbox size="xs" label={w.over} checked={all} onChange={(e) => change('all', e.currentTarget.checked ? '1' : '')} />
          {me.role !== 'viewer' && (
            <Group gap="xs" wrap="nowrap">
              <Button size="compact-sm" variant="default" aria-haspopup="dialog" onClick={() => setFeeds(true)}>{w.feed}</Button>
              <Button size="compact-sm" variant="default" aria-haspopup="dialog" onClick={() => setNotices(true)}>{w.notices}</Button>
            </Group>
          )}
        </Group>
      </Group>
      {!hears && <Alert color="orange" variant="light" role="status">{text.notLive}</Alert>}
      <Trouble failure={failure} seen={seen} zone={zone} again={again} />
      {!value && !failure && <Waiting />}
      <Trouble failure={repeats.failure} seen={repeats.seen} zone={zone} again={repeats.again} />
      {value && list.length === 0 && groups.length === 0 && (
        <Alert color="gray" title={w.none} data-testid="none">
          {named ? w.noneNamed(named) : everybody ? w.noneEverybody : all ? w.noneAll : w.noneAbout} {!everybody && <Anchor href="book">{w.book}</Anchor>}
        </Alert>
      )}
      {groups.length > 0 && (
        <Paper withBorder radius="sm">
          <Table highlightOnHover aria-label={words.series.title} verticalSpacing={6} className="list" data-testid="groups">
            <Table.Thead><Table.Tr><Table.Th>{words.series.title}</Table.Th>{everybody && <Table.Th visibleFrom="sm">User</Table.Th>}<Table.Th>{words.series.next}</Table.Th><Table.Th visibleFrom="sm">{words.series.stands}</Table.Th><Table.Th visibleFrom="md" w="28%">{period(from, to, zone)}</Table.Th><Table.Th><span className="unseen">Details</span></Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>
              {groups.map((s) => {
                const next = nextOf(ofSeries.get(s.id)!);
                return (
                  <Table.Tr key={s.id} data-series={s.id} data-selected={s.id === group || undefined} onClick={() => change('series', s.id)} style={{ cursor: 'pointer' }}>
                    <Table.Td>{s.name && <Text size="sm" fw={600} className="named brief" title={s.name}>{s.name}</Text>}<Text size="sm" className="named brief">{(s.moved?.length ? words.series.aboutMoved : words.series.about)(inWords(s.repeat ?? '') || words.series.given, s.time_zone)}</Text>{s.decision !== 'accepted' && <State of="warning" words={words.series.decisions[s.decision] ?? s.decision} />}{everybody && <Text size="xs" className="named brief" hiddenFrom="sm">{s.user}</Text>}</Table.Td>
                    {everybody && <Table.Td className="named" visibleFrom="sm">{s.user}</Table.Td>}
                    <Table.Td>{next?.start && next.end ? <><Text size="sm"><Stamp of={period(at(next.start), at(next.end), zone)} /></Text><Text size="xs" c="dimmed">{note(next)}</Text></> : s.live > 0 ? '–' : words.series.nothingNext}</Table.Td>
                    <Table.Td visibleFrom="sm">{words.series.live(s.live, s.count, 0)}{s.open && s.promised_until && <Text size="xs">{words.series.openUntil(time(at(s.promised_until), zone))}</Text>}</Table.Td>
                    <Table.Td visibleFrom="md"><Lanes list={ofSeries.get(s.id)!.filter((r) => !over(r.state))} from={from} to={to} clock={clock} /></Table.Td>
                    <Table.Td ta="right"><Button size="compact-xs" variant="default" aria-label={`Details of series ${s.name || s.id}`} aria-haspopup="dialog" onClick={(e) => { e.stopPropagation(); change('series', s.id); }}>Details</Button></Table.Td>
                  </Table.Tr>
                );
              })}
            </Table.Tbody>
          </Table>
        </Paper>
      )}
      {repeats.value?.next && <div><Button variant="default" size="compact-sm" onClick={() => setSeriesPages(seriesPages + 1)}>{words.series.more}</Button></div>}
      {singles.length > 0 && (
        <Paper withBorder radius="sm">
          <Table highlightOnHover aria-label={everybody ? w.titleAll : w.title} verticalSpacing={6} className="list">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>State</Table.Th>{everybody && <Table.Th visibleFrom="sm">User</Table.Th>}<Table.Th>When</Table.Th><Table.Th visibleFrom="sm">Where</Table.Th><Table.Th ta="right">PEs</Table.Th>
                <Table.Th visibleFrom="md" w="28%">{period(from, to, zone)}</Table.Th><Table.Th><span className="unseen">Details</span></Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {singles.map((r) => (
                <Table.Tr key={r.id} data-id={r.id} data-selected={r.id === chosen || undefined} onClick={() => change('sel', r.id)} style={{ cursor: 'pointer' }}>
                  <Table.Td><State of={r.missing && !over(r.state) ? 'degraded' : r.state} words={r.state.replaceAll('_', ' ')} />{Boolean(r.missing) && <Text size="xs" fw={600}>{w.missing(r.missing!)}</Text>}{r.name && <Text size="xs" className="named brief" title={r.name}>{r.name}</Text>}{everybody && <Text size="xs" className="named brief" hiddenFrom="sm">{r.user}</Text>}</Table.Td>
                  {everybody && <Table.Td className="named" visibleFrom="sm">{r.user}</Table.Td>}
                  <Table.Td>
                    <Text size="sm"><Stamp of={r.start && r.end ? period(at(r.start), at(r.end), zone) : r.deadline ? `by ${time(at(r.deadline), zone)}` : '–'} /></Text>
                    <Text size="xs" c="dimmed">{note(r)}</Text>
                  </Table.Td>
                  <Table.Td visibleFrom="sm" className="named">{where(r) || '–'}</Table.Td>
                  <Table.Td ta="right">{r.npe ?? (r.missing ? 0 : '–')}</Table.Td>
                  <Table.Td visibleFrom="md">{!over(r.state) && <Lane r={r} from={from} to={to} clock={clock} />}</Table.Td>
                  <Table.Td ta="right"><Button size="compact-xs" variant="default" aria-label={`Details of ${r.id}`} aria-haspopup="dialog" onClick={(e) => { e.stopPropagation(); change('sel', r.id); }}>Details</Button></Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Paper>
      )}
      {value?.next && <Button variant="default" size="compact-sm" onClick={() => setPages(pages + 1)}>{w.more}</Button>}
      <Drawer lockScroll={false} opened={chosen !== ''} onClose={() => change('sel', '')} position="right" size="lg" title={<span className="named brief" title={chosen}>{chosen}</span>} overlayProps={{ backgroundOpacity: 0.08 }} closeButtonProps={{ 'aria-label': 'Close' }}>
        {chosen && <Once key={chosen}><OnePromise id={chosen} sites={sites} zone={zone} clock={clock} changes={changes} onEnded={onEnded} onDone={again} /></Once>}
      </Drawer>
      <Drawer lockScroll={false} opened={group !== '' && chosen === ''} onClose={() => change('series', '')} position="right" size="lg" title={<span className="named brief" title={group}>{known.get(group)?.name || words.series.of(inWords(known.get(group)?.repeat ?? ''))}</span>} overlayProps={{ backgroundOpacity: 0.08 }} closeButtonProps={{ 'aria-label': 'Close' }}>
        {group && <Once key={group}><OneSeries id={group} zone={zone} changes={changes} onEnded={onEnded} onDone={() => { again(); repeats.again(); }} /></Once>}
      </Drawer>
      <Drawer lockScroll={false} opened={feeds} onClose={() => setFeeds(false)} position="right" size="lg" title={words.feeds.title} overlayProps={{ backgroundOpacity: 0.08 }} closeButtonProps={{ 'aria-label': 'Close' }}>
        {feeds && <Feeds me={me} sites={sites.map((s) => s.name)} zone={zone} onEnded={onEnded} />}
      </Drawer>
      <Drawer lockScroll={false} opened={notices} onClose={() => setNotices(false)} position="right" size="lg" title={words.hooks.title} overlayProps={{ backgroundOpacity: 0.08 }} closeButtonProps={{ 'aria-label': 'Close' }}>
        {notices && <Once><Hooks me={me} sites={sites.map((s) => s.name)} zone={zone} changes={changes} onEnded={onEnded} /></Once>}
      </Drawer>
    </Stack>
  );
}

/** Lane draws when a promise is; the column beside it says the same in words. */
const Lane = ({ r, ...rest }: { r: Reservation; from: number; to: number; clock: number }) => <Lanes list={[r]} {...rest} />;

/** Lanes draws when some promises are, in one row. */
function Lanes({ list, from, to, clock }: { list: Reservation[]; from: number; to: number; clock: number }) {
  const x = (t: number) => `${((t - from) / Math.max(1, to - from)) * 100}%`;
  const places = list.flatMap((r) => (r.parts?.length ? r.parts : [r]).map((p) => ({ start: p.start, end: p.end, how: r.missing ? 'degraded' : r.state })));
  return (
    <svg width="100%" height={22} aria-hidden="true" className="lane">
      <line x1="0" x2="100%" y1="21.5" y2="21.5" className="rule" />
      {places.filter((p) => p.start && p.end).map((p, i) => (
        <rect key={i} x={x(at(p.start!))} width={`max(3px, ${((at(p.end!) - at(p.start!)) / Math.max(1, to - from)) * 100}%)`} y={4} height={14} rx={2} className={`bar ${p.how}`} />
      ))}
      <line x1={x(clock)} x2={x(clock)} y1="0" y2="22" className="now" />
    </svg>
  );
}

type Act = keyof typeof w.acts;

/** OnePromise is all about a promise, and what can be done. */
function OnePromise({ id, sites, zone, clock, changes, onEnded, onDone }: { id: string; sites: Site[]; zone: string; clock: number; changes: number; onEnded: () => void; onDone: () => void }) {
  const path = `v1/reservations/${encodeURIComponent(id)}`;
  const got = useGot<Reservation>(path, changes, onEnded);
  const past = useGot<{ history: Happening[]; since?: string }>(`${path}/history`, changes);
  const tasks = useGot<{ tasks: Task[]; untold?: string[] }>(`${path}/tasks?limit=999`, changes);
  const [form, setForm] = useState<Act | null>(null);
  const [based, setBased] = useState<Reservation | null>(null); // what was seen when the form was opened
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [done, setDone] = useState<{ title: string; line: string } | null>(null);
  const [no, setNo] = useState<string | null>(null);
  const [other, setOther] = useState<{ fresh: Reservation; differs: [string, string, string][]; again: (version: number) => void } | null>(null);
  const version = got.value?.version;
  // What the service could not take then may have been done by itself since.
  useEffect(() => setFailure((f) => (f?.problem.status === 503 ? null : f)), [version]);
  const r = got.value;
  if (!r) return got.failure ? (got.failure.problem.status === 404 ? <Alert color="gray">{w.gone}</Alert> : <Trouble failure={got.failure} again={got.again} />) : <Waiting />;

  /** run does something to the version that was seen; if it is another by now, what differs is shown. */
  const run = async (what: Act, line: string, send: (version: number) => Promise<{ decision?: string; refusal?: { detail: string } } | null>, version = (based ?? r).version) => {
    setBusy(true);
    setFailure(null);
    setNo(null);
    setOther(null);
    setDone(null);
    try {
      const answer = await send(version);
      if (answer?.decision === 'refused') setNo(answer.refusal?.detail ?? '');
      else {
        setDone({ title: answer?.decision === 'pending' ? w.pending : w.done[what], line });
        setForm(null);
        setBased(null);
      }
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      if (e.problem.status === 401) onEnded();
      if (e.problem.status === 412) {
        const fresh = await get<Reservation>(path).catch(() => null);
        if (fresh) setOther({ fresh, differs: differences(based ?? r, fresh, zone), again: (v) => void run(what, line, send, v) });
        else setFailure(e);
      } else setFailure(e);
    } finally {
      setBusy(false);
      got.again();
      past.again();
      tasks.again();
      onDone();
    }
  };
  const simply = (what: 'confirm' | 'release' | 'cancel' | 'prepare' | 'checkIn') => {
    const name = { confirm: 'confirm', release: 'release', cancel: 'release', prepare: 'prepare', checkIn: 'check-in' }[what];
    const line = what === 'prepare' || what === 'checkIn' ? curl('POST', `${path}/${name}`) : `berth ${what} ${id}`;
    return run(what, line, (v) => act('POST', `${path}/${name}`, null, v));
  };
  const open = (what: Act) => {
    setForm(what);
    setBased(r);
    setDone(null);
    setFailure(null);
    setNo(null);
    setOther(null);
  };
  const shut = () => {
    setForm(null);
    setBased(null);
    setNo(null);
    setOther(null);
    setFailure(null);
  };

  // At a Slurm site users hand in jobs themselves; what another adapter cannot run it says.
  const slurm = r.sites?.find((s) => sites.find((x) => x.name === s.site)?.adapter === 'slurm');
  const local = !slurm && Boolean(r.sites?.length);
  const can: Act[] = [];
  if (!over(r.state)) {
    if (r.state === 'held') can.push('confirm');
    if (r.state !== 'active' && r.state !== 'pending') can.push('modify');
    if (r.state !== 'pending') can.push('extend');
    if (r.state === 'active' && r.no_show && !r.checked_in) can.push('checkIn');
    if (local) can.push('run');
    if (r.state !== 'held' && r.state !== 'active' && r.sites?.some((s) => !s.made)) can.push('prepare');
    can.push(r.state === 'active' ? 'release' : 'cancel');
  }
  const stamp = (t: string) => `${time(at(t), zone)} ${zone}`;
  const lines: [string, React.ReactNode][] = [['State', <State key="s" of={r.missing && !over(r.state) ? 'degraded' : r.state} words={r.state.replaceAll('_', ' ')} />]];
  if (r.name) lines.push([w.name, r.name]);
  if (r.series) lines.push([words.series.one, <Anchor key="r" size="sm" href={`promises?series=${encodeURIComponent(r.series)}`}>{words.series.occurrenceOf(r.occurrence ?? 0)}</Anchor>]);
  if (r.user) lines.push(['User', r.user]);
  for (const p of r.parts?.length ? r.parts : [r]) {
    if (p.site) lines.push(['Where', `${p.site}${p.pool ? `, ${p.pool}` : ''}`]);
    lines.push(['PEs', `${p.npe ?? '–'}${p.pes ? (p.nodes?.length ? '' : ` (${spanned(p.pes)})`) : p.site && p.start && !over(r.state) ? `, ${text.provisional}` : ''}`]);
    if (p.nodes?.length) lines.push(['Nodes', p.nodes.join(', ')]);
    if (p.start && p.end) lines.push(['When', `${period(at(p.start), at(p.end), zone)} ${zone} (${length(at(p.end) - at(p.start))})`]);
  }
  if (r.missing) lines.push(['Missing', text.pes(r.missing)]);
  if (r.expires) lines.push(['Held until', `${stamp(r.expires)}, ${w.left(length(Math.max(0, at(r.expires) - clock)))}`]);
  if (r.ready) lines.push(['Not before', stamp(r.ready)]);
  if (r.deadline) lines.push(['Deadline', stamp(r.deadline)]);
  if (r.data) lines.push(['Data', `on their way until ${stamp(r.data.end)}`]);
  for (const s of r.sites ?? []) lines.push([`At ${s.site}`, `${s.made ? w.made(s.name) : w.notMade}${s.trouble ? `: ${s.trouble}` : ''}`]);
  if (r.refusal) lines.push(['Refused', r.refusal.detail]);
  else if (r.reason) lines.push(['Reason', r.reason]);
  const before = placedBefore(past.value?.history ?? []);
  const stamps = r.start && r.end && r.site ? `harbour?site=${encodeURIComponent(r.site)}&t=${hourBack(r.start)}..${hourOn(r.end)}&owner=mine${zone === usualZoneOfBrowser() ? '' : `&tz=${encodeURIComponent(zone)}`}` : null;

  return (
    <Stack gap="sm" data-testid="one">
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      <Table variant="vertical" layout="fixed" aria-label="The promise"><Table.Tbody>{lines.map(([k, v], i) => <Table.Tr key={i}><Table.Th w={110}>{k}</Table.Th><Table.Td className="named">{v}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
      {stamps && <Anchor href={stamps} size="sm">{w.harbour}</Anchor>}
      {done && <Alert color="green" variant="light" title={done.title} role="alert" data-testid="done"><Command line={done.line} /></Alert>}
      {no !== null && <Alert color="orange" variant="light" title={w.refused} role="alert" data-testid="no">{no}</Alert>}
      <Trouble failure={failure} />
      {other && (
        <Alert color="orange" variant="light" title={w.changed} role="alert" data-testid="other">
          <Text size="sm">{other.differs.length > 0 ? w.changedAbout : w.changedNothing}</Text>
          <ul className="plain">{other.differs.map(([name, was, is]) => <li key={name}>{name}: {was} → <strong>{is}</strong></li>)}</ul>
          <Group gap="xs"><Button size="compact-sm" disabled={busy} onClick={() => other.again(other.fresh.version)}>{w.anyway}</Button><Button size="compact-sm" variant="default" onClick={shut}>{w.close}</Button></Group>
        </Alert>
      )}
      {can.length > 0 && !form && (
        <Group gap="xs" role="group" aria-label="What can be done">
          {can.map((a) => (
            <Button key={a} size="compact-sm" disabled={busy} variant={a === 'confirm' ? 'filled' : 'default'} onClick={() => (a === 'confirm' || a === 'prepare' || a === 'checkIn' ? void simply(a) : open(a))}>{w.acts[a]}</Button>
          ))}
        </Group>
      )}
      {(form === 'cancel' || form === 'release') && can.includes(form) && (
        <Paper withBorder p="sm" role="group" aria-label={w.acts[form]}>
          <Text size="sm" mb="xs">{w.sure[form]}</Text>
          <Group gap="xs"><Button size="compact-sm" color="red" loading={busy} data-autofocus onClick={() => void simply(form)}>{w.yes[form]}</Button><Button size="compact-sm" variant="default" onClick={shut}>{w.keep}</Button></Group>
        </Paper>
      )}
      {form === 'extend' && <Extend r={based ?? r} zone={zone} busy={busy} onShut={shut} onSend={(by) => void run('extend', `berth extend ${id} --by ${spoken(by)}`, (v) => act('POST', `${path}/extend`, { by }, v))} />}
      {form === 'modify' && <Modify r={based ?? r} zone={zone} busy={busy} onShut={shut} onSend={(wish) => void run('modify', modifyLine(id, wish), (v) => act('PATCH', path, wish, v))} />}
      {form === 'run' && (
        <Run busy={busy} onShut={shut}
          onSend={(script, dir) => void run('run', `berth submit --reservation ${id} --dir ${dir} SCRIPT`, async (v) => { await act('POST', `${path}/run`, { script, dir, env: ['PATH=/usr/local/bin:/usr/bin:/bin'] }, v); return null; })} />
      )}
      <section aria-label={w.tasks}>
        <Title order={2} size="h5" mb={4}>{w.tasks}</Title>
        <Trouble failure={tasks.failure} seen={tasks.seen} zone={zone} again={tasks.again} />
        {tasks.value && tasks.value.tasks.length === 0 && <Text size="sm" c="dimmed">{tasks.value.untold?.length ? w.untold(tasks.value.untold.join(', ')) : w.noTasks}</Text>}
        {tasks.value && tasks.value.tasks.length > 0 && (
          <Table aria-label={w.tasks} layout="auto">
            <Table.Thead><Table.Tr><Table.Th>Job</Table.Th><Table.Th>State</Table.Th><Table.Th>Ran</Table.Th><Table.Th>Output</Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>
              {tasks.value.tasks.map((t) => (
                <Table.Tr key={t.site + t.job}>
                  <Table.Td className="named">{t.name || t.job}</Table.Td>
                  <Table.Td><State of={t.state} words={ended(t)} />{t.reason && <Text size="xs" className="named">{t.reason}</Text>}</Table.Td>
                  <Table.Td>{t.start ? (t.end ? `${period(at(t.start), at(t.end), zone)}` : `since ${time(at(t.start), zone)}`) : '–'}</Table.Td>
                  <Table.Td className="named">{t.output}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </section>
      <section aria-label={w.history}>
        <Title order={2} size="h5" mb={4}>{w.history}</Title>
        <Trouble failure={past.failure} seen={past.seen} zone={zone} again={past.again} />
        {!past.value && !past.failure && <Waiting height={60} />}
        {past.value?.since && <Text size="sm" c="dimmed">{w.since(stamp(past.value.since))}</Text>}
        <ol className="plain" data-testid="history">
          {past.value?.history.map((h, i) => <li key={i}><Text size="sm" className="named"><span className="faint">{time(at(h.at), zone)}</span> {sentence(h, before[i] ?? null, zone)}</Text></li>)}
        </ol>
      </section>
      <Stack gap={6}>
        <Command line={`berth show ${id}`} />
        {!over(r.state) && slurm && <Command label={w.handIn} line={slurm.made ? `sbatch --reservation=${slurm.name} JOB.sh` : `berth submit --reservation ${id} JOB.sh`} />}
        {!over(r.state) && local && <Command label={w.handIn} line={`berth submit --reservation ${id} JOB.sh`} />}
      </Stack>
    </Stack>
  );
}

const usualZoneOfBrowser = () => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
const hourBack = (t: string) => new Date((at(t) - 3600) * 1000).toISOString().slice(0, 19) + 'Z';
const hourOn = (t: string) => new Date((at(t) + 3600) * 1000).toISOString().slice(0, 19) + 'Z';

function Extend({ r, zone, busy, onShut, onSend }: FormProps & { r: Reservation; zone: string; onSend: (by: number) => void }) {
  const [by, setBy] = useState('30m');
  const seconds = parseLength(by);
  const end = r.parts?.length ? r.parts[0]!.end : r.end;
  return (
    <Formed name={w.acts.extend} send={w.acts.extend} ready={seconds !== null} busy={busy} onShut={onShut} onSubmit={() => onSend(seconds!)}>
      <TextInput label={w.by} value={by} data-autofocus autoFocus onChange={(e) => setBy(e.currentTarget.value)} error={seconds === null && text.book.badLength(by)} description={seconds !== null && end ? `${length(seconds)}, ${w.until(`${time(at(end) + seconds, zone)} ${zone}`)}` : undefined} inputWrapperOrder={inOrder} />
      {seconds !== null && <Command line={`berth extend ${r.id} --by ${spoken(seconds)}`} />}
    </Formed>
  );
}

function Modify({ r, zone, busy, onShut, onSend }: FormProps & { r: Reservation; zone: string; onSend: (wish: ReturnType<typeof wished>) => void }) {
  const [base] = useState(() => Math.floor(now()));
  const rigid = !r.parts?.length && !r.variants?.length;
  const [f, set] = useState({ npe: String(r.npe ?? ''), duration: spoken(r.duration ?? 0), ready: r.ready ?? '', deadline: r.deadline ?? '' });
  const npe = /^\d{1,7}$/.test(f.npe.trim()) && Number(f.npe) > 0 ? Number(f.npe) : null;
  const duration = parseLength(f.duration);
  const ready = parseTime(f.ready, base, zone);
  const deadline = parseTime(f.deadline, base, zone);
  const wish = wished(r, { npe: rigid ? npe : null, duration: rigid ? duration : null, ready, deadline });
  const right = (!rigid || (npe !== null && duration !== null)) && (ready !== null || !r.ready) && (deadline !== null || !r.deadline);
  const any = Object.keys(wish).length > 0;
  const understood = (t: number | null) => (t === null ? undefined : `${time(t, zone)} ${zone}`);
  return (
    <Formed name={w.acts.modify} send={w.acts.modify} ready={right && any} busy={busy} onShut={onShut} onSubmit={() => onSend(wish)}>
      {rigid && <TextInput label="PEs" value={f.npe} autoFocus onChange={(e) => set({ ...f, npe: e.currentTarget.value })} error={npe === null && text.book.badCount(f.npe)} inputMode="numeric" />}
      {rigid && <TextInput label="Duration" value={f.duration} onChange={(e) => set({ ...f, duration: e.currentTarget.value })} error={duration === null && text.book.badLength(f.duration)} description={duration === null ? undefined : length(duration)} inputWrapperOrder={inOrder} />}
      <TextInput label="Not before" value={f.ready} onChange={(e) => set({ ...f, ready: e.currentTarget.value })} error={ready === null && (r.ready || f.ready) && text.book.badTime(f.ready)} description={understood(ready)} inputWrapperOrder={inOrder} />
      <TextInput label="Deadline" value={f.deadline} onChange={(e) => set({ ...f, deadline: e.currentTarget.value })} error={deadline === null && (r.deadline || f.deadline) && text.book.badTime(f.deadline)} description={understood(deadline)} inputWrapperOrder={inOrder} />
      {any && right ? <Command line={modifyLine(r.id, wish)} /> : <Text size="sm" c="dimmed">{w.same}</Text>}
    </Formed>
  );
}

function Run({ busy, onShut, onSend }: FormProps & { onSend: (script: string, dir: string) => void }) {
  const [script, setScript] = useState('');
  const [dir, setDir] = useState('');
  const badScript = !script.startsWith('#!');
  const badDir = !dir.startsWith('/');
  return (
    <Formed name={w.acts.run} send={w.acts.run} ready={!badScript && !badDir} busy={busy} onShut={onShut} onSubmit={() => onSend(script, dir.trim())}>
      <Textarea label={w.script} value={script} autosize minRows={4} maxRows={14} onChange={(e) => setScript(e.currentTarget.value)} error={script !== '' && badScript && w.noScript} description={w.scriptAbout} inputWrapperOrder={inOrder} styles={{ input: { fontFamily: 'monospace' } }} />
      <TextInput label={w.folder} value={dir} onChange={(e) => setDir(e.currentTarget.value)} error={dir !== '' && badDir && w.noFolder} description={w.local} inputWrapperOrder={inOrder} />
    </Formed>
  );
}
