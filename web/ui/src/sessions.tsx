import { Badge, Button, Divider, Group, Paper, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Accounts } from './accounts.js';
import { act, type Failure, type Me } from './api.js';
import { time } from './clock.js';
import { useGot } from './follow.js';
import { at } from './life.js';
import { agentOf } from './names.js';
import { Command, Stamp, Trouble, Waiting } from './parts.js';
import { words } from './words.js';

const w = words.sessions;

interface Session { id: string; user: string; way: string; created: string; used: string; expires: string; address?: string; agent?: string; scopes?: string[]; current?: boolean }

/** Sessions lists where a user is logged in, and ends one, or all but this. */
export default function Sessions({ me, zone, onEnded }: { me: Me; zone: string; onEnded: () => void }) {
  const got = useGot<{ sessions: Session[] }>(`v1/sessions?user=${encodeURIComponent(me.user)}`, 0, onEnded);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [done, setDone] = useState('');
  const end = (path: string, what: string) => {
    setFailure(null);
    setDone('');
    act('DELETE', path, null).then(() => {
      setDone(what);
      got.again();
    }, (e: Failure) => { if (e.problem.status === 401) onEnded(); else setFailure(e); });
  };
  const list = got.value?.sessions ?? [];
  const stamp = (t: string) => <Stamp of={time(at(t), zone)} />;
  return (
    <Stack gap="md">
    <Stack gap="sm" data-testid="sessions">
      <Text size="sm">{w.about}</Text>
      <Trouble failure={failure} />
      <Trouble failure={got.failure} seen={got.seen} zone={zone} again={got.again} />
      {!got.value && !got.failure && <Waiting height={120} />}
      {list.map((s) => {
        const name = s.agent ? agentOf(s.agent) : w.unknown;
        return (
          <Paper key={s.id} withBorder p="xs" component="section" aria-label={w.of(name, s.address ?? '')} data-id={s.id}>
            <Group justify="space-between" gap="xs" wrap="nowrap" align="start">
              <Group gap="2px 10px" miw={0}>
                <Text size="sm" fw={600} className="named" title={s.agent}>{name}</Text>
                {s.address && <Text size="sm" className="named">{w.from(s.address)}</Text>}
                {s.current && <Badge size="sm" variant="outline" tt="none" color="blue">{w.current}</Badge>}
              </Group>
              {!s.current && <End name={`${name} ${s.address ?? ''}`.trim()} onEnd={() => end(`v1/sessions/${encodeURIComponent(s.id)}`, w.ended)} />}
            </Group>
            <Text size="xs" c="dimmed">{w.opened(w.ways[s.way] ?? s.way)} {stamp(s.created)}, {w.used} {stamp(s.used)}, {w.expires} {stamp(s.expires)}</Text>
            {s.scopes && <Text size="xs" c="dimmed">{w.scopes(s.scopes.join(', '))}</Text>}
          </Paper>
        );
      })}
      <Text size="sm" role="status" className="said">{done}</Text>
      {list.some((s) => !s.current) && <Group><End name="" onEnd={() => end(`v1/sessions?user=${encodeURIComponent(me.user)}`, w.endedOthers)} /></Group>}
      <Command line="berth session list" />
    </Stack>
    {me.role !== 'viewer' && <><Divider /><Accounts me={me} zone={zone} onEnded={onEnded} /></>}
    </Stack>
  );
}

/** End takes a second press: who uses the session is logged out at once. Without a name it ends all others. */
function End({ name, onEnd }: { name: string; onEnd: () => void }) {
  const [sure, setSure] = useState(false);
  const send = () => {
    if (!sure) return setSure(true);
    setSure(false);
    onEnd();
  };
  const what = name === '' ? (sure ? w.sureOthers : w.endOthers) : sure ? w.sure : w.end;
  return <Button className="whole" size={name === '' ? 'compact-sm' : 'compact-xs'} variant="default" color="red" onClick={send} onBlur={() => setSure(false)} aria-label={name === '' ? what : `${what}: ${name}`}>{what}</Button>;
}
