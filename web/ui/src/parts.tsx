// What several pages are made of.

import { Alert, Button, CopyButton, Group, Skeleton, Text } from '@mantine/core';
import { createContext, Fragment, useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import type { Failure } from './api.js';
import { time } from './clock.js';
import { text } from './text.js';
import { isZone } from './view.js';

/** Waiting has the shape of what comes, and is seen only if that takes long. */
export function Waiting({ height = 180 }: { height?: number }) {
  const [visible, setVisible] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setVisible(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return <div aria-busy="true" role="status" aria-label={text.loading} style={{ minHeight: height }}>{visible && <Skeleton height={height} radius="sm" />}</div>;
}

/** usePaper reports whether the page is being printed, in time for what is drawn anew for it. */
export function usePaper(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const paper = matchMedia('print');
    const change = () => flushSync(() => setPrinting(paper.matches)); // the page is printed as it is when this returns
    paper.addEventListener('change', change);
    return () => paper.removeEventListener('change', change);
  }, []);
  return printing;
}

/** Stamp is a time or a period that breaks between its date and its hours alone, and not at the dashes of a date. */
export const Stamp = ({ of }: { of: string }) => <span className="stamp">{of.split(/(?<=\d{4}-\d\d-\d\d) |(?<= –) (?=[A-Z])/).map((piece, i) => <Fragment key={i}>{i > 0 && ' '}<span>{piece}</span></Fragment>)}</span>;

const flagOf = (word: string) => word.match(/^--[^= ]{0,24}=?/)![0].length;

/** Line is a command; a line of the page breaks between its words, and not at the dashes of one that is short. */
export const Line = ({ of }: { of: string }) => (of.length > 1500 ? <code className="named brief-code">{of}</code> : <code className="named words">{of.split(' ').map((word, i) => <Fragment key={i}>{i > 0 && ' '}{word.length <= 32 ? <span>{word}</span> : word.startsWith('--') ? <><span>{word.slice(0, flagOf(word))}</span>{word.slice(flagOf(word))}</> : word}</Fragment>)}</code>);

interface Told { by: string; what: string; again: () => void }
const Board = createContext<{ told: Told[]; tell: (t: Told) => () => void } | null>(null);

/** Once is where the same trouble of several parts is told once, by the part that had it first. */
export function Once({ children }: { children: React.ReactNode }) {
  const [told, set] = useState<Told[]>([]);
  const tell = useCallback((t: Told) => {
    set((list) => [...list, t]);
    return () => set((list) => list.filter((o) => o !== t));
  }, []);
  return <Board value={useMemo(() => ({ told, tell }), [told, tell])}>{children}</Board>;
}

/** Trouble says what could not be asked, and that what is shown is old. What can be asked again is told once, and asked again with all that has the same trouble. */
export function Trouble({ failure, seen, zone, again }: { failure: Failure | null; seen?: number; zone?: string; again?: () => void }) {
  const by = useId();
  const board = useContext(Board);
  const what = failure ? `${failure.problem.title} ${failure.problem.detail} ${failure.problem.code}` : '';
  const how = useRef(again);
  how.current = again;
  const tell = again ? board?.tell : undefined;
  useLayoutEffect(() => (what !== '' ? tell?.({ by, what, again: () => how.current?.() }) : undefined), [tell, by, what]);
  if (!failure) return null;
  const same = tell ? board!.told.filter((t) => t.what === what) : [];
  const old = seen && zone ? text.asOf(time(seen, zone)) : '';
  if (tell && same[0]?.by !== by) return old ? <Text size="sm" c="dimmed">{old}</Text> : null;
  return (
    <Alert color="red" variant="light" title={failure.problem.title} role="alert">
      <Text size="sm" className="named">{failure.problem.detail} {failure.problem.code && <code>{failure.problem.code}</code>} {old}</Text>
      {again && <Button mt="xs" size="compact-sm" variant="default" onClick={() => (same.length > 0 ? same.forEach((t) => t.again()) : again())}>{text.retry}</Button>}
    </Alert>
  );
}

/** Command is a line to copy. */
export function Command({ line, label = 'As a command' }: { line: string; label?: string }) {
  return (
    <Group gap={6} wrap="nowrap" align="start">
      <Text size="sm" style={{ minWidth: 0 }}><span className="faint">{label}:</span> <Line of={line} /></Text>
      <CopyButton value={line}>
        {({ copied, copy }) => <Button size="compact-xs" variant="default" style={{ flexShrink: 0 }} aria-label={`Copy: ${line}`} onClick={copy}>{copied ? 'Copied' : 'Copy'}</Button>}
      </CopyButton>
    </Group>
  );
}

const kinds: Record<string, string> = {
  held: 'blue', confirmed: 'blue', active: 'green', degraded: 'orange', failed: 'red', refused: 'red', lost: 'red',
  running: 'green', completed: 'green', timeout: 'orange', node_fail: 'red', ok: 'green', up: 'green', warning: 'orange', draining: 'orange', drained: 'orange', error: 'red', down: 'red',
};

/** State is a word in a box of its colour; the word alone says it. */
export const State = ({ of, words = of }: { of: string; words?: string }) => <span className={`state ${kinds[of] ?? 'gray'}`}>{words}</span>;

/** usualZone is the zone of the page's address, if there is one of that name, else the browser's. */
export function usualZone(): string {
  const wanted = new URLSearchParams(location.search).get('tz') ?? '';
  return wanted !== '' && isZone(wanted) ? wanted : Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
}
