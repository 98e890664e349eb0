import { Alert, Button, CopyButton, Group, Paper, Select, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { act, Failure, get, type Me } from './api.js';
import { length, time } from './clock.js';
import { useGot } from './follow.js';
import { parseLength, spoken } from './grammar.js';
import { acting, addLine, bodyOf, changeLine, changeOf, type Delivery, type Form as Sent, forms, type Hook, hookState, isAddress, isMail, kinds, type Lead, leads, type Try, usual, type Wanted } from './receivers.js';
import { at } from './life.js';
import { Command, Stamp, State, Trouble, Waiting } from './parts.js';
import { text } from './text.js';
import { words } from './words.js';

const w = words.hooks;

/** said is what a receiver answered. */
const said = (t: Try) => [t.status ? w.status(t.status) : '', t.trouble ?? ''].filter(Boolean).join(': ') || w.arrived;

/** Hooks lists who is told of one's promises, and adds, tests, changes and removes them. A secret is in one answer alone: it is shown until it is put away or the page is left. */
export function Hooks({ me, sites, zone, changes, onEnded }: { me: Me; sites: string[]; zone: string; changes: number; onEnded: () => void }) {
  const got = useGot<{ hooks: Hook[] }>('v1/hooks', changes, onEnded);
  const [adding, setAdding] = useState(false);
  const [secret, setSecret] = useState<Hook | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [open, setOpen] = useState('');
  const top = useRef<HTMLDivElement>(null);
  const failed = (e: Failure) => { if (e.problem.status === 401) onEnded(); else setFailure(e); };
  const list = got.value?.hooks ?? [];
  const everybody = list.some((h) => h.user !== me.user);
  const here = () => top.current?.focus();
  return (
    <Stack gap="sm" data-testid="hooks" ref={top} tabIndex={-1} role="group" aria-label={w.title}>
      <Text size="sm">{w.about}</Text>
      {secret && (
        <Alert color="green" variant="light" role="alert" title={secret.secret ? w.made : w.madeChat} data-testid="secret">
          {secret.secret && (
            <>
              <Text size="sm">{w.once}</Text>
              <Group gap={6} my={6}>
                <code className="named">{secret.secret}</code>
                <CopyButton value={secret.secret}>{({ copied, copy }) => <Button size="compact-xs" variant="default" aria-label={w.copy} onClick={copy}>{copied ? 'Copied' : 'Copy'}</Button>}</CopyButton>
              </Group>
            </>
          )}
          <Button size="compact-sm" variant="default" onClick={() => { setSecret(null); here(); }}>{w.putAway}</Button>
        </Alert>
      )}
      <Trouble failure={failure} />
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      {adding ? (
        <Form sites={sites} onShut={() => { setAdding(false); setFailure(null); here(); }} onEnded={onEnded}
          onDone={(h) => { setAdding(false); setSecret(h); setFailure(null); setOpen(''); got.again(); here(); }} />
      ) : <Group><Button size="compact-sm" onClick={() => { setAdding(true); setSecret(null); }}>{w.add}</Button></Group>}
      {!got.value && !got.failure && <Waiting />}
      {got.value && list.length === 0 && <Text size="sm" c="dimmed">{w.none}</Text>}
      {list.map((h) => (
        <Paper key={h.id} withBorder p="xs" component="section" aria-label={w.of(h.note || h.host)} data-id={h.id}>
          <Group justify="space-between" gap="xs" wrap="nowrap" align="start">
            <Group gap="2px 10px" miw={0}>
              <State of={{ works: 'ok', fails: 'warning', disabled: 'error' }[hookState(h)]} words={w.states[hookState(h)]} />
              <Text size="sm" fw={600} className="named">{h.note || h.host}</Text>
              <Text size="sm" c="dimmed" className="named">{[h.note && h.host, w.forms[h.form] ?? h.form, h.site, everybody && h.user].filter(Boolean).join(', ')}</Text>
            </Group>
            <Button className="whole" size="compact-xs" variant="default" aria-expanded={open === h.id} aria-label={`${w.more}: ${h.note || h.host}`} onClick={() => setOpen(open === h.id ? '' : h.id)}>{w.more}</Button>
          </Group>
          <Text size="sm">{w.told(h.kinds.map((k) => w.kinds[k] ?? k).join(', '))}</Text>
          {h.disabled && <Text size="sm" className="named">{w.disabled(h.disabled)}</Text>}
          {h.failing && <Text size="sm">{w.failing(`${time(at(h.failing), zone)} ${zone}`)}</Text>}
          {Boolean(h.missed) && <Text size="sm">{w.missed(h.missed!)}</Text>}
          <Text size="xs" c="dimmed" className="named">{w.counts(h.waiting, h.dead)}{h.last ? ` ${w.last(time(at(h.last.at), zone), said(h.last))}` : ''}</Text>
          {open === h.id && <One hook={h} sites={sites} zone={zone} changes={changes} onDone={got.again} onFailed={failed} onSecret={(s) => { setSecret(s); here(); }} onGone={here} onEnded={onEnded} />}
        </Paper>
      ))}
    </Stack>
  );
}

/** One is what was sent to a receiver, and what can be done about it. */
function One({ hook, sites, zone, changes, onDone, onFailed, onSecret, onGone, onEnded }: { hook: Hook; sites: string[]; zone: string; changes: number; onDone: () => void; onFailed: (e: Failure) => void; onSecret: (h: Hook) => void; onGone: () => void; onEnded: () => void }) {
  const path = `v1/hooks/${encodeURIComponent(hook.id)}`;
  const got = useGot<{ deliveries: Delivery[] }>(`${path}/deliveries`, changes, onEnded);
  const [busy, setBusy] = useState(false);
  const [sure, setSure] = useState(false);
  const [changing, setChanging] = useState(false);
  const [done, setDone] = useState<{ title: string; line: string } | null>(null);
  const [trying, setTrying] = useState<{ known: string[]; until: number } | null>(null); // a test on its way
  const again = got.again;
  const list = [...(got.value?.deliveries ?? [])].reverse();
  const dead = list.filter((d) => d.state === 'dead');
  const test = trying ? list.find((d) => d.kind === 'test' && !trying.known.includes(d.id) && d.tries.length > 0) : undefined;
  useEffect(() => { // no event tells what a receiver answered
    if (!trying || test) return;
    const timer = setInterval(() => (Date.now() > trying.until ? setTrying(null) : again()), 500);
    return () => clearInterval(timer);
  }, [trying, test, again]);
  const run = async (title: string, line: string, send: () => Promise<unknown>) => {
    setBusy(true);
    setDone(null);
    setTrying(null); // what came of a test was told
    try {
      await send();
      setDone({ title, line });
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      onFailed(e);
    } finally {
      setBusy(false);
      setSure(false);
      again();
      onDone();
    }
  };
  const tryIt = () => run(w.testing, `berth notify test ${hook.id}`, async () => {
    const before = await get<{ deliveries: Delivery[] }>(`${path}/deliveries`);
    await act('POST', `${path}/test`, null);
    setTrying({ known: before.deliveries.map((d) => d.id), until: Date.now() + 20_000 });
  });
  const resend = (ids: string[]) => run(w.resent, `berth notify resend ${hook.id}${ids.length === 0 ? '' : ` ${ids.join(' ')}`}`, () => act('POST', `${path}/resend`, ids.length === 0 ? {} : { notices: ids }));
  const enable = (enabled: boolean) => run(enabled ? w.enabled : w.stopped, `berth notify change ${hook.id} ${enabled ? '--enable' : '--disable'}`, () => act('PATCH', path, { enabled }));
  const rotate = () => run(w.rotated, `berth notify rotate ${hook.id}`, async () => {
    const h = await act<Hook>('POST', `${path}/rotate`, null);
    if (h) onSecret(h);
  });
  const remove = () => {
    if (!sure) return setSure(true);
    void run(w.removed, `berth notify remove ${hook.id}`, async () => {
      await act('DELETE', path, null);
      onGone();
    });
  };
  const stamp = (t: string) => <Stamp of={time(at(t), zone)} />;
  return (
    <Stack gap="xs" mt="xs">
      <Group gap="xs" role="group" aria-label={w.acts}>
        {!hook.disabled && <Button size="compact-sm" variant="default" disabled={busy} onClick={() => void tryIt()}>{w.test}</Button>}
        {dead.length > 0 && !hook.disabled && <Button size="compact-sm" variant="default" disabled={busy} onClick={() => void resend([])}>{w.resendAll(dead.length)}</Button>}
        {hook.form === 'webhook' && <Button size="compact-sm" variant="default" disabled={busy} onClick={() => void rotate()}>{w.rotate}</Button>}
        <Button size="compact-sm" variant="default" disabled={busy} aria-expanded={changing} onClick={() => { setChanging(!changing); setDone(null); }}>{w.change}</Button>
        <Button size="compact-sm" variant="default" disabled={busy} onClick={() => void enable(Boolean(hook.disabled))}>{hook.disabled ? w.enable : w.disable}</Button>
        <Button size="compact-sm" variant="default" color="red" disabled={busy} onClick={remove} onBlur={() => setSure(false)}>{sure ? w.sure : w.remove}</Button>
      </Group>
      {changing && (
        <Form hook={hook} sites={sites} onShut={() => setChanging(false)} onEnded={onEnded}
          onDone={(h, line) => { setChanging(false); setDone({ title: w.changed, line }); if (h.secret) onSecret(h); again(); onDone(); }} />
      )}
      {done && <Alert color={test && test.state !== 'delivered' ? 'orange' : 'green'} variant="light" title={test ? (test.state === 'delivered' ? w.testArrived : w.testFailed) : done.title} role="alert" data-testid="done">{test && <Text size="sm" className="named">{said(test.tries.at(-1)!)}</Text>}<Command line={done.line} /></Alert>}
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      {!got.value && !got.failure && <Waiting height={60} />}
      <Title order={3} size="h6">{w.sent}</Title>
      {got.value && list.length === 0 && <Text size="sm" c="dimmed">{w.nothingSent}</Text>}
      {list.length > 0 && (
        <Table aria-label={w.sent} verticalSpacing={4} data-testid="deliveries">
          <Table.Thead><Table.Tr><Table.Th>What</Table.Th><Table.Th visibleFrom="sm">Came about</Table.Th><Table.Th>State</Table.Th><Table.Th><span className="unseen">{w.resend}</span></Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>
            {list.slice(0, 100).map((d) => (
              <Table.Tr key={d.id} data-notice={d.id}>
                <Table.Td className="named"><span className="stamp"><span>{w.kinds[d.kind] ?? d.kind}</span></span>{(d.reservation ?? d.workflow) && <Text size="xs" className="named">{d.reservation ?? d.workflow}</Text>}<Text size="xs" hiddenFrom="sm">{stamp(d.at)}</Text></Table.Td>
                <Table.Td visibleFrom="sm">{stamp(d.at)}</Table.Td>
                <Table.Td>
                  <State of={{ delivered: 'ok', dead: 'error' }[d.state] ?? 'held'} words={w.delivery[d.state] ?? d.state} />
                  {d.tries.map((t, i) => <Text key={i} size="xs" className="named">{time(at(t.at), zone)}: {said(t)}</Text>)}
                  {d.next && <Text size="xs"><Stamp of={w.nextTry(time(at(d.next), zone))} /></Text>}
                </Table.Td>
                <Table.Td ta="right">{d.state === 'dead' && !hook.disabled && <Button size="compact-xs" variant="default" disabled={busy} aria-label={`${w.resend}: ${w.kinds[d.kind] ?? d.kind}, ${d.reservation ?? d.workflow ?? d.id}`} onClick={() => void resend([d.id])}>{w.resend}</Button>}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      <Command line={`berth notify show ${hook.id}`} />
    </Stack>
  );
}

const order: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error'];

/** Form makes a receiver, or changes one that is there, whose address is not known here and stays unless another one is typed. */
function Form({ hook, sites, onShut, onDone, onEnded }: { hook?: Hook; sites: string[]; onShut: () => void; onDone: (h: Hook, line: string) => void; onEnded: () => void }) {
  const [f, set] = useState(() => ({
    url: '', form: (hook?.form ?? 'webhook') as Sent, kinds: hook?.kinds ?? acting, site: hook?.site ?? '', note: hook?.note ?? '', text: hook?.text ?? '',
    starts: spoken((hook ?? usual).starts), unused: spoken((hook ?? usual).unused), ends: spoken((hook ?? usual).ends),
  }));
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const told = (k: string) => f.kinds.includes(k);
  // What stands there from before is good, though nobody could type it: a length may be 0.
  const long = (l: Lead) => (hook && f[l].trim() === spoken(hook[l]) ? hook[l] : parseLength(f[l]));
  const asked = (Object.keys(leads) as Lead[]).filter((l) => told(leads[l]));
  const url = f.url.trim();
  const wanted: Wanted = { url, form: f.form, kinds: f.kinds, site: f.site, note: f.note.trim(), text: f.text.trim(), ...Object.fromEntries(asked.map((l) => [l, long(l) ?? undefined])) };
  const body = hook ? changeOf(hook, wanted) : bodyOf(wanted);
  // One that is there may be given an address of either kind; of a new one that says what is sent.
  const good = hook ? isAddress(url) || isMail(url) : f.form === 'email' ? isMail(url) : isAddress(url);
  const typed = (text: string) => set({ ...f, url: text, ...(!hook && isMail(text.trim()) ? { form: 'email' } : !hook && f.form === 'email' && isAddress(text.trim()) ? { form: 'webhook' } : {}) });
  const mail = f.form === 'email';
  const right = ((hook && url === '') || good) && f.kinds.length > 0 && asked.every((l) => long(l) !== null) && Object.keys(body).length > 0;
  const line = hook ? changeLine(hook, wanted) : addLine(wanted);
  const send = () => {
    setBusy(true);
    setFailure(null);
    act<Hook>(hook ? 'PATCH' : 'POST', hook ? `v1/hooks/${encodeURIComponent(hook.id)}` : 'v1/hooks', body).then((h) => h && onDone(h, line), (e: Failure) => {
      if (e.problem.status === 401) onEnded();
      setFailure(e);
      setBusy(false);
    });
  };
  return (
    <Paper withBorder p="sm" component="form" aria-label={hook ? w.changeOf(hook.note || hook.host) : w.add} onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (right && !busy) send(); }}>
      <Stack gap="xs">
        <TextInput label={hook ? w.newUrl : mail ? w.mail : w.url} autoFocus autoComplete="off" inputMode={mail ? 'email' : 'url'} placeholder={hook ? '' : mail ? 'ann@example.org' : 'https://hooks.example.org/berth'} value={f.url} onChange={(e) => typed(e.currentTarget.value)} error={f.url !== '' && !good && (mail ? w.badMail : w.badUrl)} description={hook ? w.newUrlAbout : mail ? w.mailAbout : w.urlAbout} inputWrapperOrder={order} />
        {!hook && <Select label={w.form} data={forms.map((v) => ({ value: v, label: w.forms[v] ?? v }))} value={f.form} onChange={(v) => set({ ...f, form: (v ?? 'webhook') as Sent })} allowDeselect={false} />}
        {f.form === 'chat' && <TextInput label={w.text} value={f.text} onChange={(e) => set({ ...f, text: e.currentTarget.value })} description={w.textAbout} inputWrapperOrder={order} />}
        <fieldset className="bare"><legend>{w.toldOf}</legend>
          {kinds.map((k) => <label key={k} className="choice"><input type="checkbox" checked={told(k)} onChange={() => set({ ...f, kinds: kinds.filter((x) => (x === k ? !told(k) : told(x))) })} /> {w.kinds[k]}</label>)}
          {f.kinds.length === 0 && <Text size="sm" role="alert">{w.noKinds}</Text>}
        </fieldset>
        {asked.map((l) => {
          const is = long(l);
          return <TextInput key={l} label={w[l]} value={f[l]} onChange={(e) => set({ ...f, [l]: e.currentTarget.value })} error={is === null && text.book.badLength(f[l])} description={is === null ? undefined : length(is)} inputWrapperOrder={order} />;
        })}
        <Select label={w.site} data={[{ value: '', label: text.allSites }, ...[...new Set(hook?.site ? [hook.site, ...sites] : sites)].map((s) => ({ value: s, label: s }))]} value={f.site} onChange={(v) => set({ ...f, site: v ?? '' })} allowDeselect={false} />
        <TextInput label={w.note} autoComplete="off" maxLength={200} value={f.note} onChange={(e) => set({ ...f, note: e.currentTarget.value })} />
        <Trouble failure={failure} />
        <Group gap="xs"><Button type="submit" size="compact-sm" loading={busy} disabled={!right}>{hook ? w.changeIt : w.addIt}</Button><Button size="compact-sm" variant="default" onClick={onShut}>{hook ? words.promises.close : w.leave}</Button></Group>
        {right && <Command line={line} />}
        {hook && Object.keys(body).length === 0 && <Text size="sm" c="dimmed">{words.promises.same}</Text>}
      </Stack>
    </Paper>
  );
}
