import { Alert, Anchor, Button, Group, Paper, Select, Stack, Text, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import { act, type Failure } from './api.js';
import { length, period, time } from './clock.js';
import { maintenanceLine, type MaintenanceAnswer, maintenanceOff, readMaintenance, usualMaintenance, type Maintenance } from './duty.js';
import { inOrder } from './forms.js';
import { at } from './life.js';
import { Command, Trouble } from './parts.js';
import { inWords } from './recur.js';
import { words } from './words.js';

const w = words.maintenance;
const shown = 30;

/** NewMaintenance plans maintenance: what is in its way is asked for first, and shown before anything is announced. */
export function NewMaintenance({ sites, zone, clock, onDone, onEnded }: { sites: string[]; zone: string; clock: number; onDone: () => void; onEnded: () => void }) {
  const [form, setForm] = useState<typeof usualMaintenance | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [tried, setTried] = useState<MaintenanceAnswer | null>(null); // what the form as it is would do
  const [done, setDone] = useState<{ answer: MaintenanceAnswer; line: string } | null>(null);
  const top = useRef<HTMLDivElement>(null);
  const f = form ?? usualMaintenance;
  const set = (c: Partial<typeof usualMaintenance>) => {
    setForm({ ...f, ...c });
    setTried(null);
    setFailure(null);
  };
  const { wanted, start, wrong } = readMaintenance({ ...f, site: f.site || (sites[0] ?? '') }, clock, zone);
  const shut = () => {
    setForm(null);
    setTried(null);
    setFailure(null);
    top.current?.focus();
  };
  const send = (dry: boolean) => {
    setBusy(true);
    setFailure(null);
    act<MaintenanceAnswer>('POST', 'v1/maintenance', { ...wanted, ...(dry && { dry_run: true }) }).then(
      (answer) => {
        if (dry) return setTried(answer);
        setDone({ answer: answer!, line: maintenanceLine(wanted!, false) });
        shut();
        onDone();
      },
      (e: Failure) => { if (e.problem?.status === 401) onEnded(); else setFailure(e); },
    ).finally(() => setBusy(false));
  };
  const field = (name: 'name' | 'nodes' | 'start' | 'duration' | 'repeat' | 'times' | 'reason', about: string) => ({
    label: w.fields[name], size: 'xs', autoComplete: 'off', value: f[name], onChange: (e: React.ChangeEvent<HTMLInputElement>) => set({ [name]: e.currentTarget.value }), description: about, error: wrong.has(name) && w.wrong[name](f[name]), inputWrapperOrder: inOrder,
  });
  const lasts = wanted?.duration;
  return (
    <Stack gap="xs" mb="xs" className="no-paper" ref={top} tabIndex={-1} role="group" aria-label={w.plan}>
      {done && (
        <Alert color="green" variant="light" role="alert" title={w.announced(done.answer.maintenance.name)} data-testid="announced">
          <InTheWay list={done.answer.in_the_way} dry={false} />
          <Command line={done.line} />
        </Alert>
      )}
      {!form && sites.length > 0 && <div><Button size="compact-sm" variant="default" onClick={() => { setForm(usualMaintenance); setDone(null); }}>{w.plan}</Button></div>}
      {!form && sites.length === 0 && <Text size="sm" c="dimmed">{w.noSite}</Text>}
      {form && (
        <Paper withBorder radius="sm" p="sm" component="form" aria-label={w.plan} onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (wanted && !busy) send(tried === null); }}>
          <Group gap="md" align="start" className="fields">
            <TextInput w={170} autoFocus {...field('name', w.nameAbout)} />
            <Select label={w.fields.site} size="xs" w={150} data={sites} value={f.site || (sites[0] ?? null)} onChange={(v) => v && set({ site: v })} allowDeselect={false} />
            <TextInput w={170} {...field('nodes', w.nodesAbout)} />
            <TextInput w={220} {...field('start', start === null ? w.startAbout : `${time(start, zone)} ${zone}`)} />
            <TextInput w={150} {...field('duration', lasts ? length(lasts) : w.durationAbout)} />
            <TextInput w={230} {...field('repeat', f.repeat.trim() === '' ? w.repeatAbout : w.byClock(inWords(f.repeat.trim()), zone))} />
            {f.repeat.trim() !== '' && <TextInput w={130} {...field('times', w.timesAbout)} />}
            <TextInput w={260} {...field('reason', w.reasonAbout)} />
          </Group>
          <Trouble failure={failure} />
          {tried && (
            <Alert color={tried.in_the_way.length > 0 ? 'orange' : 'green'} variant="light" my="xs" role="status" title={w.would(tried.maintenance.times.length)} data-testid="tried">
              {tried.maintenance.times.slice(0, 5).map((t) => <Text key={t.start} size="sm">{period(at(t.start), at(t.end), zone)}{t.note && ` (${t.note})`}</Text>)}
              {tried.maintenance.times.length > 5 && <Text size="sm">{w.moreTimes(tried.maintenance.times.length - 5)}</Text>}
              <InTheWay list={tried.in_the_way} dry />
            </Alert>
          )}
          {wanted && <Command line={maintenanceLine(wanted, tried === null)} />}
          <Group gap="xs" mt="xs"><Button type="submit" size="compact-sm" loading={busy} disabled={!wanted}>{tried ? w.announce : w.look}</Button><Button size="compact-sm" variant="default" onClick={shut}>{w.leave}</Button></Group>
        </Paper>
      )}
    </Stack>
  );
}

/** InTheWay lists the promises that maintenance moves or degrades. */
function InTheWay({ list, dry }: { list: string[]; dry: boolean }) {
  if (list.length === 0) return <Text size="sm">{dry ? w.freeWay : w.wasFree}</Text>;
  return (
    <>
      <Text size="sm">{dry ? w.inTheWay(list.length) : w.wasInTheWay(list.length)}</Text>
      <Text size="sm" className="named">{list.slice(0, shown).map((id, i) => <span key={id}>{i > 0 && ', '}<Anchor size="sm" href={`promises?everybody=1&sel=${encodeURIComponent(id)}`}>{id}</Anchor></span>)}{list.length > shown && w.andMore(list.length - shown)}</Text>
    </>
  );
}

/** Off calls maintenance off, or its next time alone. It takes a second press: what goes on ends at once. */
export function Off({ of, onDone, onEnded }: { of: Maintenance; onDone: (line: string) => void; onEnded: () => void }) {
  const [sure, setSure] = useState<'all' | 'next' | ''>('');
  const [failure, setFailure] = useState<Failure | null>(null);
  const send = (which: 'all' | 'next') => {
    if (sure !== which) return setSure(which);
    setSure('');
    const only = which === 'next' ? of.times[0]!.start : '';
    act('DELETE', `v1/maintenance/${encodeURIComponent(of.name)}${only && `?start=${encodeURIComponent(only)}`}`, null).then(() => onDone(maintenanceOff(of.name, only)), (e: Failure) => { if (e.problem?.status === 401) onEnded(); else setFailure(e); });
  };
  const button = (which: 'all' | 'next', what: string) => <Button size="compact-xs" variant="default" color="red" onClick={() => send(which)} onBlur={() => setSure('')} aria-label={`${what}: ${of.name}`}>{what}</Button>;
  return (
    <Group gap={4} justify="end">
      {of.times.length > 1 && button('next', sure === 'next' ? w.sureNext : w.skipNext)}
      {button('all', sure === 'all' ? w.sureOff : w.off)}
      {failure && <span role="alert">{failure.message}</span>}
    </Group>
  );
}
