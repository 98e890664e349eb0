import { Alert, Anchor, Button, Checkbox, FileButton, Grid, Group, Paper, Progress, ScrollArea, Select, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { act, Failure, type Me, now, post, sendFile } from './api.js';
import { length, time } from './clock.js';
import { baselines, bodyOf, combinations, others, inFields, over, passes, placements, runs, size, sweepOf, usual, wrong, drawn, type Comparison, type Field, type Form, type Lab, type Log, type Results } from './compare.js';
import { useChanges, useGot } from './follow.js';
import { parseTime, stampOf } from './grammar.js';
import { at } from './life.js';
import { headOf, isText, pack } from './pack.js';
import { Command, Stamp, State, Trouble, usualZone, Waiting } from './parts.js';
import { words } from './words.js';

const w = words.laboratory;
const most = 2000; // runs, as the service bounds them

const failureOf = (e: unknown) => (e instanceof Failure ? e : new Failure({ status: 0, title: 'The answer cannot be read', detail: String(e), code: '' }));

/** sourceOf says what a comparison replays. */
const sourceOf = (c: Comparison) => c.log ?? w.past;

export default function Laboratory({ me, onLive, onEnded }: { me: Me; onLive: (live: boolean) => void; onEnded: () => void }) {
  const zone = usualZone();
  const { changes } = useChanges(onLive, onEnded);
  const [tick, setTick] = useState(0);
  const lab = useGot<Lab>('v1/lab', tick + (changes > 0 ? 1 : 0), onEnded);
  const list = lab.value?.comparisons ?? [];
  const busy = list.some((c) => !over(c));
  useEffect(() => {
    if (!busy) return;
    const timer = setInterval(() => setTick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [busy]);
  const again = () => setTick((n) => n + 1);
  const [begun, setBegun] = useState('');
  const [picked, setPicked] = useState(() => new URLSearchParams(location.search).get('c') ?? '');
  const pick = (id: string) => {
    setPicked(id);
    const query = new URLSearchParams(location.search);
    query.set('c', id);
    history.replaceState(null, '', `${location.pathname}?${query}`);
  };
  const shown = list.find((c) => c.id === picked) ?? (picked === '' || picked === begun ? list[list.length - 1] : undefined); // what was begun is not in the list at once
  return (
    <Stack gap="sm">
      <div>
        <Title order={1} size="h3">{w.title}</Title>
        <Text size="sm" c="dimmed">{w.about}</Text>
      </div>
      <Trouble failure={lab.failure} seen={lab.seen} zone={zone} again={lab.again} />
      {!lab.value && !lab.failure && <Waiting height={320} />}
      {lab.value && (
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 4 }}>
            <Ask me={me} zone={zone} lab={lab.value} busy={list.some((c) => c.user === me.user && !over(c))} onEnded={onEnded} onChange={again} onStarted={(c) => { again(); pick(c.id); setBegun(c.id); }} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 8 }}>
            <Stack gap="md">
              <Made me={me} zone={zone} list={list} shown={shown?.id ?? ''} kept={lab.value.kept_seconds} onPick={pick} />
              {picked !== '' && !shown && <Alert color="gray" data-testid="gone">{w.gone}</Alert>}
              {shown && <One key={shown.id} c={shown} begun={shown.id === begun} zone={zone} onEnded={onEnded} onChange={again} />}
            </Stack>
          </Grid.Col>
        </Grid>
      )}
    </Stack>
  );
}

/** Ask is what is to be compared. */
function Ask({ me, zone, lab, busy, onEnded, onChange, onStarted }: { me: Me; zone: string; lab: Lab; busy: boolean; onEnded: () => void; onChange: () => void; onStarted: (c: Comparison) => void }) {
  const [form, setForm] = useState<Form>(usual);
  const [sending, setSending] = useState<{ name: string; read: number; of: number } | null>(null); // of is 0 once nothing is left to be compressed
  const abort = useRef<AbortController>(null);
  const forget = useRef<() => void>(null); // so that the same file can be chosen again
  useEffect(() => () => abort.current?.abort(), []); // a page that is left sends nothing more
  const [bad, setBad] = useState('');
  const [over, setOver] = useState(false);
  const [asking, setAsking] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const set = (more: Partial<Form>) => setForm((f) => ({ ...f, ...more }));
  const log = form.log || lab.logs[lab.logs.length - 1]?.id || '';
  const f = { ...form, log };
  const times = { from: f.from.trim() === '' ? 0 : parseTime(f.from, now(), zone), to: f.to.trim() === '' ? 0 : parseTime(f.to, now(), zone) };
  const faults = wrong(f);
  const fault = (field: Field) => faults.includes(field) && w.wrong[field];
  const count = runs(f);
  const ready = faults.length === 0 && combinations(f) > 1 && count <= most && (f.past ? times.from !== null && times.to !== null : log !== '');
  const take = async (file: File) => {
    setBad('');
    setFailure(null);
    set({ past: false });
    abort.current?.abort();
    const ours = new AbortController();
    abort.current = ours;
    try {
      const { packed, head } = await headOf(file);
      if (!isText(head)) return setBad(w.notLog(file.name));
      if (packed && file.size > lab.max_bytes) return setBad(w.large(size(file.size), size(lab.max_bytes)));
      let [name, body]: [string, Blob] = [file.name, file];
      if (file.size > lab.max_bytes) {
        let told = 0; // a file has ten thousands of pieces
        const came = await pack(file, lab.max_bytes, ours.signal, (read) => {
          if (read - told < 4e6 || ours.signal.aborted) return;
          told = read;
          setSending({ name, read, of: file.size });
        });
        if ('read' in came) return setBad(w.stillLarge(size(file.size), size(lab.max_bytes), size(came.read)));
        [name, body] = [name + '.gz', came.blob];
      }
      setSending({ name, read: 0, of: 0 });
      const sent = await sendFile<Log>(`v1/lab/logs?name=${encodeURIComponent(name)}`, body, ours.signal);
      set({ past: false, log: sent.id });
      onChange();
    } catch (e) {
      if (ours.signal.aborted) return;
      if (e instanceof DOMException) return setBad(w.unreadable(file.name)); // it is gone, or a folder
      const failed = failureOf(e);
      if (failed.problem.status === 401) onEnded();
      setFailure(failed);
    } finally {
      if (abort.current === ours) setSending(null);
    }
  };
  const start = async (e: React.FormEvent) => {
    e.preventDefault();
    if (!ready || busy) return;
    setAsking(true);
    setFailure(null);
    try {
      const stamp = (t: number | null) => (t ? stampOf(t) : '');
      onStarted(await post<Comparison>('v1/lab/comparisons', JSON.stringify(bodyOf(f, stamp(times.from), stamp(times.to)))));
    } catch (e) {
      const failed = failureOf(e);
      if (failed.problem.status === 401) onEnded();
      setFailure(failed);
    }
    setAsking(false);
  };
  const toggle = (field: 'policies' | 'bindings' | 'passes', all: string[], value: string) => set({ [field]: all.filter((v) => (v === value) !== f[field].includes(v)) });
  const ticks = (legend: string, field: 'policies' | 'bindings' | 'passes', all: string[]) => (
    <fieldset className="bare"><legend>{legend}</legend>
      <Group gap="0 14px">{all.map((v) => <label key={v} className="choice"><input type="checkbox" checked={f[field].includes(v)} onChange={() => toggle(field, all, v)} /> {v}</label>)}</Group>
    </fieldset>
  );
  const understood = (t: number | null, typed: string) => (typed.trim() === '' ? w.always : t === null ? undefined : `${time(t, zone)} ${zone}`);
  return (
    <Paper withBorder p="sm" component="form" aria-labelledby="ask-title" className={over ? 'drop over' : 'drop'} onSubmit={(e: React.FormEvent) => void start(e)}
      onDragOver={(e: React.DragEvent) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
      onDrop={(e: React.DragEvent) => { e.preventDefault(); setOver(false); const file = e.dataTransfer.files[0]; if (file) void take(file); }}>
      <Stack gap="sm">
        <Title order={2} size="h5" id="ask-title">{w.ask}</Title>
        <fieldset className="bare"><legend>{w.what}</legend>
          <label className="choice"><input type="radio" name="past" checked={f.past} onChange={() => set({ past: true })} /> {me.role === 'operator' ? w.pastOfAll : w.pastOwn}</label>
          <label className="choice"><input type="radio" name="past" checked={!f.past} onChange={() => set({ past: false })} /> {w.aLog}</label>
        </fieldset>
        {f.past && (
          <Group gap="sm" align="start" grow>
            <TextInput size="xs" label={w.from} placeholder="2026-11-01" value={f.from} onChange={(e) => set({ from: e.currentTarget.value })} error={times.from === null && w.badTime(f.from)} description={understood(times.from, f.from)} inputWrapperOrder={['label', 'input', 'description', 'error']} />
            <TextInput size="xs" label={w.to} placeholder="now" value={f.to} onChange={(e) => set({ to: e.currentTarget.value })} error={times.to === null && w.badTime(f.to)} description={understood(times.to, f.to)} inputWrapperOrder={['label', 'input', 'description', 'error']} />
          </Group>
        )}
        {!f.past && (
          <>
            <Group gap="xs" align="end">
              {lab.logs.length > 0 && <Select size="xs" label={w.sent} style={{ flex: 1, minWidth: 180 }} data={lab.logs.map((l) => ({ value: l.id, label: `${l.name} (${size(l.bytes)})` })).reverse()} value={log} onChange={(v) => v && set({ log: v })} allowDeselect={false} />}
              <FileButton resetRef={forget} accept=".swf,.gz,.jsonl,.jdl,.sacct,.txt,.csv" onChange={(file) => { if (file) void take(file); forget.current?.(); }}>{(p) => <Button {...p} size="compact-sm" variant="default" loading={sending !== null}>{w.choose}</Button>}</FileButton>
              <Text size="sm" c="dimmed" visibleFrom="sm">{w.drop}</Text>
            </Group>
            {sending && (
              <div data-testid="sending">
                {sending.of > 0 && <Progress value={(100 * sending.read) / sending.of} aria-label={w.progress} size="lg" mb={4} />}
                <Group gap="xs" justify="space-between">
                  <Text size="sm" className="named">{sending.of > 0 ? w.packing(sending.name, size(sending.read), size(sending.of)) : w.sending(sending.name)}</Text>
                  <Button size="compact-sm" variant="default" onClick={() => { abort.current?.abort(); setSending(null); }}>{w.stop}</Button>
                </Group>
                <span className="unseen" role="status">{sending.of > 0 ? w.compresses(sending.name) : w.sending(sending.name)}</span>
              </div>
            )}
            {lab.logs.length === 0 && !sending && <Text size="sm" c="dimmed">{w.forms}</Text>}
            <Group gap="sm" align="start" grow>
              <TextInput size="xs" label={w.pes} description={w.pesAbout} value={f.pes} onChange={(e) => set({ pes: e.currentTarget.value })} error={fault('pes')} inputMode="numeric" inputWrapperOrder={['label', 'input', 'description', 'error']} />
              <TextInput size="xs" label={w.jobs} description={w.jobsAbout} value={f.jobs} onChange={(e) => set({ jobs: e.currentTarget.value })} error={fault('jobs')} inputMode="numeric" inputWrapperOrder={['label', 'input', 'description', 'error']} />
            </Group>
            <Group gap="sm" align="end">
              <Select size="xs" label={w.as} style={{ flex: 1, minWidth: 190 }} data={w.kinds} value={f.as} onChange={(v) => v && set({ as: v })} allowDeselect={false} />
              <Checkbox size="xs" label={w.estimates} checked={f.estimates} onChange={(e) => set({ estimates: e.currentTarget.checked })} mb={6} />
            </Group>
          </>
        )}
        {bad !== '' && <Alert color="red" variant="light" role="alert" data-testid="bad">{bad}</Alert>}
        {(f.past || f.as !== 'jobs') && ticks(w.policies, 'policies', placements)}
        {ticks(w.bindings, 'bindings', ['early', 'late'])}
        {!f.past && f.as !== 'requests' && ticks(w.passes, 'passes', passes)}
        {!f.past && (
          <Group gap="sm" align="start" grow>
            <TextInput size="xs" label={w.load} placeholder="0.8, 1, 1.2" value={f.load} onChange={(e) => set({ load: e.currentTarget.value })} error={fault('load')} />
            {f.as !== 'jobs' && <TextInput size="xs" label={w.slack} placeholder="1, 2, 3, 5" value={f.slack} onChange={(e) => set({ slack: e.currentTarget.value })} error={fault('slack')} />}
          </Group>
        )}
        <Group gap="sm" align="start" grow>
          <Select size="xs" label={w.other} placeholder={w.none} data={others} value={f.other || null} onChange={(v) => set({ other: v ?? '' })} clearable clearButtonProps={{ 'aria-label': w.clear }} />
          {f.other !== '' && <TextInput size="xs" label={w.otherValues} placeholder="0.1, 0.2" value={f.otherValues} onChange={(e) => set({ otherValues: e.currentTarget.value })} error={fault('otherValues')} />}
        </Group>
        <Group gap="sm" align="start" grow>
          {drawn(f) && <TextInput size="xs" label={w.replications} description={w.replicationsAbout} value={f.replications} onChange={(e) => set({ replications: e.currentTarget.value })} error={fault('replications')} inputMode="numeric" inputWrapperOrder={['label', 'input', 'description', 'error']} />}
          {sweepOf(f).length > 0 && <Select size="xs" label={w.baseline} data={baselines(f).map((value) => ({ value, label: value.replace(/^(policy|binding)=/, '').replace('=', ' ') }))} value={baselines(f).includes(f.baseline) ? f.baseline : baselines(f)[0]!} onChange={(v) => v && set({ baseline: v })} allowDeselect={false} />}
        </Group>
        {!drawn(f) && <Text size="sm" c="dimmed">{w.notDrawn}</Text>}
        <Trouble failure={failure} />
        <Group gap="sm">
          <Button type="submit" size="sm" loading={asking} disabled={!ready || busy}>{w.start}</Button>
          <Text size="sm" role="status" data-testid="count" c={count > most ? 'var(--mantine-color-error)' : undefined}>{busy ? w.oneAtATime : combinations(f) < 2 ? w.nothing : count > most ? w.tooMany(count, most) : !f.past && log === '' ? w.noLog : w.count(combinations(f), count)}</Text>
        </Group>
      </Stack>
    </Paper>
  );
}

/** Made lists comparisons, the newest first. */
function Made({ me, zone, list, shown, kept, onPick }: { me: Me; zone: string; list: Comparison[]; shown: string; kept: number; onPick: (id: string) => void }) {
  return (
    <section aria-labelledby="made-title">
      <Title order={2} size="h5" mb={6} id="made-title">{w.made}</Title>
      {list.length === 0 && <Alert color="gray" data-testid="none" title={w.noneTitle}>{w.noneAbout}</Alert>}
      {list.length > 0 && (
        <Paper withBorder radius="sm">
          <ScrollArea.Autosize mah={240} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.made }}>
            <Table stickyHeader verticalSpacing={3} aria-label={w.made} className="list">
              <Table.Thead><Table.Tr><Table.Th>{w.replays}</Table.Th>{me.role === 'operator' && <Table.Th visibleFrom="sm">{w.user}</Table.Th>}<Table.Th>{w.state}</Table.Th><Table.Th>{w.began} ({zone})</Table.Th></Table.Tr></Table.Thead>
              <Table.Tbody>
                {list.toReversed().map((c) => (
                  <Table.Tr key={c.id} data-selected={c.id === shown || undefined}>
                    <Table.Td><label className="pick"><input type="radio" name="comparison" checked={c.id === shown} onChange={() => onPick(c.id)} /> <span className="named">{sourceOf(c)}</span></label></Table.Td>
                    {me.role === 'operator' && <Table.Td visibleFrom="sm" className="named">{c.user}</Table.Td>}
                    <Table.Td><State of={colours[c.state]} words={w.states[c.state]} /></Table.Td>
                    <Table.Td><Stamp of={time(at(c.made), zone)} /></Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollArea.Autosize>
          <Text size="xs" c="dimmed" p={6}>{w.kept(Math.round(kept / 3600))}</Text>
        </Paper>
      )}
    </section>
  );
}

const colours = { waiting: 'pending', running: 'running', done: 'ok', failed: 'error', cancelled: 'gone' };

/** One is a comparison: how far it is, or what came of it. */
function One({ c, begun, zone, onEnded, onChange }: { c: Comparison; begun: boolean; zone: string; onEnded: () => void; onChange: () => void }) {
  const [cancelling, setCancelling] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const cancel = () => {
    setCancelling(true);
    act('DELETE', `v1/lab/comparisons/${c.id}`, null).then(onChange, (e: unknown) => setFailure(failureOf(e))).finally(() => setCancelling(false));
  };
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (begun && box.current!.getBoundingClientRect().top > innerHeight - 120) box.current!.scrollIntoView({ block: 'start' }); // on a phone it is below the form
    // Who pressed Compare goes on here, where it can be cancelled. Compare is disabled while a
    // comparison runs, but one may be over before it is in the list; a focus elsewhere was moved there.
    const has = document.activeElement;
    if (begun && (has === null || has === document.body || has.matches(':disabled, [type=submit]'))) box.current!.focus({ preventScroll: true });
  }, [begun]);
  const share = c.runs > 0 ? (c.done / c.runs) * 100 : 0;
  const took = c.started && c.ended ? length(at(c.ended) - at(c.started)) : '';
  return (
    <section ref={box} tabIndex={-1} aria-labelledby="one-title" data-testid="one" className="part">
      <Group justify="space-between" mb={6}>
        <Title order={2} size="h5" id="one-title" className="named">{w.of(sourceOf(c))}</Title>
        {!over(c) && <Button size="compact-sm" variant="default" color="red" loading={cancelling} onClick={cancel}>{w.cancel}</Button>}
      </Group>
      <Stack gap="sm">
        {!over(c) && (
          <div>
            <Progress value={share} aria-label={w.progress} size="lg" animated={c.state === 'running' && c.runs === 0} />
            <Text size="sm" mt={4} data-testid="progress">{c.state === 'waiting' ? w.waits : c.runs === 0 ? w.reading : w.progressOf(Math.floor(c.done), c.runs)}</Text>
          </div>
        )}
        <Trouble failure={failure} />
        {c.state === 'failed' && <Alert color="red" variant="light" role="alert" title={w.failed}><Text size="sm" className="named lines">{inFields(c.trouble ?? '', { pes: w.pes, jobs: w.jobs, 'arrival-factor': w.load, 'deadline-factor': w.slack, replications: w.replications })}</Text></Alert>}
        {c.state === 'cancelled' && <Alert color="gray">{w.cancelled}</Alert>}
        {c.notes.length > 0 && <Alert color="orange" variant="light" title={w.notes} data-testid="notes"><Text size="sm" className="named lines">{c.notes.join('\n')}</Text></Alert>}
        {c.state === 'done' && <Came c={c} took={took} zone={zone} onEnded={onEnded} />}
        {c.command !== '' && <Command line={c.command} />}
      </Stack>
    </section>
  );
}

/** Came is what came of a comparison. */
function Came({ c, took, zone, onEnded }: { c: Comparison; took: string; zone: string; onEnded: () => void }) {
  const got = useGot<Results>(`v1/lab/comparisons/${c.id}/results`, 0, onEnded);
  const [figure, setFigure] = useState('');
  const r = got.value;
  const file = (name: string) => `v1/lab/comparisons/${c.id}/files/${encodeURIComponent(name)}`;
  if (!r) return <><Trouble failure={got.failure} again={got.again} />{!got.failure && <Waiting height={240} />}</>;
  const first = r.figures[0]?.name ?? '';
  const ofFigure = r.drawings.filter((d) => d.name.startsWith((figure || first) + '-over-'));
  const downloads = ['report.html', 'summary.csv', 'runs.csv', 'cells.jsonl', 'history.jsonl', 'sites.yaml'].filter((name) => c.files.includes(name));
  return (
    <Stack gap="sm">
      {r.sentence !== '' && <Text fw={600} data-testid="sentence" className="named">{r.sentence}</Text>}
      {r.sentence === '' && r.intervals && r.against !== '' && <Text data-testid="sentence">{w.noDifference(r.against)}</Text>}
      <Text size="sm" c="dimmed" className="named">{r.title}; {r.count}{took && took !== '0 s' && `; ${w.took(took)}`}. {r.drawn}</Text>
      {r.best.length > 0 && (
        <dl className="best" aria-label={w.best}>
          {r.best.map((b) => <div key={b.title}><dt>{w.bestBy(b.title)}</dt><dd><strong>{b.value}</strong> {w.with(b.where)}{b.change && <span className="faint"> ({b.change})</span>}</dd></div>)}
        </dl>
      )}
      <Paper withBorder radius="sm">
        <ScrollArea viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.results }}>
          <Table verticalSpacing={3} aria-label={w.results} className="list compared">
            <Table.Thead><Table.Tr><Table.Th scope="col">{w.combination}</Table.Th>{r.figures.map((f) => <Table.Th key={f.name} scope="col" ta="right">{f.title}</Table.Th>)}</Table.Tr></Table.Thead>
            <Table.Tbody>
              {r.rows.map((row) => (
                <Table.Tr key={row.name} data-selected={row.baseline || undefined}>
                  <Table.Th scope="row" className="named">{row.name}{row.baseline && <span className="faint"> ({w.isBaseline})</span>}</Table.Th>
                  {row.cells.map((cell, i) => (
                    <Table.Td key={r.figures[i]!.name} ta="right">{cell.value}{cell.change && <span className={`change ${cell.verdict}`}>{cell.change} {r.figures[i]!.unit} {cell.verdict}</span>}</Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </ScrollArea>
        {r.against && <Text size="xs" c="dimmed" p={6}>{w.changes(r.against)}</Text>}
      </Paper>
      {r.drawings.length > 0 && (
        <>
          <Select size="xs" w={280} label={w.figure} data={r.figures.filter((f) => r.drawings.some((d) => d.name.startsWith(f.name + '-over-'))).map((f) => ({ value: f.name, label: f.title }))} value={figure || first} onChange={(v) => v && setFigure(v)} allowDeselect={false} />
          <div className="drawings">
            {ofFigure.map((d) => (
              <figure key={d.name}>
                <img src={file(d.name + '.svg')} alt={d.title} loading="lazy" />
                <figcaption><Text size="xs" c="dimmed">{d.caption} <Anchor size="xs" href={file(d.name + '.svg')} download={d.name + '.svg'} underline="always">SVG</Anchor> <Anchor size="xs" href={file(d.name + '.csv')} download={d.name + '.csv'} underline="always">CSV</Anchor></Text></figcaption>
              </figure>
            ))}
          </div>
        </>
      )}
      <Group gap="xs">
        <Text size="sm">{w.downloads}</Text>
        {downloads.map((name) => <Button key={name} component="a" size="compact-sm" variant="default" href={file(name)} download={name}>{name}</Button>)}
        {c.expires && <Text size="sm" c="dimmed">{w.until(`${time(at(c.expires), zone)} ${zone}`)}</Text>}
      </Group>
    </Stack>
  );
}
