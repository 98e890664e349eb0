import { Alert, Button, Checkbox, FileButton, Grid, Group, Paper, ScrollArea, Select, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Failure, type Me, type Site } from './api.js';
import { length, ticks, time } from './clock.js';
import { above, commandsOf, deadlines, dots, largest, nearest, slim, sums, type Plan, type PlannedWorkflow } from './dag.js';
import { BookAll, Flows } from './flows.js';
import { useAddress, useChanges, useGot } from './follow.js';
import { stampOf } from './grammar.js';
import { at } from './life.js';
import { Command, Stamp, Trouble, usualZone, Waiting } from './parts.js';
import { plans, read } from './plans.js';
import { words } from './words.js';

const w = words.workflow;

/** usual are the planners that are compared; the others are variants of them. */
const usual = ['bd-all', 'bd-half', 'bd-cpa', 'bd-cpar', 'bd-thrift', 'dl-bd-cpar', 'dl-rc-cpar', 'dl-thrift-lambda'];
const forDeadlines = ['dl-bd-all', 'dl-bd-cpa', 'dl-bd-cpar', 'dl-rc-cpa', 'dl-rc-cpar', 'dl-rc-cpar-lambda', 'dl-rcbd-cpar-lambda', 'dl-thrift-lambda', 'dl-portfolio'];
const apart = 60; // more dots than that are drawn together

/** example is a workflow of a few steps, to see what the page does. */
const example = {
  name: 'example', schemaVersion: '1.4',
  workflow: {
    tasks: [
      { id: 'split_1', runtimeInSeconds: 600, parents: [] },
      ...[1, 2, 3, 4, 5, 6].map((i) => ({ id: `simulate_${i}`, runtimeInSeconds: 14_400 + 1800 * i, parents: ['split_1'] })),
      { id: 'merge_1', runtimeInSeconds: 3600, parents: [1, 2, 3, 4, 5, 6].map((i) => `simulate_${i}`) },
      { id: 'render_1', runtimeInSeconds: 7200, parents: ['merge_1'] }, { id: 'report_1', runtimeInSeconds: 1800, parents: ['merge_1'] },
    ],
  },
};

interface Read { name: string; doc: object; commands: Map<string, string[]> }

export default function Workflow({ me, onLive, onEnded }: { me: Me; onLive: (live: boolean) => void; onEnded: () => void }) {
  const zone = usualZone();
  const { changes, clock } = useChanges(onLive, onEnded);
  const [query, change] = useAddress();
  const sites = useGot<{ sites: Site[] }>('v1/sites', changes > 0 ? 1 : 0, onEnded);
  const pools = (sites.value?.sites ?? []).flatMap((s) => s.pools.map((p) => ({ value: `${s.name}/${p.name}`, label: `${s.name}, ${p.name} (${p.pes} PEs)`, site: s.name, pool: p.name })));
  const [place, setPlace] = useState('');
  const chosen = pools.find((p) => p.value === place) ?? pools[0];
  const [file, setFile] = useState<Read | null>(null);
  const [bad, setBad] = useState('');
  const forget = useRef<() => void>(null); // so that the same file can be chosen again
  const [over, setOver] = useState(false);
  const [alpha, setAlpha] = useState('0.1');
  const [every, setEvery] = useState(false);
  const [curvePlanner, setCurvePlanner] = useState('dl-thrift-lambda');
  const [round, setRound] = useState(0);
  const [acted, setActed] = useState(''); // the workflow that something was done to since it was booked
  const [flow, setFlow] = useState<PlannedWorkflow | null>(null);
  const [compared, setCompared] = useState<Plan[]>([]);
  const [curve, setCurve] = useState<Plan[]>([]);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [shown, setShown] = useState<{ from: 'compared' | 'curve'; n: number }>({ from: 'compared', n: 0 });
  const fraction = /^\d*\.?\d+$/.test(alpha.trim()) && Number(alpha) <= 1 ? Number(alpha) : null;

  const take = async (f: File) => {
    setBad('');
    if (f.size > largest) {
      setBad(w.large(Math.round(f.size / 1e6)));
      return;
    }
    try {
      const content = await read(f, largest);
      if (content === null) return setBad(w.unfolds);
      const whole: unknown = JSON.parse(content);
      const doc = slim(whole);
      if (doc) setFile({ name: f.name, doc, commands: commandsOf(whole) });
      else setBad(w.notFlow);
    } catch (e) {
      setBad(e instanceof SyntaxError ? w.notJSON(e.message) : `${w.unread}: ${e instanceof Error ? e.message : String(e)}`);
    }
  };

  const basis = file && chosen && fraction !== null ? JSON.stringify({ workflow: file.doc, site: chosen.site, pool: chosen.pool, alpha: fraction }) : '';
  const tightest = useRef(new Map<string, number>()); // by planner, of this basis
  useEffect(() => {
    if (basis === '') return;
    const abort = new AbortController();
    setBusy(true);
    setFailure(null);
    setCurve([]);
    const list: Plan[] = [];
    tightest.current = new Map();
    let known: PlannedWorkflow | null = null;
    const fails = (e: unknown) => {
      if (abort.signal.aborted) return;
      const f = e instanceof Failure ? e : new Failure({ status: 0, title: 'The answer cannot be read', detail: String(e), code: '' });
      if (f.problem.status === 401) onEnded();
      setFailure(f);
    };
    const hear = (l: { workflow?: PlannedWorkflow; plan?: Plan }) => {
      if (l.workflow) {
        known = l.workflow;
        setFlow(known);
        setShown({ from: 'compared', n: 0 });
      }
      if (l.plan) {
        list.push(l.plan);
        if (l.plan.tightest) tightest.current.set(l.plan.planner, at(l.plan.tightest));
        setCompared([...list]);
      }
    };
    setCompared([]);
    plans(JSON.stringify({ ...(JSON.parse(basis) as object), planners: every ? ['all'] : usual }), abort.signal, hear).catch(fails).finally(() => abort.signal.aborted || setBusy(false));
    return () => abort.abort();
  }, [basis, every, round, onEnded]);

  // The curve follows what was compared, with the planner that is chosen for it.
  const ready = !busy && compared.length > 0 && flow !== null;
  useEffect(() => {
    if (!ready || basis === '') return;
    const abort = new AbortController();
    const go = async () => {
      const ask = (more: object, hear: (p: Plan) => void) => plans(JSON.stringify({ ...(JSON.parse(basis) as object), planners: [curvePlanner], ...more }), abort.signal, (l) => l.plan && hear(l.plan));
      let first = tightest.current.get(curvePlanner);
      if (first === undefined) await ask({}, (p) => p.tightest && (first = at(p.tightest)));
      if (first === undefined) {
        setCurve([]);
        return;
      }
      tightest.current.set(curvePlanner, first);
      const list: Plan[] = [];
      await ask({ deadlines: deadlines(at(flow!.now), first).map(stampOf) }, (p) => {
        list.push(p);
        setCurve([...list]);
      });
    };
    go().catch((e: unknown) => abort.signal.aborted || setFailure(e instanceof Failure ? e : new Failure({ status: 0, title: 'The answer cannot be read', detail: String(e), code: '' })));
    return () => abort.abort();
  }, [ready, basis, curvePlanner, flow]);

  const plan = (shown.from === 'curve' ? curve[shown.n] : compared[shown.n]) ?? compared.find((p) => p.tasks) ?? null;
  const edges = flow?.tasks.reduce((n, t) => n + t.parents.length, 0) ?? 0;
  return (
    <Stack gap="sm">
      <div>
        <Title order={1} size="h3">{w.title}</Title>
        <Text size="sm" c="dimmed">{w.about}</Text>
      </div>
      <Flows me={me} zone={zone} clock={clock} changes={changes} query={query} change={change} onActed={setActed} onEnded={onEnded} />
      <Trouble failure={sites.failure} again={sites.again} />
      {sites.value && pools.length === 0 && <Alert color="gray">{w.noSite}</Alert>}
      {!sites.value && !sites.failure && <Waiting />}
      {chosen && (
        <Paper withBorder p="sm" className={over ? 'drop over' : 'drop'} role="group" aria-label={w.file}
          onDragOver={(e: React.DragEvent) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
          onDrop={(e: React.DragEvent) => { e.preventDefault(); setOver(false); const f = e.dataTransfer.files[0]; if (f) void take(f); }}>
          <Group gap="md" align="end" className="fields">
            <div>
              <Text size="sm" fw={500}>{file ? <span className="named">{file.name}</span> : w.file}</Text>
              <Group gap="xs" mt={4}>
                <FileButton resetRef={forget} accept=".json,.gz,application/json" onChange={(f) => { if (f) void take(f); forget.current?.(); }}>{(p) => <Button {...p} size="compact-sm">{w.choose}</Button>}</FileButton>
                <Button size="compact-sm" variant="default" onClick={() => { setBad(''); setFile({ name: 'example.json', doc: example, commands: new Map() }); }}>{w.example}</Button>
                <Text size="sm" c="dimmed" visibleFrom="sm">{w.drop}</Text>
              </Group>
            </div>
            <Select label={w.where} size="xs" w={300} maw="100%" data={pools} value={chosen.value} onChange={(v) => setPlace(v ?? '')} allowDeselect={false} />
            <TextInput label={w.alpha} size="xs" w={290} value={alpha} onChange={(e) => setAlpha(e.currentTarget.value)} error={fraction === null && w.badAlpha(alpha)} inputMode="decimal" />
            {file && <Button size="compact-sm" variant="default" loading={busy} onClick={() => setRound(round + 1)}>{w.again}</Button>}
          </Group>
        </Paper>
      )}
      {bad && <Alert color="red" variant="light" role="alert" data-testid="bad">{bad}</Alert>}
      <Trouble failure={failure} again={() => setRound(round + 1)} />
      {busy && compared.length === 0 && <Waiting height={240} />}
      {flow && file && (
        <>
          <Text size="sm" data-testid="flow"><strong className="named">{flow.name}</strong>: {w.read(flow.tasks.length, edges)}; <span className="named">{flow.site}, {flow.pool}</span>; {w.free(flow.free, flow.pes)}; {w.bound(`${time(at(flow.bound), zone)} ${zone}`)}. <span className="faint named">{flow.notes.join('; ')}</span></Text>
          <Grid gap="md">
            <Grid.Col span={{ base: 12, lg: 6 }}>
              <section aria-labelledby="compared-title">
                <Group justify="space-between" mb={6}><Title order={2} size="h5" id="compared-title">{w.compared}</Title><Checkbox size="xs" label={w.all} checked={every} onChange={(e) => setEvery(e.currentTarget.checked)} /></Group>
                <Compared list={compared} zone={zone} shown={shown.from === 'compared' ? shown.n : -1} onShow={(n) => setShown({ from: 'compared', n })} busy={busy} />
              </section>
            </Grid.Col>
            <Grid.Col span={{ base: 12, lg: 6 }}>
              <section aria-labelledby="curve-title">
                <Group justify="space-between" mb={6} align="end">
                  <Title order={2} size="h5" id="curve-title">{w.curve}</Title>
                  <Select size="xs" aria-label={w.curvePlanner} data={forDeadlines} value={curvePlanner} onChange={(v) => v && setCurvePlanner(v)} allowDeselect={false} />
                </Group>
                {ready && curve.length === 0 && <Waiting height={200} />}
                {curve.length > 0 && <Curve list={curve} zone={zone} now={at(flow.now)} chosen={shown.from === 'curve' ? shown.n : 0} onChoose={(n) => setShown({ from: 'curve', n })} />}
              </section>
            </Grid.Col>
          </Grid>
          {plan?.tasks && <Drawn flow={flow} plan={plan} zone={zone} />}
          <BookAll key={`${file.name} ${flow.site} ${flow.pool}`} flow={flow} plan={plan} tightest={shown.from === 'curve' && curve[0]?.deadline ? at(curve[0].deadline) : null} commands={file.commands} zone={zone} clock={clock} acted={acted} onBooked={(id) => { setActed(''); change('flow', id); }} onEnded={onEnded} />
          {chosen && <Command line={`printf '{"workflow":%s,"site":"${chosen.site}","pool":"${chosen.pool}","planners":["${plan?.planner ?? 'bd-cpar'}"]${plan?.deadline ? `,"deadlines":["${plan.deadline}"]` : ''}}' "$(cat FILE)" | curl -s "$BERTH/v1/workflows/plans" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d @-`} />}
        </>
      )}
    </Stack>
  );
}

const hours = (p: Plan) => w.hours((p.pe_seconds ?? 0) / 3600);

function Compared({ list, zone, shown, onShow, busy }: { list: Plan[]; zone: string; shown: number; onShow: (n: number) => void; busy: boolean }) {
  return (
    <Paper withBorder radius="sm">
      <ScrollArea.Autosize mah={330} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.compared }}>
        <Table stickyHeader verticalSpacing={3} aria-label={w.compared} aria-busy={busy} className="list">
          <Table.Thead><Table.Tr><Table.Th>Planner</Table.Th><Table.Th>Ends ({zone})</Table.Th><Table.Th>Takes</Table.Th><Table.Th ta="right">CPU-hours</Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>
            {list.map((p, n) => (
              <Table.Tr key={p.planner} data-selected={n === shown || undefined}>
                <Table.Td><label className="pick" title={p.about}><input type="radio" name="planner" checked={n === shown} disabled={!p.tasks} onChange={() => onShow(n)} /> {p.planner}</label></Table.Td>
                {p.tasks ? <><Table.Td><Stamp of={time(at(p.end!), zone)} /></Table.Td><Table.Td>{length(p.turnaround!)}</Table.Td><Table.Td ta="right">{((p.pe_seconds ?? 0) / 3600).toFixed(2)}</Table.Td></> : <Table.Td colSpan={3}>{w.none(p.reason ?? '')}</Table.Td>}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
      <Text size="xs" c="dimmed" p={6}>{list[shown]?.about ?? w.pick}</Text>
    </Paper>
  );
}

/** Curve is what each deadline costs. Its line is dragged, or the slider is; both go from plan to plan that is here already. */
function Curve({ list, zone, now, chosen, onChoose }: { list: Plan[]; zone: string; now: number; chosen: number; onChoose: (n: number) => void }) {
  const box = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState(false);
  const ends = list.map((p) => at(p.deadline!));
  const [first, last] = [now, ends[ends.length - 1]!];
  const costs = list.map((p) => (p.pe_seconds ?? 0) / 3600);
  const met = list.map((p) => Boolean(p.tasks));
  const top = Math.max(...costs) || 1;
  const x = (t: number) => ((t - first) / Math.max(1, last - first)) * 94 + 3;
  const y = (c: number) => 150 - (c / top) * 130;
  const to = (e: React.PointerEvent) => {
    const r = box.current!.getBoundingClientRect();
    onChoose(nearest(((e.clientX - r.left) / r.width - 0.03) / 0.94 * (last - first) + first, ends));
  };
  const n = Math.min(chosen, list.length - 1);
  const says = (i: number) => w.by(`${time(ends[i]!, zone)} ${zone}`, met[i] ? hours(list[i]!) : w.none(list[i]!.reason ?? ''));
  return (
    <Paper withBorder radius="sm" p="xs">
      <Text size="xs" c="dimmed">{w.curveAbout}</Text>
      <svg ref={box} width="100%" height={176} className="curve" aria-hidden="true" style={{ cursor: drag ? 'grabbing' : 'grab', touchAction: 'pan-y' }}
        onPointerDown={(e) => { e.currentTarget.setPointerCapture(e.pointerId); setDrag(true); to(e); }} onPointerMove={(e) => drag && to(e)} onPointerUp={() => setDrag(false)} onPointerCancel={() => setDrag(false)}>
        {ticks(first, last, (last - first) / 5, zone).map((t) => (
          <g key={t.at}><line x1={`${x(t.at)}%`} x2={`${x(t.at)}%`} y1={12} y2={152} className="rule" /><text x={`${x(t.at)}%`} y={168} textAnchor="middle">{t.label}</text></g>
        ))}
        <line x1="0" x2="100%" y1={150.5} y2={150.5} className="rule" />
        <line x1="0" x2="100%" y1={20.5} y2={20.5} className="rule" />
        <text x="0" y={16}>{top.toFixed(1)}</text>
        <text x="0" y={146}>0</text>
        {list.map((_, i) => i > 0 && met[i] && met[i - 1] && <line key={i} x1={`${x(ends[i - 1]!)}%`} y1={y(costs[i - 1]!)} x2={`${x(ends[i]!)}%`} y2={y(costs[i]!)} className="way" />)}
        {list.map((_, i) => (met[i] ? <circle key={i} cx={`${x(ends[i]!)}%`} cy={y(costs[i]!)} r={i === n ? 7 : 4} className="point" /> : <text key={i} x={`${x(ends[i]!)}%`} y={148} textAnchor="middle">×</text>))}
        <line x1={`${x(ends[n]!)}%`} x2={`${x(ends[n]!)}%`} y1={12} y2={152} className="chosen" />
      </svg>
      <label className="slide"><span>{w.deadline}</span><input type="range" min={0} max={list.length - 1} step={1} value={n} aria-valuetext={says(n)} onChange={(e) => onChoose(Number(e.currentTarget.value))} /></label>
      <Text size="sm" role="status" data-testid="deadline">{says(n)}</Text>
    </Paper>
  );
}

/** Drawn shows the workflow, and when and on how many PEs its tasks would run. */
function Drawn({ flow, plan, zone }: { flow: PlannedWorkflow; plan: Plan; zone: string }) {
  const many = flow.tasks.length > apart;
  const [together, setTogether] = useState(many);
  const [table, setTable] = useState(false);
  const list = useMemo(() => dots(flow.tasks, together), [flow, together]);
  const critical = useMemo(() => new Set(plan.critical ?? []), [plan]);
  const from = at(flow.now);
  const to = Math.max(at(plan.deadline ?? plan.end!), at(plan.end!)) + Math.max(60, (at(plan.end!) - from) * 0.03);
  const x = (t: number) => `${((Math.min(to, Math.max(from, t)) - from) / (to - from)) * 100}%`;
  const wide = (a: number, b: number) => `${(Math.max(0, Math.min(to, b) - Math.max(from, a)) / (to - from)) * 100}%`;
  const held = flow.held.map((h) => ({ from: h.start ? at(h.start) : from, to: h.end ? at(h.end) : to + 1, npe: h.npe }));
  const own = above(sums(plan.tasks!.map((t) => ({ from: at(t.start), to: at(t.end), npe: t.npe }))), held);
  const tall = 130;
  const y = (npe: number) => (npe / flow.pes) * tall;
  const axis = ticks(from, to, (to - from) / 6, zone);
  const rows = [...list].sort((a, b) => a.level - b.level || a.place - b.place);
  const rowTall = 18;
  const line = (d: (typeof list)[number]) => d.tasks.some((i) => critical.has(i));
  return (
    <section aria-labelledby="plan-title">
      <Group justify="space-between" mb={6}>
        <Title order={2} size="h5" id="plan-title">{w.planOf(plan.planner)}</Title>
        <Group gap="md">
          <Checkbox size="xs" label={w.together} checked={together} onChange={(e) => setTogether(e.currentTarget.checked)} />
          <Checkbox size="xs" label={w.table} checked={table} onChange={(e) => setTable(e.currentTarget.checked)} />
        </Group>
      </Group>
      <Text size="sm" mb="xs" data-testid="plan">{w.ends(`${time(at(plan.end!), zone)} ${zone}`, length(plan.turnaround!), hours(plan))}</Text>
      {table ? (
        <Paper withBorder radius="sm">
          <ScrollArea.Autosize mah={480} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.plan }}>
            <Table stickyHeader verticalSpacing={3} aria-label={w.plan} className="facts">
              <Table.Thead><Table.Tr><Table.Th>Task</Table.Th><Table.Th ta="right">PEs</Table.Th><Table.Th>Starts ({zone})</Table.Th><Table.Th>Ends</Table.Th><Table.Th>Takes</Table.Th><Table.Th>Waits for</Table.Th></Table.Tr></Table.Thead>
              <Table.Tbody>
                {plan.tasks!.map((t, i) => ({ t, i })).sort((a, b) => at(a.t.start) - at(b.t.start) || a.i - b.i).map(({ t, i }) => (
                  <Table.Tr key={i}>
                    <Table.Td className="named">{flow.tasks[i]!.id}{critical.has(i) && `, ${w.critical}`}</Table.Td><Table.Td ta="right">{t.npe}</Table.Td><Table.Td><Stamp of={time(at(t.start), zone)} /></Table.Td><Table.Td><Stamp of={time(at(t.end), zone)} /></Table.Td>
                    <Table.Td>{length(at(t.end) - at(t.start))}</Table.Td><Table.Td className="named">{flow.tasks[i]!.parents.map((p) => flow.tasks[p]!.id).join(', ') || '–'}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollArea.Autosize>
        </Paper>
      ) : (
        <Grid gap="md">
          <Grid.Col span={{ base: 12, md: 4 }}><Graph list={list} critical={critical} /></Grid.Col>
          <Grid.Col span={{ base: 12, md: 8 }}>
            <Paper withBorder radius="sm" p="xs" className="planned">
              <Group gap="md" component="ul" className="legend" mb={4} aria-label="Legend">
                {([['others', w.others], ['critical', w.critical], ['own', w.others2]] as const).map(([c, name]) => <Group key={c} component="li" gap={6} wrap="nowrap"><span className={`swatch ${c}`} /><Text size="xs">{name}</Text></Group>)}
              </Group>
              <div className="rows">
                <span className="faint">{flow.pes} PEs</span>
                <svg width="100%" height={tall + 20} aria-hidden="true">
                  {axis.map((t) => <g key={t.at}><line x1={x(t.at)} x2={x(t.at)} y1={0} y2={tall} className="rule" /><text x={x(t.at)} y={tall + 15} textAnchor="middle">{t.label}</text></g>)}
                  {held.map((h, i) => <rect key={i} x={x(h.from)} width={wide(h.from, h.to)} y={tall - y(h.npe)} height={y(h.npe)} className="others" />)}
                  {own.map((s, i) => <rect key={i} x={x(s.from)} width={wide(s.from, s.to)} y={tall - y(s.base + s.npe)} height={y(s.npe)} className="own" />)}
                  {plan.deadline && <line x1={x(at(plan.deadline))} x2={x(at(plan.deadline))} y1={0} y2={tall} className="chosen" />}
                  <line x1="0" x2="100%" y1={tall + 0.5} y2={tall + 0.5} className="rule" />
                </svg>
              </div>
              <ScrollArea.Autosize mah={420} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.plan }}>
                {rows.map((d, n) => (
                  <div key={n} className="rows">
                    <span className="named" title={d.label}>{d.label}{d.tasks.length > 1 && <span className="faint"> ×{d.tasks.length}</span>}</span>
                    <svg width="100%" height={rowTall} role="img" aria-label={`${d.label}: ${d.tasks.length === 1 ? `${plan.tasks![d.tasks[0]!]!.npe} PEs, ` : ''}${time(Math.min(...d.tasks.map((i) => at(plan.tasks![i]!.start))), zone)} to ${time(Math.max(...d.tasks.map((i) => at(plan.tasks![i]!.end))), zone)}${line(d) ? `, ${w.critical}` : ''}`}>
                      <line x1="0" x2="100%" y1={rowTall - 0.5} y2={rowTall - 0.5} className="rule" />
                      {[...d.tasks].sort((a, b) => Number(critical.has(a)) - Number(critical.has(b))).map((i) => {
                        const t = plan.tasks![i]!;
                        return <rect key={i} x={x(at(t.start))} width={wide(at(t.start), at(t.end))} y={3} height={rowTall - 6} rx={2} className={critical.has(i) ? 'critical' : 'own'}><title>{`${flow.tasks[i]!.id}: ${t.npe} PEs, ${time(at(t.start), zone)} to ${time(at(t.end), zone)} ${zone}`}</title></rect>;
                      })}
                    </svg>
                  </div>
                ))}
              </ScrollArea.Autosize>
            </Paper>
          </Grid.Col>
        </Grid>
      )}
    </section>
  );
}

/** Graph draws what waits for what, level by level from the top. The table says the same in words. */
function Graph({ list, critical }: { list: ReturnType<typeof dots>; critical: Set<number> }) {
  const levelTall = 46;
  const least = Math.min(...list.map((d) => d.place));
  const most = Math.max(...list.map((d) => d.place));
  const down = Math.max(...list.map((d) => d.level)) + 1;
  const room = Math.max(1, most - least + 1);
  const x = (d: { place: number }) => ((d.place - least + 0.5) / room) * 100;
  const y = (d: { level: number }) => d.level * levelTall + 20;
  const named = room <= 4;
  return (
    <Paper withBorder radius="sm" p="xs">
      <Title order={3} size="h6" mb={4}>{w.graph}</Title>
      <ScrollArea.Autosize mah={580} viewportProps={{ tabIndex: 0, role: 'group', 'aria-label': w.graph }}>
        <svg width="100%" height={down * levelTall} className="graph" role="img" aria-label={`${list.length} ${list.length === 1 ? 'box' : 'boxes'} on ${down} ${down === 1 ? 'level' : 'levels'}`}>
          {list.map((d, i) => d.parents.map((p) => <line key={`${p}-${i}`} x1={`${x(list[p]!)}%`} y1={y(list[p]!) + 7} x2={`${x(d)}%`} y2={y(d) - 7} className="edge" />))}
          {list.map((d, i) => (
            <g key={i}>
              <circle cx={`${x(d)}%`} cy={y(d)} r={d.tasks.length > 1 ? 9 : 6} className={d.tasks.some((t) => critical.has(t)) ? 'critical' : 'own'}><title>{d.tasks.length > 1 ? `${d.label} ×${d.tasks.length}` : d.label}</title></circle>
              {named && <text x={`${x(d)}%`} y={y(d) + 22} textAnchor="middle">{d.label}{d.tasks.length > 1 ? ` ×${d.tasks.length}` : ''}</text>}
            </g>
          ))}
        </svg>
      </ScrollArea.Autosize>
    </Paper>
  );
}
