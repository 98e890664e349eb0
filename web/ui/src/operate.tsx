import { Alert, Anchor, Button, Checkbox, CopyButton, Group, Paper, ScrollArea, Select, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { useState } from 'react';
import { act, Failure, get, type Site } from './api.js';
import { length, period, time } from './clock.js';
import { amount, drainLine, holders, type Maintenance, many, share, stateOf, tokenLine, type Node, type Quota, type SharedQuota } from './duty.js';
import { useAsked, useChanges, useGot } from './follow.js';
import { parseLength, parseTime, stampOf } from './grammar.js';
import { at, where, type Reservation } from './life.js';
import { Command, Stamp, State, Trouble, usualZone, Waiting } from './parts.js';
import { NewMaintenance, Off } from './maintenance.js';
import { spanned } from './names.js';
import { inWords } from './recur.js';
import { text } from './text.js';
import { words } from './words.js';

const w = words.operate;

interface Outage { number: number; name?: string; site: string; pool: string; pes: string; npe: number; nodes?: string[]; from?: string; until?: string }
interface Errand { number: number; site: string; reservation: string; what: 'make' | 'remove'; state?: string; since?: string; trouble?: string }
interface Token { id: string; user: string; role: string; note?: string; created: string; expires?: string; sites?: string[]; scopes?: string[] }
interface Score { jobs: { asked: number; promised: number; refused?: Record<string, number>; compared: number; earlier: number; same: number; later: number }; promised_wait: { mean: number }; actual_wait: { mean: number } }
interface Finding { check: string; level: string; text: string; hint?: string }
type Watched = Site & { nodes?: Node[]; drift?: { kind: string; name: string; what?: string[] }[] };

const refusalPages = 10;
const shownRefusals = 50;
const shownNodes = 100;
const one = (id: string) => `promises?everybody=1&sel=${encodeURIComponent(id)}`;
const inHarbour = (site: string, number?: number) => `harbour?site=${encodeURIComponent(site)}${number === undefined ? '' : `&sel=${encodeURIComponent(site)}/${number}`}`;

export default function Operate({ onLive, onEnded }: { onLive: (live: boolean) => void; onEnded: () => void }) {
  const zone = usualZone();
  const { changes, live, clock } = useChanges(onLive, onEnded);
  const sites = useGot<{ sites: Watched[] }>('v1/sites', changes, onEnded);
  const degraded = useGot<{ reservations: Reservation[] }>('v1/reservations?state=degraded&limit=999', changes, onEnded);
  const outages = useGot<{ outages: Outage[] }>('v1/outages', changes, onEnded);
  const maintenance = useGot<{ maintenance: Maintenance[] }>('v1/maintenance', changes, onEnded);
  const [calledOff, setCalledOff] = useState('');
  const outbox = useGot<{ errands: Errand[] }>('v1/outbox', changes, onEnded);
  const limits = useGot<{ quotas: Quota[]; shared?: SharedQuota[] }>('v1/quotas', Math.floor(clock / 30), onEnded);
  const tokens = useGot<{ tokens: Token[] }>('v1/tokens', Math.floor(clock / 30), onEnded);
  const refusals = useAsked<{ list: Reservation[]; whole: boolean }>(
    async (signal) => {
      const list: Reservation[] = [];
      let next: string | undefined = '';
      for (let n = 0; n < refusalPages && next !== undefined; n++) {
        const page: { reservations: Reservation[]; next?: string } = await get(`v1/reservations?state=refused&limit=999${next ? `&cursor=${encodeURIComponent(next)}` : ''}`, signal);
        list.push(...page.reservations);
        next = page.next;
      }
      return { list: list.sort((a, b) => at(b.created ?? '') - at(a.created ?? '')), whole: next === undefined };
    },
    'refusals', Math.floor(clock / 30), onEnded, // they are many, and not urgent
  );
  const [every, setEvery] = useState(false);
  const away = sites.value?.sites.filter((s) => !s.reachable).length ?? 0;
  const counts: Record<keyof typeof w.parts, string> = {
    sites: sites.value ? `${sites.value.sites.length}${away ? `, ${away} not reachable` : ''}` : '',
    degraded: degraded.value ? String(degraded.value.reservations.length) : '',
    outages: outages.value ? String(outages.value.outages.length) : '',
    maintenance: maintenance.value ? String(maintenance.value.maintenance.length) : '',
    outbox: outbox.value ? String(outbox.value.errands.length) : '',
    refusals: refusals.value ? String(refusals.value.list.length) : '',
    limits: '',
    tokens: tokens.value ? String(tokens.value.tokens.length) : '',
  };
  const stamp = (t: string) => time(at(t), zone);
  const quotas = holders(limits.value).flatMap((q) => q.limits.filter((l) => every || (l.used ?? 0) > 0).map((l) => ({ q, l }))).sort((a, b) => (share(b.l) ?? -1) - (share(a.l) ?? -1));

  return (
    <Stack gap="lg">
      <Group justify="space-between" align="end" gap="sm">
        <div>
          <Title order={1} size="h3">{w.title}</Title>
          <Text size="sm" c="dimmed">{zone}</Text>
        </div>
        <nav aria-label="Parts of this page" className="pages">
          {(Object.keys(w.parts) as (keyof typeof w.parts)[]).map((p) => <a key={p} href={`${location.pathname}${location.search}#${p}`}>{w.parts[p]}{counts[p] && <> <span className="faint">{counts[p]}</span></>}</a>)}
        </nav>
      </Group>
      {!live && <Alert color="orange" variant="light" role="status">{text.notLive}</Alert>}

      <Part id="sites" got={sites} zone={zone} empty={sites.value?.sites.length === 0 ? w.noSites : null}>
        <Stack gap="sm">{sites.value?.sites.map((s) => <OneSite key={s.name} site={s} zone={zone} changes={Math.floor(clock / 30)} onEnded={onEnded} onDone={() => { sites.again(); outages.again(); }} />)}</Stack>
      </Part>

      <Part id="degraded" got={degraded} zone={zone} empty={degraded.value?.reservations.length === 0 ? w.noDegraded : null}>
        <Scroll name={w.parts.degraded} head={['Promise', 'User', 'Missing', 'Where', 'When', 'Trouble']}
          rows={(degraded.value?.reservations ?? []).map((r) => [
            <Anchor key="a" size="sm" href={one(r.id)} className="named">{r.id}</Anchor>, r.user, w.missing(r.missing ?? 0, (r.npe ?? 0) + (r.missing ?? 0)), where(r), r.start && r.end ? <Stamp key="w" of={period(at(r.start), at(r.end), zone)} /> : '–',
            r.sites?.map((s) => s.trouble).filter(Boolean).join('; '),
          ])} />
      </Part>

      <Part id="outages" got={outages} zone={zone} empty={outages.value?.outages.length === 0 ? w.noOutages : null}>
        <Scroll name={w.parts.outages} head={['Where', 'Nodes', 'PEs', 'From', 'Until', 'What', '']}
          rows={(outages.value?.outages ?? []).map((o) => [
            `${o.site}, ${o.pool}`, o.nodes?.join(', ') ?? '–', o.nodes?.length ? String(o.npe) : `${o.npe} (${spanned(o.pes)})`, o.from ? <Stamp key="f" of={`${stamp(o.from)}, ${w.announced}`} /> : w.now, o.until ? <Stamp key="u" of={stamp(o.until)} /> : w.unknown, o.name,
            <Anchor key="a" size="sm" href={inHarbour(o.site, o.number)} aria-label={`${w.harbour}: ${o.name ?? o.pes}`}>{w.harbour}</Anchor>,
          ])} />
      </Part>

      <Part id="maintenance" got={maintenance} zone={zone} empty={null}>
        <NewMaintenance sites={sites.value?.sites.filter((s) => s.adapter && !s.shadow).map((s) => s.name) ?? []} zone={zone} clock={clock} onDone={() => { setCalledOff(''); maintenance.again(); outages.again(); }} onEnded={onEnded} />
        {calledOff && <Alert color="green" variant="light" mb="xs" role="alert" title={w.maintained.off} data-testid="off"><Command line={calledOff} /></Alert>}
        {maintenance.value?.maintenance.length === 0 ? <Text size="sm" c="dimmed">{w.maintained.none}</Text> : (
          <Scroll name={w.parts.maintenance} head={['Name', 'Where', 'Nodes', 'Next', 'Repeats', 'Reason', '']} ids={maintenance.value?.maintenance.map((m) => m.name)}
            rows={(maintenance.value?.maintenance ?? []).map((m) => [
              m.name, m.site, m.nodes?.join(', ') ?? w.maintained.all, m.times[0] ? <Stamp key="n" of={period(at(m.times[0].start), at(m.times[0].end), zone)} /> : '–', m.repeat ? `${inWords(m.repeat)}, ${m.time_zone}; ${w.maintained.list(m.times.length)}` : m.times.length > 1 ? w.maintained.list(m.times.length) : '–', m.reason,
              <Off key="o" of={m} onDone={(line) => { setCalledOff(line); maintenance.again(); outages.again(); }} onEnded={onEnded} />,
            ])} />
        )}
      </Part>

      <Part id="outbox" got={outbox} zone={zone} about={w.outboxAbout} empty={outbox.value?.errands.length === 0 ? w.noOutbox : null}>
        <Scroll name={w.parts.outbox} head={['Promise', 'Site', 'To do', 'State', 'Changed', 'Why not']}
          rows={(outbox.value?.errands ?? []).map((e) => [
            <Anchor key="a" size="sm" href={one(e.reservation)} className="named">{e.reservation}</Anchor>, e.site, w[e.what], e.state && <State of={e.state} words={e.state.replaceAll('_', ' ')} />, e.since ? <Stamp key="s" of={stamp(e.since)} /> : '–', e.trouble || w.waits,
          ])} />
      </Part>

      <Part id="refusals" got={refusals} zone={zone} empty={refusals.value?.list.length === 0 ? w.noRefusals : null}>
        <Scroll name={w.parts.refusals} head={['When', 'User', 'Wanted', 'Reason', 'Why']}
          rows={(refusals.value?.list ?? []).slice(0, shownRefusals).map((r) => [
            r.created ? <Stamp key="w" of={stamp(r.created)} /> : '–', r.user, <Anchor key="a" size="sm" href={one(r.id)}>{text.pes(r.npe ?? 0)}</Anchor>, (r.reason ?? '').replaceAll('_', ' '), r.refusal?.detail,
          ])} />
        {refusals.value && !refusals.value.whole && <Text size="sm" c="dimmed">{w.notAll}</Text>}
      </Part>

      <Part id="limits" got={limits} zone={zone} empty={limits.value && quotas.length === 0 ? w.noLimits : null}
        extra={<Checkbox size="xs" label={w.everyLimit} checked={every} onChange={(e) => setEvery(e.currentTarget.checked)} />}>
        <Scroll name={w.parts.limits} head={['Whose', 'Limit', 'Where', 'Used', 'Allowed', '']}
          rows={quotas.map(({ q, l }) => {
            const part = share(l);
            return [
              <span key="u">{q.name} <span className="faint">{q.what}</span>{q.sites && <Text size="xs" c="dimmed">{w.countedAt(q.sites.join(', '))}</Text>}</span>, <span key="l" title={l.about}>{w.limitNames[l.limit] ?? l.limit.replaceAll('_', ' ')}</span>, l.site ? `${l.site}, ${l.pool}` : '–', l.used === undefined ? '–' : amount(l, l.used),
              l.allowed === undefined ? w.noLimit : amount(l, l.allowed), part === null ? '' : <span key="p" className="used"><span style={{ width: `${part * 100}%` }} className={part >= 0.9 ? 'full' : undefined} /><b>{Math.round(part * 100)} %</b></span>,
            ];
          })} />
      </Part>

      <Part id="tokens" got={tokens} zone={zone} about={w.tokensAbout} empty={null}>
        <NewToken sites={sites.value?.sites.map((s) => s.name) ?? []} zone={zone} clock={clock} onDone={tokens.again} onEnded={onEnded} />
        <Scroll name={w.parts.tokens} head={['User', 'Role', 'Note', 'Made', 'Expires', 'Sites', '']}
          ids={tokens.value?.tokens.map((k) => k.id)} rows={(tokens.value?.tokens ?? []).map((k) => [
            k.user, k.scopes ? <span key="s">{k.role} <span className="faint">{w.scopesOf(k.scopes.map((s) => (w.scopes as Record<string, string>)[s] ?? s).join(', '))}</span></span> : k.role, k.note, <Stamp key="c" of={stamp(k.created)} />, k.expires ? <Stamp key="e" of={stamp(k.expires)} /> : w.always, k.sites?.join(', ') ?? text.allSites, <Revoke key="r" token={k} onDone={tokens.again} onEnded={onEnded} />,
          ])} />
      </Part>
    </Stack>
  );
}

const noToken = { user: '', role: 'user', note: '', expires: '', sites: [] as string[], scopes: [] as string[] };
const scopes = Object.keys(w.scopes) as (keyof typeof w.scopes)[];

/** NewToken makes a token. Its secret is in the answer alone: it is shown until it is put away or the page is left, and kept nowhere. */
function NewToken({ sites, zone, clock, onDone, onEnded }: { sites: string[]; zone: string; clock: number; onDone: () => void; onEnded: () => void }) {
  const [form, setForm] = useState<typeof noToken | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [made, setMade] = useState<(Token & { secret: string }) | null>(null);
  const f = form ?? noToken;
  const set = (c: Partial<typeof noToken>) => setForm({ ...f, ...c });
  const lasts = parseLength(f.expires);
  const until = f.expires.trim() === '' ? null : lasts !== null ? Math.floor(clock) + lasts : parseTime(f.expires, clock, zone);
  const badExpires = f.expires.trim() !== '' && (until === null ? w.badExpires(f.expires) : until <= clock && w.overExpires);
  const right = f.user.trim() !== '' && !badExpires;
  const wanted = { user: f.user.trim(), role: f.role, ...(f.note.trim() ? { note: f.note.trim() } : {}), ...(until !== null ? { expires: stampOf(until) } : {}), ...(f.sites.length > 0 ? { sites: f.sites } : {}), ...(f.scopes.length > 0 ? { scopes: f.scopes } : {}) };
  const send = () => {
    setBusy(true);
    setFailure(null);
    act<Token & { secret: string }>('POST', 'v1/tokens', wanted).then(
      (t) => {
        setMade(t);
        setForm(null);
        onDone();
      },
      (e: Failure) => { if (e.problem?.status === 401) onEnded(); else setFailure(e); },
    ).finally(() => setBusy(false));
  };
  const order: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error'];
  return (
    <Stack gap="xs" mb="xs" className="no-paper">
      {made && (
        <Alert color="green" variant="light" role="alert" title={w.tokenMade(made.user, made.role)} data-testid="secret">
          <Text size="sm">{w.secretAbout}</Text>
          <Group gap={6} my={6}>
            <code className="named">{made.secret}</code>
            <CopyButton value={made.secret}>{({ copied, copy }) => <Button size="compact-xs" variant="default" aria-label={w.copySecret} onClick={copy}>{copied ? 'Copied' : 'Copy'}</Button>}</CopyButton>
          </Group>
          <Button size="compact-sm" variant="default" onClick={() => setMade(null)}>{w.putAway}</Button>
        </Alert>
      )}
      {!form && !made && <div><Button size="compact-sm" variant="default" onClick={() => { setForm(noToken); setFailure(null); }}>{w.newToken}</Button></div>}
      {form && (
        <Paper withBorder radius="sm" p="sm" component="form" aria-label={w.newToken} onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (right && !busy) send(); }}>
          <Group gap="md" align="start" className="fields">
            <TextInput label={w.tokenUser} size="xs" w={180} autoFocus autoComplete="off" value={f.user} onChange={(e) => set({ user: e.currentTarget.value })} description={w.tokenUserAbout} inputWrapperOrder={order} />
            <Select label={w.tokenRole} size="xs" w={250} data={w.tokenRoles} value={f.role} onChange={(v) => v && set({ role: v })} allowDeselect={false} />
            <TextInput label={w.tokenNote} size="xs" w={220} autoComplete="off" value={f.note} onChange={(e) => set({ note: e.currentTarget.value })} description={w.tokenNoteAbout} inputWrapperOrder={order} />
            <TextInput label={w.tokenExpires} size="xs" w={230} autoComplete="off" value={f.expires} onChange={(e) => set({ expires: e.currentTarget.value })} error={badExpires} description={until === null ? w.tokenExpiresAbout : `${time(until, zone)} ${zone}`} inputWrapperOrder={order} />
          </Group>
          <fieldset className="bare spaced"><legend>{w.tokenSites}</legend>
            <Group gap="0 14px">{sites.map((s) => <label key={s} className="choice"><input type="checkbox" checked={f.sites.includes(s)} onChange={(e) => set({ sites: e.currentTarget.checked ? [...f.sites, s] : f.sites.filter((x) => x !== s) })} /> <span className="named">{s}</span></label>)}</Group>
          </fieldset>
          <fieldset className="bare spaced"><legend>{w.tokenScopes}</legend>
            <Group gap="0 14px">{scopes.map((s) => <label key={s} className="choice"><input type="checkbox" checked={f.scopes.includes(s)} onChange={() => set({ scopes: scopes.filter((x) => (x === s ? !f.scopes.includes(s) : f.scopes.includes(x))) })} /> {w.scopes[s]}</label>)}</Group>
          </fieldset>
          <Trouble failure={failure} />
          {right && <Command line={tokenLine(wanted)} />}
          <Group gap="xs" mt="xs"><Button type="submit" size="compact-sm" loading={busy} disabled={!right}>{w.makeToken}</Button><Button size="compact-sm" variant="default" onClick={() => setForm(null)}>{w.noNewToken}</Button></Group>
        </Paper>
      )}
    </Stack>
  );
}

/** Revoke takes a second press: what uses the token stops at once. */
function Revoke({ token, onDone, onEnded }: { token: Token; onDone: () => void; onEnded: () => void }) {
  const [sure, setSure] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const send = () => {
    if (!sure) return setSure(true);
    setSure(false);
    act('DELETE', `v1/tokens/${encodeURIComponent(token.id)}`, null).then(onDone, (e: Failure) => { if (e.problem?.status === 401) onEnded(); else setFailure(e); });
  };
  return (
    <>
      <Button size="compact-xs" variant="default" color="red" onClick={send} onBlur={() => setSure(false)} aria-label={`${sure ? w.sure : w.revoke}: ${token.user}, ${token.role} ${token.note ?? ''}`.trim()}>{sure ? w.sure : w.revoke}</Button>
      {failure && <span role="alert"> {failure.message}</span>}
    </>
  );
}

/** Watching is what would have been promised at a site that is only watched. */
function Watching({ site, changes }: { site: string; changes: number }) {
  const got = useGot<Score>(`v1/sites/${encodeURIComponent(site)}/shadow?latest=0`, changes);
  if (!got.value) return <Trouble failure={got.failure} again={got.again} />;
  const { jobs, promised_wait, actual_wait } = got.value;
  return (
    <Text size="sm" mt={4} data-testid="score">
      {w.score(jobs.asked, jobs.promised, Object.values(jobs.refused ?? {}).reduce((a, b) => a + b, 0))}{' '}
      {jobs.compared > 0 && <>{w.compared(jobs.compared, jobs.earlier, jobs.same, jobs.later)} {w.waited(length(promised_wait.mean), length(actual_wait.mean))}</>}
    </Text>
  );
}

function Part({ id, got, zone, empty, about, extra, children }: { id: keyof typeof w.parts; got: { value: unknown; failure: Failure | null; seen: number; again: () => void }; zone: string; empty: string | null; about?: string; extra?: React.ReactNode; children: React.ReactNode }) {
  return (
    <section id={id} aria-labelledby={`${id}-title`} className="part">
      <Group justify="space-between" mb={6}><Title order={2} size="h4" id={`${id}-title`}>{w.parts[id]}</Title>{extra}</Group>
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      {!got.value && (got.failure ? <Text size="sm" c="dimmed">{w.unasked}</Text> : <Waiting height={60} />)}
      {empty !== null && <Text size="sm" c="dimmed">{empty}</Text>}
      {Boolean(got.value) && empty === null && <>{about && <Text size="sm" c="dimmed" mb={4}>{about}</Text>}{children}</>}
    </section>
  );
}

/**
 * Scroll is a table that can be scrolled by keys where it is longer or wider than there is room.
 * What is begun in a row stays with it, wherever it moves, if the rows have ids.
 */
function Scroll({ name, head, rows, ids }: { name: string; head: string[]; rows: React.ReactNode[][]; ids?: string[] }) {
  return (
    <Paper withBorder radius="sm">
      <ScrollArea.Autosize mah={360} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': name }}>
        <Table stickyHeader verticalSpacing={4} aria-label={name} className="facts">
          <Table.Thead><Table.Tr>{head.map((h, i) => <Table.Th key={i}>{h || <span className="unseen">Link</span>}</Table.Th>)}</Table.Tr></Table.Thead>
          <Table.Tbody>{rows.map((r, i) => <Table.Tr key={ids?.[i] ?? i}>{r.map((c, k) => <Table.Td key={k} className="named">{c}</Table.Td>)}</Table.Tr>)}</Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
    </Paper>
  );
}

function OneSite({ site, zone, changes, onEnded, onDone }: { site: Watched; zone: string; changes: number; onEnded: () => void; onDone: () => void }) {
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState<Finding[] | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const nodes = site.nodes ?? [];
  const down = nodes.filter((n) => n.condition !== 'up').length;
  const examine = () => {
    setBusy(true);
    setFailure(null);
    get<{ findings: Finding[] }>(`v1/sites/${encodeURIComponent(site.name)}/doctor`)
      .then((f) => setFound(f.findings), (e: Failure) => { if (e.problem?.status === 401) onEnded(); setFailure(e); })
      .finally(() => setBusy(false));
  };
  return (
    <Paper withBorder radius="sm" p="sm" component="article" aria-label={`Site ${site.name}`}>
      <Group justify="space-between" gap="xs" align="start">
        <Group gap="xs">
          <Title order={3} size="h5" className="named">{site.name}</Title>
          {site.adapter && <Text size="sm" c="dimmed">{site.adapter}</Text>}
          <State of={!site.adapter ? 'recorded' : site.reachable ? (site.shadow ? 'watched' : 'ok') : site.starting ? 'waiting' : 'warning'} words={stateOf(site)} />
          {site.seen && <Text size="sm" c="dimmed">{w.seen(time(at(site.seen), zone))}</Text>}
        </Group>
        <Group gap="xs">
          <Anchor size="sm" href={inHarbour(site.name)} aria-label={`${w.harbour}: ${site.name}`}>{w.harbour}</Anchor>
          {site.adapter && <Button size="compact-sm" variant="default" loading={busy} onClick={examine} aria-label={`${w.doctor} ${site.name}`}>{w.doctor}</Button>}
        </Group>
      </Group>
      {site.trouble && <Alert color="orange" variant="light" mt="xs" p="xs" className="named">{site.trouble}</Alert>}
      <Text size="sm" mt={4}>{site.pools.map((p) => <span key={p.name} className="pool named">{p.name}: {text.freeNow(p.free, p.pes)}</span>)}</Text>
      {(site.drift?.length ?? 0) > 0 && (
        <div><Text size="sm" fw={600} mt={4}>{w.drift}</Text><ul className="plain">{site.drift!.map((d, i) => <li key={i}><Text size="sm" className="named">{d.kind.replaceAll('_', ' ')} {d.name} {d.what?.join('; ')}</Text></li>)}</ul></div>
      )}
      {site.shadow && <Watching site={site.name} changes={changes} />}
      <Trouble failure={failure} />
      {found && (
        <Paper withBorder p="xs" mt="xs" role="status" data-testid="found">
          <Text size="sm" fw={600}>{found.length > 0 ? w.examined(site.name) : w.fine}</Text>
          <ul className="plain">{found.map((f, i) => <li key={i}><Text size="sm" className="named"><State of={f.level} /> {f.check}: {f.text}{f.hint && <span className="faint"> {f.hint}</span>}</Text></li>)}</ul>
        </Paper>
      )}
      {nodes.length > 0 && (
        <Button mt="xs" size="compact-sm" variant="subtle" aria-expanded={open} onClick={() => setOpen(!open)} aria-label={`${w.nodes(nodes.length, down)} of ${site.name}`}>{open ? '▾' : '▸'} {w.nodes(nodes.length, down)}</Button>
      )}
      {open && <Nodes site={site.name} nodes={nodes} zone={zone} onEnded={onEnded} onDone={onDone} />}
    </Paper>
  );
}

function Nodes({ site, nodes, zone, onEnded, onDone }: { site: string; nodes: Node[]; zone: string; onEnded: () => void; onDone: () => void }) {
  const [find, setFind] = useState('');
  const [notUp, setNotUp] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [form, setForm] = useState<'drain' | 'resume' | null>(null);
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState<{ title: string; line: string; failed: string[] } | null>(null);
  const matching = nodes.filter((n) => n.name.includes(find.trim()) && (!notUp || n.condition !== 'up'));
  const shown = matching.slice(0, shownNodes);
  const names = nodes.filter((n) => chosen.has(n.name)).map((n) => n.name);
  const choose = (list: string[], on: boolean) => setChosen((s) => {
    const next = new Set(s);
    for (const n of list) if (on) next.add(n); else next.delete(n);
    return next;
  });
  const ready = names.length > 0 && (form === 'resume' || reason.trim() !== '') && (names.length <= many || typed === site);
  const send = async () => {
    setBusy(true);
    const failed: string[] = [];
    const did: string[] = [];
    for (const n of names) {
      try {
        await act('POST', `v1/sites/${encodeURIComponent(site)}/nodes/${encodeURIComponent(n)}/${form}`, form === 'drain' ? { reason: reason.trim() } : null);
        did.push(n);
      } catch (e) {
        if (!(e instanceof Failure)) throw e;
        if (e.problem.status === 401) onEnded();
        failed.push(w.failed(n, e.message));
      }
    }
    setBusy(false);
    setDone({ title: form === 'drain' ? w.drained(did.length) : w.resumed(did.length), line: did.length ? drainLine(site, did, form === 'drain' ? reason.trim() : null) : '', failed });
    if (failed.length === 0) {
      setForm(null);
      setChosen(new Set());
      setTyped('');
    }
    onDone();
  };
  return (
    <Stack gap="xs" mt="xs" role="group" aria-label={w.nodesOf(site)}>
      <Group gap="sm" align="end">
        <TextInput size="xs" label={w.find} value={find} onChange={(e) => setFind(e.currentTarget.value)} />
        <Checkbox size="xs" label={w.notUp} checked={notUp} onChange={(e) => setNotUp(e.currentTarget.checked)} mb={6} />
        <Group gap="xs" role="group" aria-label="With those that are chosen">
          {(['drain', 'resume'] as const).map((a) => <Button key={a} size="compact-sm" variant="default" disabled={names.length === 0 || busy} onClick={() => { setForm(a); setDone(null); }}>{a === 'drain' ? w.drainThese(names.length) : w.resumeThese(names.length)}</Button>)}
        </Group>
      </Group>
      {form && (
        <Paper withBorder p="sm" component="form" aria-label={w[form]} onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (ready && !busy) void send(); }}>
          <Stack gap="xs">
            <Text size="sm" className="named">{names.slice(0, 20).join(', ')}{names.length > 20 && ` and ${names.length - 20} more`}. {form === 'drain' ? w.drainAbout : w.resumeAbout}</Text>
            {form === 'drain' && <TextInput label={w.reason} value={reason} autoFocus onChange={(e) => setReason(e.currentTarget.value)} description={reason.trim() === '' ? w.noReason : undefined} inputWrapperOrder={['label', 'input', 'description', 'error']} />}
            {names.length > many && <TextInput label={w.typeName(site)} value={typed} onChange={(e) => setTyped(e.currentTarget.value)} autoComplete="off" />}
            {names.length > 0 && (form === 'resume' || reason.trim() !== '') && <Command line={drainLine(site, names, form === 'drain' ? reason.trim() : null)} />}
            <Group gap="xs"><Button type="submit" size="compact-sm" color={form === 'drain' ? 'red' : undefined} loading={busy} disabled={!ready}>{w[form]}</Button><Button size="compact-sm" variant="default" onClick={() => setForm(null)}>{w.leave}</Button></Group>
          </Stack>
        </Paper>
      )}
      {done && (
        <Alert color={done.failed.length ? 'orange' : 'green'} variant="light" title={done.title} role="alert" data-testid="drained">
          {done.failed.map((f) => <Text key={f} size="sm" className="named">{f}</Text>)}
          {done.line && <Command line={done.line} />}
        </Alert>
      )}
      <ScrollArea.Autosize mah={360} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': `Nodes of ${site}` }}>
        <Table stickyHeader verticalSpacing={4} aria-label={`Nodes of ${site}`} className="facts">
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={36}><Checkbox size="sm" aria-label={w.all(shown.length)} checked={shown.length > 0 && shown.every((n) => chosen.has(n.name))} onChange={(e) => choose(shown.map((n) => n.name), e.currentTarget.checked)} /></Table.Th>
              <Table.Th>Node</Table.Th><Table.Th>Condition</Table.Th><Table.Th ta="right">Busy cores</Table.Th><Table.Th>Since</Table.Th><Table.Th>Reason</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map((n) => (
              <Table.Tr key={n.name}>
                <Table.Td><Checkbox size="sm" aria-label={n.name} checked={chosen.has(n.name)} onChange={(e) => choose([n.name], e.currentTarget.checked)} /></Table.Td>
                <Table.Td className="named">{n.name}</Table.Td><Table.Td><State of={n.condition} /></Table.Td><Table.Td ta="right">{n.busy ?? 0}</Table.Td>
                <Table.Td className="whole">{n.since ? time(at(n.since), zone) : '–'}</Table.Td><Table.Td className="named">{n.reason || '–'}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
      {matching.length > shown.length && <Text size="sm" c="dimmed">{w.moreNodes(matching.length - shown.length)}</Text>}
    </Stack>
  );
}
