import { Alert, Button, CopyButton, Group, Select, Stack, Table, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { act, type Failure, type Me } from './api.js';
import { time } from './clock.js';
import { feedLine } from './duty.js';
import { useGot } from './follow.js';
import { at } from './life.js';
import { Command, Stamp, Trouble, Waiting } from './parts.js';
import { words } from './words.js';

const w = words.feeds;

interface Feed { id: string; user: string; site?: string; note?: string; created: string; used?: string }

/** Feeds makes calendar feeds, and lists and revokes those there are. The address of one is in the answer alone: it is shown until it is put away or the page is left. */
export function Feeds({ me, sites, zone, onEnded }: { me: Me; sites: string[]; zone: string; onEnded: () => void }) {
  const got = useGot<{ feeds: Feed[] }>('v1/feeds', 0, onEnded);
  const [site, setSite] = useState('');
  const [note, setNote] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [address, setAddress] = useState<string | null>(null);
  const failed = (e: Failure) => { if (e.problem.status === 401) onEnded(); else setFailure(e); };
  const make = () => {
    setBusy(true);
    setFailure(null);
    act<Feed & { url?: string; path: string }>('POST', 'v1/feeds', { ...(site && { site }), ...(note.trim() && { note: note.trim() }) }).then((f) => {
      if (f) setAddress(f.url ?? new URL(`.${f.path}`, document.baseURI).href);
      setNote('');
      got.again();
    }, failed).finally(() => setBusy(false));
  };
  const everybody = got.value?.feeds.some((f) => f.user !== me.user);
  const stamp = (t: string) => <Stamp of={time(at(t), zone)} />;
  return (
    <Stack gap="sm" data-testid="feeds">
      <Text size="sm">{w.about}</Text>
      {address && (
        <Alert color="green" variant="light" role="alert" title={w.made} data-testid="address">
          <Text size="sm">{w.once}</Text>
          <Group gap={6} my={6}>
            <code className="named">{address}</code>
            <CopyButton value={address}>{({ copied, copy }) => <Button size="compact-xs" variant="default" aria-label={w.copy} onClick={copy}>{copied ? 'Copied' : 'Copy'}</Button>}</CopyButton>
          </Group>
          <Button size="compact-sm" variant="default" onClick={() => setAddress(null)}>{w.putAway}</Button>
        </Alert>
      )}
      <Stack component="form" gap={8} aria-label={w.make} onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (!busy) make(); }}>
        <Group gap="sm" align="end">
          <Select label={w.shows} size="xs" w={200} data={[{ value: '', label: w.own }, ...sites.map((s) => ({ value: s, label: w.site(s) }))]} value={site} onChange={(v) => setSite(v ?? '')} allowDeselect={false} />
          <TextInput label={w.note} size="xs" w={180} autoComplete="off" value={note} onChange={(e) => setNote(e.currentTarget.value)} />
          <Button type="submit" size="xs" loading={busy}>{w.make}</Button>
        </Group>
        <Command line={feedLine(site, note.trim())} />
      </Stack>
      <Trouble failure={failure} />
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      {!got.value && !got.failure && <Waiting />}
      {got.value?.feeds.length === 0 && <Text size="sm" c="dimmed">{w.none}</Text>}
      {Boolean(got.value?.feeds.length) && (
        <Table aria-label={w.title} verticalSpacing={4} className="list">
          <Table.Thead><Table.Tr>{everybody && <Table.Th>User</Table.Th>}<Table.Th>{w.shows}</Table.Th><Table.Th>Made</Table.Th><Table.Th><span className="unseen">{w.revoke}</span></Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>
            {got.value!.feeds.map((f) => (
              <Table.Tr key={f.id} data-id={f.id}>
                {everybody && <Table.Td className="named">{f.user}</Table.Td>}
                <Table.Td className="named">{f.site ? w.site(f.site) : w.own}{f.note && <Text size="xs" className="named">{f.note}</Text>}</Table.Td><Table.Td>{stamp(f.created)}<Text size="xs" c="dimmed">{f.used ? <Stamp of={w.read(time(at(f.used), zone))} /> : w.never}</Text></Table.Td>
                <Table.Td ta="right"><Revoke feed={f} onDone={got.again} onFailed={failed} /></Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Stack>
  );
}

/** Revoke takes a second press: who reads the feed has nothing at once. */
function Revoke({ feed, onDone, onFailed }: { feed: Feed; onDone: () => void; onFailed: (e: Failure) => void }) {
  const [sure, setSure] = useState(false);
  const send = () => {
    if (!sure) return setSure(true);
    setSure(false);
    act('DELETE', `v1/feeds/${encodeURIComponent(feed.id)}`, null).then(onDone, onFailed);
  };
  const what = sure ? w.sure : w.revoke;
  return <Button size="compact-xs" variant="default" color="red" onClick={send} onBlur={() => setSure(false)} aria-label={`${what}: ${feed.note || (feed.site ? w.site(feed.site) : w.own)}`}>{what}</Button>;
}
