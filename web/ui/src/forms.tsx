// What the forms of drawers are made of.

import { Button, Group, Paper, Stack } from '@mantine/core';
import { words } from './words.js';

export interface FormProps { busy: boolean; onShut: () => void }

/** Formed is a form that asks for one thing, in a drawer. */
export function Formed({ name, send, ready, busy, onShut, children, onSubmit }: FormProps & { name: string; send: string; ready: boolean; children: React.ReactNode; onSubmit: () => void }) {
  return (
    <Paper withBorder p="sm" component="form" aria-label={name} onSubmit={(e: React.FormEvent) => { e.preventDefault(); if (ready && !busy) onSubmit(); }}>
      <Stack gap="xs">
        {children}
        <Group gap="xs"><Button type="submit" size="compact-sm" loading={busy} disabled={!ready}>{send}</Button><Button size="compact-sm" variant="default" onClick={onShut}>{words.promises.close}</Button></Group>
      </Stack>
    </Paper>
  );
}

/** inOrder has what is understood below a field, before what is wrong. */
export const inOrder: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error'];
