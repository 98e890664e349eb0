import { Alert, Button, CopyButton, Group, Paper, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { useRef, useState } from 'react';
import { act, type Failure, type Me } from './api.js';
import { time } from './clock.js';
import { accountLine, accountTokenLine, type Account, type AccountToken } from './duty.js';
import { useGot } from './follow.js';
import { inOrder } from './forms.js';
import { parseLength, parseTime, stampOf } from './grammar.js';
import { at } from './life.js';
import { Command, Trouble, Waiting } from './parts.js';
import { words } from './words.js';

const w = words.accounts;
const scopes = Object.keys(w.scopes) as (keyof typeof w.scopes)[];
const ranks = ['viewer', 'user', 'operator'] as const;

/** Accounts lists the service accounts of a user with their tokens, and makes, renews and removes them. A secret is in one answer alone: it is shown until it is put away. */
export function Accounts({ me, zone, onEnded }: { me: Me; zone: string; onEnded: () => void }) {
  const got = useGot<{ service_accounts: Account[] }>('v1/service-accounts', 0, onEnded);
  const [form, setForm] = useState<{ name: string; role: string; note: string } | null>(null);
  const [asking, setAsking] = useState(''); // for which account a token is asked for
  const [secret, setSecret] = useState<AccountToken | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [done, setDone] = useState('');
  const [busy, setBusy] = useState(false);
  const top = useRef<HTMLDivElement>(null);
  const here = () => top.current?.focus();
  const send = <T,>(method: 'POST' | 'DELETE', path: string, body: object | null, then: (answer: T | null) => void) => {
    setBusy(true);
    setFailure(null);
    setDone('');
    act<T>(method, path, body).then((answer) => {
      then(answer);
      got.again();
      here();
    }, (e: Failure) => { if (e.problem?.status === 401) onEnded(); else setFailure(e); }).finally(() => setBusy(false));
  };
  const path = (a: Account) => `v1/service-accounts/${encodeURIComponent(a.name)}`;
  const wanted = form && { name: form.name.trim(), role: form.role, ...(form.note.trim() && { note: form.note.trim() }) };
  const named = wanted !== null && /^svc-./.test(wanted.name);
  const list = got.value?.service_accounts ?? [];
  return (
    <Stack gap="sm" component="section" aria-label={w.title} data-testid="accounts" ref={top} tabIndex={-1}>
      <Title order={3} size="h5">{w.title}</Title>
      <Text size="sm">{w.about}</Text>
      {secret && (
        <Alert color="green" variant="light" role="alert" title={w.made(secret.user)} data-testid="account-secret">
          <Text size="sm">{w.once}</Text>
          <Group gap={6} my={6}>
            <code className="named">{secret.secret}</code>
            <CopyButton value={secret.secret ?? ''}>{({ copied, copy }) => <Button size="compact-xs" variant="default" aria-label={w.copy} onClick={copy}>{copied ? 'Copied' : 'Copy'}</Button>}</CopyButton>
          </Group>
          <Button size="compact-sm" variant="default" onClick={() => { setSecret(null); here(); }}>{w.putAway}</Button>
        </Alert>
      )}
      <Trouble failure={failure} />
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      {!got.value && !got.failure && <Waiting height={60} />}
      {got.value && list.length === 0 && <Text size="sm" c="dimmed">{w.none}</Text>}
      {list.map((a) => (
        <Paper key={a.name} withBorder p="xs" component="section" aria-label={w.of(a.name)} data-account={a.name}>
          <Group justify="space-between" gap="xs" align="start">
            <Group gap="2px 10px" miw={0}>
              <Text size="sm" fw={600} className="named">{a.name}</Text>
              <Text size="sm" c="dimmed" className="named">{[a.role, a.note, a.owner !== me.user && w.ownedBy(a.owner), a.sites && w.at(a.sites.join(', '))].filter(Boolean).join(', ')}</Text>
            </Group>
            <Group gap={4}>
              <Button size="compact-xs" variant="default" aria-expanded={asking === a.name} aria-label={`${w.newToken}: ${a.name}`} onClick={() => { setAsking(asking === a.name ? '' : a.name); setSecret(null); }}>{w.newToken}</Button>
              <Twice what={w.remove} sure={w.sureRemove} name={a.name} onSure={() => send('DELETE', path(a), null, () => setDone(w.removed(a.name)))} />
            </Group>
          </Group>
          {a.tokens.length === 0 && <Text size="xs" c="dimmed">{w.noToken}</Text>}
          {a.tokens.map((t) => (
            <Group key={t.id} justify="space-between" gap="xs" mt={4} align="start" data-token={t.id}>
              <Text size="xs" className="named" style={{ flex: 1, minWidth: 160 }}>{w.token(t.id, t.note ?? '', t.scopes ? t.scopes.map((s) => (w.scopes as Record<string, string>)[s] ?? s).join(', ') : '', t.expires ? time(at(t.expires), zone) : '')}</Text>
              <Group gap={4} wrap="nowrap">
                <Button size="compact-xs" variant="default" disabled={busy} aria-label={`${w.renew}: ${a.name} ${t.id}`} onClick={() => send<AccountToken>('POST', `${path(a)}/tokens`, { renews: t.id }, (made) => { setSecret(made); setDone(w.renewed(t.id)); })}>{w.renew}</Button>
                <Twice what={w.revoke} sure={w.sureRevoke} name={`${a.name} ${t.id}`} onSure={() => send('DELETE', `${path(a)}/tokens/${encodeURIComponent(t.id)}`, null, () => setDone(w.revoked(t.id)))} />
              </Group>
            </Group>
          ))}
          {asking === a.name && <NewToken account={a} zone={zone} busy={busy} onShut={() => { setAsking(''); here(); }} onSend={(body) => send<AccountToken>('POST', `${path(a)}/tokens`, body, (made) => { setSecret(made); setAsking(''); })} />}
        </Paper>
      ))}
      <Text size="sm" role="status" className="said">{done}</Text>
      {form && wanted ? (
        <Paper withBorder p="sm" component="form" aria-label={w.make} onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (named && !busy) send<Account>('POST', 'v1/service-accounts', wanted, (made) => { setForm(null); setDone(w.isMade(made!.name)); setAsking(made!.name); }); }}>
          <Stack gap="xs">
            <Group gap="md" align="start" className="fields">
              <TextInput label={w.name} size="xs" w={170} autoFocus autoComplete="off" value={form.name} onChange={(e) => setForm({ ...form, name: e.currentTarget.value })} error={form.name.trim() !== '' && !named && form.name.trim() !== 'svc-' && w.badName(form.name.trim())} description={w.nameAbout} inputWrapperOrder={inOrder} />
              <Select label={w.role} size="xs" w={120} data={ranks.slice(0, ranks.indexOf(me.role) + 1)} value={form.role} onChange={(v) => v && setForm({ ...form, role: v })} allowDeselect={false} />
              <TextInput label={w.note} size="xs" w={200} autoComplete="off" value={form.note} onChange={(e) => setForm({ ...form, note: e.currentTarget.value })} description={w.noteAbout} inputWrapperOrder={inOrder} />
            </Group>
            {named && <Command line={accountLine(wanted)} />}
            <Group gap="xs"><Button type="submit" size="compact-sm" loading={busy} disabled={!named}>{w.makeIt}</Button><Button size="compact-sm" variant="default" onClick={() => { setForm(null); here(); }}>{w.makeNone}</Button></Group>
          </Stack>
        </Paper>
      ) : <Group><Button size="compact-sm" variant="default" onClick={() => { setForm({ name: 'svc-', role: 'user', note: '' }); setSecret(null); }}>{w.make}</Button></Group>}
      <Command line="berth service-account list" />
    </Stack>
  );
}

/** NewToken asks what a token of an account is good for. */
function NewToken({ account, zone, busy, onShut, onSend }: { account: Account; zone: string; busy: boolean; onShut: () => void; onSend: (body: object) => void }) {
  const [f, set] = useState({ note: '', expires: '90d', scopes: [] as string[] });
  const now = Math.floor(Date.now() / 1000);
  const lasts = parseLength(f.expires);
  const until = lasts !== null ? now + lasts : parseTime(f.expires, now, zone);
  const bad = f.expires.trim() === '' ? false : until === null ? w.badExpires(f.expires) : until <= now && w.overExpires;
  const wanted = { ...(f.note.trim() && { note: f.note.trim() }), ...(until !== null && { expires: stampOf(until) }), ...(f.scopes.length > 0 && { scopes: f.scopes }) };
  const ready = !bad && (until !== null || f.expires.trim() === '');
  return (
    <Paper withBorder p="sm" mt="xs" component="form" aria-label={`${w.newToken}: ${account.name}`} onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (ready && !busy) onSend(wanted); }}>
      <Stack gap="xs">
        <Group gap="md" align="start">
          <TextInput label={w.note} size="xs" w={200} autoFocus autoComplete="off" value={f.note} onChange={(e) => set({ ...f, note: e.currentTarget.value })} description={w.noteAbout} inputWrapperOrder={inOrder} />
          <TextInput label={w.expires} size="xs" w={220} autoComplete="off" value={f.expires} onChange={(e) => set({ ...f, expires: e.currentTarget.value })} error={bad} description={until === null ? w.expiresAbout : `${time(until, zone)} ${zone}`} inputWrapperOrder={inOrder} />
        </Group>
        <fieldset className="bare"><legend>{w.goodFor}</legend>
          <Group gap="0 14px">{scopes.map((s) => <label key={s} className="choice"><input type="checkbox" checked={f.scopes.includes(s)} onChange={() => set({ ...f, scopes: scopes.filter((x) => (x === s ? !f.scopes.includes(s) : f.scopes.includes(x))) })} /> {w.scopes[s]}</label>)}</Group>
        </fieldset>
        {ready && <Command line={accountTokenLine(account.name, wanted)} />}
        <Group gap="xs"><Button type="submit" size="compact-sm" loading={busy} disabled={!ready}>{w.makeToken}</Button><Button size="compact-sm" variant="default" onClick={onShut}>{w.makeNone}</Button></Group>
      </Stack>
    </Paper>
  );
}

/** Twice takes a second press: what uses it stops at once. */
function Twice({ what, sure, name, onSure }: { what: string; sure: string; name: string; onSure: () => void }) {
  const [asked, setAsked] = useState(false);
  const label = asked ? sure : what;
  return <Button className="whole" size="compact-xs" variant="default" color="red" onClick={() => { setAsked(!asked); if (asked) onSure(); }} onBlur={() => setAsked(false)} aria-label={`${label}: ${name}`}>{label}</Button>;
}
