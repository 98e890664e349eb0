import { ActionIcon, Alert, Anchor, Badge, Button, Drawer, Group, Kbd, Modal, Paper, Popover, ScrollArea, Select, Stack, Table, Text, TextInput, Title, Tooltip } from '@mantine/core';
import { memo, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { bytes, Failure, get, now, type Me, type Occupied, type Rows, type Site, type Span } from './api.js';
import { length, time } from './clock.js';
import { csvOf, type Sheet, svgOf } from './export.js';
import { type Fetched, filters, filterToSend, maskOf, queryOf, type State, states } from './filter.js';
import { about, begins, capital, Gantt } from './gantt.js';
import { parseTime } from './grammar.js';
import { listen } from './live.js';
import { spanned, useNamed, whoAt } from './names.js';
import { fills, type Theme } from './palette.js';
import { Command, Stamp, Trouble, Waiting } from './parts.js';
import { Flag, parse, type Picture } from './picture.js';
import { text } from './text.js';
import { frozen, least, most, moving, normal, readView, writeView, type View } from './view.js';

/** useView keeps what is looked at in the address of the page. */
function useView(): [View, (change: Partial<View>) => void, string[]] {
  const [{ view, wrong }, set] = useState(() => readView(location.search));
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    const back = () => {
      clearTimeout(timer.current); // what was to be written is of the address before
      set(readView(location.search));
    };
    addEventListener('popstate', back);
    return () => removeEventListener('popstate', back);
  }, []);
  const change = useCallback((c: Partial<View>) => {
    set((was) => {
      const next = { ...was.view, ...c };
      clearTimeout(timer.current);
      timer.current = setTimeout(() => history.replaceState(null, '', location.pathname + writeView(next)), 200); // browsers bound how often
      return { view: next, wrong: [] };
    });
  }, []);
  return [view, change, wrong];
}

interface PoolState {
  picture: Picture | null;
  rows: Rows | null;
  failure: Failure | null;
  seen: number; // when it was fetched
}

/** usePool fetches the picture of a pool: the window and half of it on each side, again when it is stale, at most twice a second. Shades are those of a filter. */
export function usePool(site: string, pool: string, from: number, to: number, stale: number, filter = ''): PoolState & { retry: () => void } {
  const [state, set] = useState<PoolState>({ picture: null, rows: null, failure: null, seen: 0 });
  const [again, setAgain] = useState(0);
  const fetched = useRef({ from: 0, to: 0, stale: -1, again: 0, at: 0, span: 0, how: null as Fetched | null });
  const query = `site=${encodeURIComponent(site)}&pool=${encodeURIComponent(pool)}`;
  useEffect(() => {
    get<Rows>(`v1/gantt/rows?${query}`).then((rows) => set((s) => ({ ...s, rows })), () => undefined); // without them rows are called by number
  }, [query, again]);
  useEffect(() => {
    const f = fetched.current;
    const span = to - from;
    const { send, again: other } = filterToSend(f.how, filter);
    if (from >= f.from && to <= f.to && stale === f.stale && again === f.again && span > f.span / 4 && !other) return;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      const grain = Math.max(60, 2 ** Math.floor(Math.log2(span / 8)));
      const a = Math.floor((from - span / 2) / grain) * grain;
      const b = Math.ceil((to + span / 2) / grain) * grain;
      const stamp = (at: number) => new Date(at * 1000).toISOString().slice(0, 19) + 'Z';
      try {
        const ask = async (filter: string) => parse(await bytes(`v1/gantt?${query}&from=${stamp(a)}&to=${stamp(b)}${filter}`, abort.signal));
        let how = send;
        let picture = await ask(how);
        if (picture.cells && how === '' && filter !== '') picture = await ask((how = filter));
        fetched.current = { from: a, to: b, stale, again, at: Date.now(), span, how: { filter: how, shades: picture.cells !== null } };
        set((s) => ({ ...s, picture: { ...picture, own: how.includes('owner=mine') }, failure: null, seen: now() }));
      } catch (e) {
        if (abort.signal.aborted) return;
        set((s) => ({ ...s, failure: e instanceof Failure ? e : new Failure({ status: 0, title: 'The picture cannot be read', detail: String(e), code: '' }) }));
      }
    }, Math.max(f.at === 0 ? 0 : 60, f.at + 500 - Date.now()));
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [query, from, to, stale, again, filter]);
  return { ...state, retry: () => setAgain((n) => n + 1) };
}

/** useLive knows the sites, hears what changes, and has the time of the service. stale counts changes by site/pool; '' is of all. */
export function useLive(onEnded: () => void) {
  const [sites, setSites] = useState<Site[] | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [live, setLive] = useState(true);
  const [clock, setClock] = useState(now);
  const [stale, setStale] = useState<Record<string, number>>({});
  const look = useCallback(() => {
    get<{ sites: Site[] }>('v1/sites').then(
      (s) => {
        setSites(s.sites);
        setFailure(null);
      },
      (e: Failure) => {
        if (e.problem?.status === 401) onEnded();
        else setFailure(e);
      },
    );
  }, [onEnded]);

  const looking = useRef<ReturnType<typeof setTimeout>>(undefined);
  const lookSoon = useCallback(() => {
    if (looking.current) return;
    looking.current = setTimeout(() => {
      looking.current = undefined;
      look();
    }, 1000);
  }, [look]);

  useEffect(look, [look]);
  useEffect(() => {
    const tick = setInterval(() => setClock(now()), 5000);
    return () => clearInterval(tick);
  }, []);
  useEffect(() => { // how many PEs are free changes with the time too
    const tick = setInterval(() => document.visibilityState === 'visible' && look(), 15000);
    return () => clearInterval(tick);
  }, [look]);
  useEffect(() => {
    const touch = (key: string) => setStale((s) => ({ ...s, [key]: (s[key] ?? 0) + 1 }));
    const changed = (o: Occupied) => {
      touch(`${o.site}/${o.pool}`);
      if (o.from === o.to) look(); // the site answers no more, or again
      else lookSoon();
    };
    return listen((h) => {
      if (h.kind === 'occupied') changed(h.occupied);
      else if (h.kind === 'open') {
        setLive(true);
        touch('');
        lookSoon();
      } else if (h.kind === 'lost') setLive(false);
      else if (h.kind === 'ended') onEnded();
    });
  }, [look, lookSoon, onEnded]);
  useEffect(() => {
    if (live) return;
    const poll = setInterval(() => {
      setStale((s) => ({ ...s, '': (s[''] ?? 0) + 1 }));
      look();
    }, 15000);
    return () => clearInterval(poll);
  }, [live, look]);
  return { sites, live, stale, failure, look, clock };
}

const heading = <Title order={1} size="h3">{text.title}</Title>;

export function Harbour({ me, theme, onLive, onEnded }: { me: Me; theme: Theme; onLive: (live: boolean) => void; onEnded: () => void }) {
  const [view, change, wrong] = useView();
  const { sites, live, stale, failure, look, clock } = useLive(onEnded);
  const [open, setOpen] = useState(view.selected !== '');
  const [dialog, setDialog] = useState<Dialog>('');
  const [said, setSaid] = useState('');
  const words = useRef<HTMLInputElement>(null);
  const sheets = useRef(new Map<string, Sheet>());
  const zone = view.zone || Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

  useEffect(() => onLive(live), [live, onLive]);

  const from = view.following ? clock + view.from : view.from;
  const to = view.following ? clock + view.to : view.to;
  const window_ = useCallback(
    (a: number, b: number) => {
      const span = Math.round(Math.max(least, Math.min(most, b - a)));
      const start = Math.round((a + b) / 2 - span / 2);
      change({ following: false, from: start, to: start + span }); // of the same length when it moves, so that pixels can be moved
    },
    [change],
  );
  const zoom = (factor: number) => {
    const middle = (from + to) / 2;
    window_(middle + (from - middle) * factor, middle + (to - middle) * factor);
  };
  const goNow = () => {
    const span = Math.round((to - from) / 60) * 60;
    const back = Math.round(span / 12 / 60) * 60;
    change({ following: true, from: -back, to: span - back });
  };
  const key = (k: string) => {
    if (k === '0') change({ following: true, from: normal.from, to: normal.to });
    else if (k === 'n') goNow();
    else if (k === 'm') change({ owner: view.owner === 'mine' ? '' : 'mine' });
    else if (k === 't') change({ table: !view.table });
    else if (k === 'g') setDialog('time');
    else if (k === '/') words.current?.focus();
    else if (k === '?') setDialog('keys');
    else if (k === 'Escape') {
      setOpen(false);
      change({ selected: '' });
    }
  };

  useEffect(() => { // anywhere on the page
    const find = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
        e.preventDefault();
        setDialog('find');
      }
    };
    addEventListener('keydown', find);
    return () => removeEventListener('keydown', find);
  }, []);

  const save = (kind: 'svg' | 'csv') => {
    const list = chosen.flatMap((s) => s.pools.map((p) => sheets.current.get(`${s.name}/${p.name}`))).filter((s): s is Sheet => s !== undefined);
    const frame = { from, to, zone, now: clock };
    const data = kind === 'svg' ? svgOf(list, frame) : csvOf(list, frame);
    const a = document.createElement('a');
    a.href = URL.createObjectURL(new Blob([data], { type: kind === 'svg' ? 'image/svg+xml' : 'text/csv' }));
    a.download = `berth-${new Date(clock * 1000).toISOString().slice(0, 16).replace(':', '')}.${kind}`;
    a.click();
    URL.revokeObjectURL(a.href);
    const bars = list.reduce((sum, s) => sum + s.picture.count, 0);
    setSaid(list.some((s) => s.picture.cells) && kind === 'csv' ? text.share.cells : text.share.saved(a.download, bars));
  };

  const zones = useMemo(() => {
    const browser = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
    return [...new Set([browser, 'UTC', ...Intl.supportedValuesOf('timeZone')])];
  }, []);
  // What the toolbar shows stays the same while the window moves, so that a move redraws the picture alone.
  const { site: siteName, following, owner, states: chosenStates, words: wanted, table } = view;
  const shownView = useMemo(() => ({ site: siteName, following, owner, states: chosenStates, words: wanted, table }), [siteName, following, owner, chosenStates, wanted, table]);
  const acts = useRef<Acts>(null!);
  acts.current = { change, key, goNow, zoom, move: (by) => window_(from + by * (to - from), to + by * (to - from)), save, said: setSaid, open: setOpen, dialog: setDialog, at: (t) => window_(t - (to - from) / 2, t + (to - from) / 2), link: (how) => location.origin + location.pathname + writeView(how === 'moving' ? moving(view, clock) : frozen(view, clock)) };
  const act = useMemo<Acts>(() => ({
    change: (c) => acts.current.change(c), key: (k) => acts.current.key(k), goNow: () => acts.current.goNow(), zoom: (f) => acts.current.zoom(f), move: (by) => acts.current.move(by),
    save: (k) => acts.current.save(k), said: (t) => acts.current.said(t), open: (o) => acts.current.open(o), dialog: (d) => acts.current.dialog(d), at: (t) => acts.current.at(t), link: (h) => acts.current.link(h),
  }), []);
  const chosen = sites?.filter((s) => view.site === '' || s.name === view.site) ?? [];
  const selected = useMemo(() => {
    const cut = view.selected.lastIndexOf('/');
    return cut < 0 ? null : { site: view.selected.slice(0, cut), number: Number(view.selected.slice(cut + 1)) };
  }, [view.selected]);

  return (
    <Stack gap="sm">
      <Group justify="space-between" align="end" gap="sm">
        <div>
          {heading}
          <Text size="sm" c="dimmed" data-testid="window">
            {time(from, zone)} – {time(to, zone)}, {zone}{view.following ? ', following' : ''}
          </Text>
        </div>
        <Toolbar view={shownView} sites={sites} zone={zone} zones={zones} act={act} words={words} />
      </Group>
      <Legend theme={theme} />
      {said && <Text size="sm" role="status" data-testid="said">{said}</Text>}
      <p className="print-only">Berth, {time(from, zone)} to {time(to, zone)}, {zone}. Printed at {time(clock, zone)}.</p>
      {wrong.length > 0 && <Alert color="yellow" variant="light">{text.badLink(wrong.join(', '))}</Alert>}
      {!live && <Alert color="orange" variant="light" role="status">{text.notLive}</Alert>}
      <Trouble failure={failure} again={look} />
      {!sites && !failure && <Waiting />}
      {sites?.length === 0 && <Alert color="gray" title={text.noSites.title}>{me.role === 'operator' ? text.noSites.operator : text.noSites.user}</Alert>}
      {sites && sites.length > 0 && chosen.length === 0 && (
        <Alert color="gray" title={text.noSuchSite(view.site)}>
          <Button size="compact-sm" variant="default" onClick={() => change({ site: '' })}>{text.allSites}</Button>
        </Alert>
      )}
      {chosen.map((s) => (
        <section key={s.name} aria-label={`Site ${s.name}`}>
          <SiteHead site={s} />
          <Stack gap="sm" className={s.reachable || s.starting ? undefined : 'away'}>
            {s.pools.map((p) => (
              <PoolPanel key={p.name} site={s} pool={p} me={me} view={view} from={from} to={to} clock={clock} zone={zone} theme={theme}
                stale={(stale[`${s.name}/${p.name}`] ?? 0) + (stale[''] ?? 0)} selected={selected?.site === s.name ? selected.number : -1}
                onWindow={window_} onSelect={(n) => change({ selected: n < 0 ? '' : `${s.name}/${n}` })} onOpen={() => setOpen(true)} onKey={key} change={change} sheets={sheets.current} />
            ))}
          </Stack>
        </section>
      ))}
      <p id="gantt-help" className="unseen">Arrow keys go from bar to bar, Enter shows details, plus and minus zoom, t shows a table, question mark lists the keys.</p>
      <Dialogs dialog={dialog} details={open} selected={selected} sites={sites} clock={clock} zone={zone} stale={stale} me={me} act={act} />
    </Stack>
  );
}

interface Acts {
  change: (c: Partial<View>) => void; key: (k: string) => void; goNow: () => void; zoom: (factor: number) => void; move: (by: number) => void;
  save: (kind: 'svg' | 'csv') => void; said: (text: string) => void; open: (details: boolean) => void; dialog: (which: Dialog) => void; at: (time: number) => void;
  link: (how: 'moving' | 'frozen') => string;
}

type Dialog = '' | 'keys' | 'time' | 'find';

const SiteHead = memo(function SiteHead({ site }: { site: Site }) {
  return (
    <Group gap="xs" mb={4}>
      <Title order={2} size="h4" className="named brief" title={site.name}>{site.name}</Title>
      {site.adapter && <Text size="sm" c="dimmed">{site.adapter}</Text>}
      {site.starting ? <Badge color="gray" variant="light" tt="none">{text.starting}</Badge> : !site.reachable && <Badge color="orange" variant="filled" autoContrast tt="none">{text.unreachable}</Badge>}
      {site.shadow && <Badge color="gray" variant="light" tt="none">{text.watched}</Badge>}
      {site.trouble && <Text size="sm" className="named">{site.trouble}</Text>}
    </Group>
  );
});

interface DialogsProps {
  dialog: Dialog; details: boolean; selected: { site: string; number: number } | null; sites: Site[] | null; clock: number; zone: string; stale: Record<string, number>; me: Me; act: Acts;
}

/** Dialogs are what opens over the page. */
const Dialogs = memo(function Dialogs({ dialog, details, selected, sites, clock, zone, stale, me, act }: DialogsProps) {
  return (
    <>
      <Drawer lockScroll={false} opened={details && selected !== null} onClose={() => act.open(false)} position="right" size="md" title="Details" overlayProps={{ backgroundOpacity: 0.08 }} closeButtonProps={{ 'aria-label': 'Close' }}>
        {selected && <Details site={selected.site} number={selected.number} zone={zone} stale={stale} me={me} />}
      </Drawer>
      <Modal lockScroll={false} opened={dialog === 'time'} onClose={() => act.dialog('')} title={text.goTo.title} closeButtonProps={{ 'aria-label': 'Close' }}>
        <GoTo clock={clock} zone={zone} onTime={(at) => { act.dialog(''); act.at(at); }} />
      </Modal>
      <Modal lockScroll={false} opened={dialog === 'find'} onClose={() => act.dialog('')} title={text.find.title} closeButtonProps={{ 'aria-label': 'Close' }}>
        <Find sites={sites ?? []} onFound={(c, open) => { act.dialog(''); act.change(c); if (open && c.selected) act.open(true); }} />
      </Modal>
      <Modal lockScroll={false} opened={dialog === 'keys'} onClose={() => act.dialog('')} title="Keys, while the picture has the focus" closeButtonProps={{ 'aria-label': 'Close' }}>
        <Table><Table.Tbody>{text.help.map(([k, what]) => <Table.Tr key={k}><Table.Td className="whole"><Kbd>{k}</Kbd></Table.Td><Table.Td>{what}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
      </Modal>
    </>
  );
});

type Shown = Pick<View, 'site' | 'following' | 'owner' | 'states' | 'words' | 'table'>;

const Toolbar = memo(function Toolbar({ view, sites, zone, zones, act, words }: { view: Shown; sites: Site[] | null; zone: string; zones: string[]; act: Acts; words: React.RefObject<HTMLInputElement | null> }) {
  return (
        <Group gap="xs" className="no-paper tools">
          <Group gap={4} role="group" aria-label="Window of time">
            <Tool label="Earlier" sign="‹" act={() => act.move(-0.5)} />
            <Button size="compact-sm" variant={view.following ? 'light' : 'default'} onClick={act.goNow} aria-pressed={view.following}>Now</Button>
            <Tool label="Later" sign="›" act={() => act.move(0.5)} />
            <Tool label="Zoom in" sign="+" act={() => act.zoom(0.5)} />
            <Tool label="Zoom out" sign="−" act={() => act.zoom(2)} />
            <Tool label="A day, 0" sign="0" act={() => act.key('0')} />
          </Group>
          <Select size="xs" w={150} aria-label="Site" data={[{ value: '', label: text.allSites }, ...(sites ?? []).map((s) => ({ value: s.name, label: s.name }))]} value={view.site} onChange={(v) => act.change({ site: v ?? '' })} allowDeselect={false} comboboxProps={{ withinPortal: true }} />
          <Select size="xs" w={170} aria-label="Time zone" searchable limit={60} data={zones} value={zone} onChange={(v) => v && act.change({ zone: v })} />
          <Filters view={view} change={act.change} words={words} />
          <Button size="compact-sm" variant="default" aria-pressed={view.table} onClick={() => act.change({ table: !view.table })}>{view.table ? 'Picture' : 'Table'}</Button>
          <Share act={act} />
          <Tool label="Keys" sign="?" act={() => act.dialog('keys')} />
        </Group>
  );
});

/** useEscape has Escape close what a button has opened, wherever the focus is, which goes back to the button. */
function useEscape(open: boolean, setOpen: (open: boolean) => void) {
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    const escape = (e: KeyboardEvent) => {
      if (e.key !== 'Escape') return;
      e.stopPropagation();
      setOpen(false);
      opener.current?.focus();
    };
    addEventListener('keydown', escape, true);
    return () => removeEventListener('keydown', escape, true);
  }, [open, setOpen]);
  return opener;
}

/** Filters are what is left out: owner, states, words. */
function Filters({ view, change, words }: { view: Shown; change: (c: Partial<View>) => void; words: React.RefObject<HTMLInputElement | null> }) {
  const [open, setOpen] = useState(false);
  const opener = useEscape(open, setOpen);
  const toggle = (s: State) => change({ states: view.states.includes(s) ? view.states.filter((x) => x !== s) : states.filter((x) => x === s || view.states.includes(x)) });
  return (
    <>
      <TextInput ref={words} size="xs" w={150} aria-label={text.filter.words} placeholder={text.filter.hint} value={view.words} onChange={(e) => change({ words: e.currentTarget.value.slice(0, 200) })}
        onKeyDown={(e) => e.key === 'Escape' && change({ words: '' })} />
      <Popover position="bottom-end" withArrow shadow="md" opened={open} onChange={setOpen}>
        <Popover.Target><Button ref={opener} size="compact-sm" variant={view.owner !== '' || view.states.length > 0 ? 'light' : 'default'} onClick={() => setOpen(!open)}>{text.filter.button((view.owner === '' ? 0 : 1) + view.states.length)}</Button></Popover.Target>
        <Popover.Dropdown>
          <Stack gap="xs">
            <fieldset className="bare"><legend>{text.filter.owner}</legend>
              {(['', 'mine', 'others'] as const).map((o) => <label key={o} className="choice"><input type="radio" name="owner" checked={view.owner === o} onChange={() => change({ owner: o })} /> {text.filter.owners[o]}</label>)}
            </fieldset>
            <fieldset className="bare"><legend>{text.filter.state}</legend>
              {states.map((s) => <label key={s} className="choice"><input type="checkbox" checked={view.states.includes(s)} onChange={() => toggle(s)} /> {text.filter.states[s]}</label>)}
            </fieldset>
            <Button size="compact-sm" variant="default" disabled={!filters(view)} onClick={() => change({ owner: '', states: [], words: '' })}>{text.filter.clear}</Button>
          </Stack>
        </Popover.Dropdown>
      </Popover>
    </>
  );
}

/** Share takes the view elsewhere: as a link, a file, on paper. */
function Share({ act }: { act: Acts }) {
  const [open, setOpen] = useState(false);
  const opener = useEscape(open, setOpen);
  const copy = (how: 'moving' | 'frozen') => {
    const link = act.link(how);
    if (navigator.clipboard) navigator.clipboard.writeText(link).then(() => act.said(text.share.copied(link)), () => act.said(text.share.byHand(link)));
    else act.said(text.share.byHand(link)); // of a page without https there is no clipboard
    setOpen(false);
  };
  const close = (what: () => void) => () => {
    setOpen(false);
    what();
  };
  return (
    <Popover position="bottom-end" withArrow shadow="md" opened={open} onChange={setOpen}>
      <Popover.Target><Button ref={opener} size="compact-sm" variant="default" onClick={() => setOpen(!open)}>{text.share.button}</Button></Popover.Target>
      <Popover.Dropdown>
        <Stack gap={6}>
          <Button size="compact-sm" variant="default" onClick={() => copy('moving')}>{text.share.moving}</Button>
          <Button size="compact-sm" variant="default" onClick={() => copy('frozen')}>{text.share.frozen}</Button>
          <Button size="compact-sm" variant="default" onClick={close(() => act.save('svg'))}>{text.share.svg}</Button>
          <Button size="compact-sm" variant="default" onClick={close(() => act.save('csv'))}>{text.share.csv}</Button>
          <Button size="compact-sm" variant="default" onClick={close(() => setTimeout(print, 100))}>{text.share.print}</Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

/** GoTo takes a time as the command line reads it. */
function GoTo({ clock, zone, onTime }: { clock: number; zone: string; onTime: (at: number) => void }) {
  const [typed, setTyped] = useState('');
  const at = parseTime(typed, clock, zone);
  return (
    <form onSubmit={(e) => { e.preventDefault(); if (at !== null) onTime(at); }}>
      <TextInput label={text.goTo.label} data-autofocus value={typed} onChange={(e) => setTyped(e.currentTarget.value)} description={at === null ? text.goTo.hint : `${time(at, zone)} ${zone}`} error={typed !== '' && at === null && text.book.badTime(typed)} inputWrapperOrder={['label', 'input', 'description', 'error']} />
      <Button type="submit" mt="sm" size="compact-md" disabled={at === null}>{text.goTo.go}</Button>
    </form>
  );
}

interface Found { label: string; act: () => void }

/** Find finds sites, pools, nodes and promises by what they are called. */
function Find({ sites, onFound }: { sites: Site[]; onFound: (change: Partial<View>, open: boolean) => void }) {
  const [typed, setTyped] = useState('');
  const [own, setOwn] = useState<{ id: string; site: string; number: number }[]>([]);
  const [at, setAt] = useState(0);
  const want = typed.trim().toLowerCase();
  useEffect(() => {
    if (want === '') return;
    const abort = new AbortController();
    const timer = setTimeout(() => { // an id is known to the service alone
      get<{ id: string; start: string; site: string }>(`v1/reservations/${encodeURIComponent(typed.trim())}`, abort.signal).then(
        async (r) => {
          if (!r.start) return;
          const list = await get<{ spans: Span[] }>(`v1/sites/${encodeURIComponent(r.site)}/occupation?from=${encodeURIComponent(r.start)}&to=${encodeURIComponent(new Date(Date.parse(r.start) + 1000).toISOString().slice(0, 19) + 'Z')}&limit=10000`, abort.signal);
          const span = list.spans.find((s) => s.id === r.id);
          setOwn([{ id: r.id, site: r.site, number: span?.number ?? -1 }]);
        },
        () => setOwn([]),
      );
    }, 150);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [typed, want]);
  const found: Found[] = [];
  if (want !== '') {
    for (const o of own) found.push({ label: `${o.id}, ${o.site}`, act: () => onFound({ site: o.site, owner: '', states: [], words: '', ...(o.number >= 0 ? { selected: `${o.site}/${o.number}` } : {}) }, true) });
    for (const s of sites) {
      if (s.name.toLowerCase().includes(want)) found.push({ label: `Site ${s.name}`, act: () => onFound({ site: s.name }, false) });
      for (const p of s.pools) if (p.name.toLowerCase().includes(want)) found.push({ label: `Pool ${p.name} at ${s.name}`, act: () => onFound({ site: s.name, words: p.name }, false) });
      for (const n of s.nodes ?? []) {
        if (found.length >= 40) break;
        if (n.name.toLowerCase().includes(want)) found.push({ label: `Node ${n.name} at ${s.name}`, act: () => onFound({ site: s.name, words: n.name }, false) });
      }
    }
  }
  const chosen = Math.min(at, found.length - 1);
  return (
    <>
      <TextInput label={text.find.label} data-autofocus value={typed} role="combobox" aria-expanded={found.length > 0} aria-controls="found" aria-activedescendant={found.length > 0 ? `found-${chosen}` : undefined}
        onChange={(e) => { setTyped(e.currentTarget.value); setAt(0); }}
        onKeyDown={(e) => {
          if (e.key === 'ArrowDown') setAt(Math.min(chosen + 1, found.length - 1));
          else if (e.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0));
          else if (e.key === 'Enter') found[chosen]?.act();
          else return;
          e.preventDefault();
        }} />
      <ul id="found" role="listbox" className="found" aria-label={text.find.results}>
        {found.map((f, i) => <li key={f.label} id={`found-${i}`} role="option" aria-selected={i === chosen} onClick={f.act}>{f.label}</li>)}
      </ul>
      {want !== '' && found.length === 0 && <Text size="sm">{text.find.nothing}</Text>}
    </>
  );
}

function Tool({ label, sign, act }: { label: string; sign: string; act: () => void }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" size={26} aria-label={label} onClick={act}>{sign}</ActionIcon>
    </Tooltip>
  );
}

const Legend = memo(function Legend({ theme }: { theme: Theme }) {
  const f = fills[theme];
  const items: [string, React.CSSProperties][] = [
    [capital(text.mine), { background: f.mine }],
    ['Promise', { background: f.promise }],
    ['Held', { border: `2px dashed ${f.promise}` }],
    ['Running', { background: `linear-gradient(90deg, ${f.promise} 0 4px, transparent 4px 5px, ${f.promise} 5px)` }],
    [text.provisional, { background: `linear-gradient(${f.promise}, ${f.promise}) top / 100% 11px no-repeat, repeating-linear-gradient(90deg, ${f.promise} 0 2px, transparent 2px 4px)` }],
    ['Ordinary job', { background: f.job, height: 8 }],
    ['Degraded', { background: `repeating-linear-gradient(-45deg, ${f.degraded} 0 4px, transparent 4px 6px)` }],
    ['Out of use', { background: `repeating-linear-gradient(-45deg, ${f.outage} 0 3px, transparent 3px 5px)` }],
    [text.announced, { border: `1px solid ${f.outage}`, background: `repeating-linear-gradient(-45deg, ${f.outage} 0 1px, transparent 1px 6px), repeating-linear-gradient(45deg, ${f.outage} 0 1px, transparent 1px 6px)` }],
    ['Over', { background: f.promise, opacity: 0.4 }],
  ];
  return (
    <Group gap="2px 16px" component="ul" className="legend" aria-label="Legend">
      {items.map(([name, style]) => (
        <Group key={name} gap={6} component="li" wrap="nowrap"><span className="swatch" style={style} /><Text size="xs">{name}</Text></Group>
      ))}
    </Group>
  );
});

interface PanelProps {
  site: Site; pool: Site['pools'][number]; me: Me; view: View; from: number; to: number; clock: number; zone: string; theme: Theme; stale: number; selected: number;
  onWindow: (a: number, b: number) => void; onSelect: (n: number) => void; onOpen: () => void; onKey: (k: string) => void; change: (c: Partial<View>) => void; sheets: Map<string, Sheet>;
}

function PoolPanel({ site, pool, me, view, from, to, clock, zone, theme, stale, selected, onWindow, onSelect, onOpen, onKey, change, sheets }: PanelProps) {
  const { picture, rows, failure, seen, retry } = usePool(site.name, pool.name, from, to, stale, queryOf(view));
  const name = `${site.name}/${pool.name}`;
  const known = useNamed(site.name, pool.name, view.words, stale);
  const who = useMemo(() => whoAt(site.name, { user: me.user, role: me.role }), [site.name, me.user, me.role]);
  const mask = useMemo(() => (picture ? maskOf(picture, rows, name, { owner: view.owner, states: view.states, words: view.words }, known) : null), [picture, rows, name, view.owner, view.states, view.words, known]);
  const any = useMemo(() => {
    if (!picture) return true;
    if (picture.cells) return picture.cells.some((c) => c !== 0);
    for (let i = 0; i < picture.count; i++) {
      const a = picture.t0 + picture.start[i]!;
      if (a < to && a + picture.length[i]! > from && (mask ? mask[i] !== 0 && (view.owner !== 'mine' || (picture.flags[i]! & Flag.mine) !== 0) : true)) return true;
    }
    return false;
  }, [picture, mask, view.owner, from, to]);
  const empty = picture && !any;
  useEffect(() => {
    if (picture) sheets.set(name, { site: site.name, pool: pool.name, pes: pool.pes, picture, rows, mask });
    return () => void sheets.delete(name);
  }, [sheets, name, site.name, pool.name, pool.pes, picture, rows, mask]);
  const begin = view.rows.startsWith(name + ':') ? Number(view.rows.slice(name.length + 1)) : null;
  return (
    <Paper withBorder radius="sm" p="xs">
      <PoolHead pool={pool} shades={picture?.cells ? text.shades(filters(view)) : ''} />
      <Trouble failure={failure} seen={seen} zone={zone} again={retry} />
      {!picture && !failure && <Waiting />}
      {picture && !view.table && (
        <Gantt picture={picture} rows={rows} pes={pool.pes} from={from} to={to} now={clock} zone={zone} theme={theme} mask={mask} begin={begin} onBegin={(pe) => change({ rows: pe === null ? '' : `${name}:${Math.round(pe * 10) / 10}` })} stale={failure !== null} selected={selected}
          name={`${site.name}, ${pool.name}`} who={who} onWindow={onWindow} onSelect={onSelect} onOpen={onOpen} onKey={onKey} />
      )}
      {picture && view.table && <Twin picture={picture} rows={rows} from={from} to={to} zone={zone} mask={mask} name={`${site.name}, ${pool.name}`} onSelect={(n) => { onSelect(n); onOpen(); }} />}
      {empty && (
        <Text size="sm" mt="xs" data-testid="empty">
          <strong>{view.owner === 'mine' ? text.emptyMine.title : filters(view) ? text.emptyFilter.title : text.emptyWindow.title}.</strong>{' '}
          {view.owner === 'mine' ? text.emptyMine.text : filters(view) ? text.emptyFilter.text : me.role === 'viewer' ? text.emptyWindow.viewer : text.emptyWindow.user}{' '}
          {!filters(view) && view.owner !== 'mine' && me.role !== 'viewer' && <Anchor href="book" size="sm">{text.emptyWindow.act}</Anchor>}
          {filters(view) && <Button size="compact-xs" variant="default" onClick={() => change({ owner: '', states: [], words: '' })}>{text.emptyMine.act}</Button>}
        </Text>
      )}
    </Paper>
  );
}

const PoolHead = memo(function PoolHead({ pool, shades }: { pool: Site['pools'][number]; shades: string }) {
  return (
    <Group justify="space-between" mb={4} gap="xs">
      <Group gap="xs"><Text fw={600} size="sm" className="named">{pool.name}</Text><Text size="sm" c="dimmed">{text.freeNow(pool.free, pool.pes)}</Text></Group>
      {shades && <Text size="xs" c="dimmed">{shades}</Text>}
    </Group>
  );
});

const tableRows = 500;

/** Twin is the picture as a table: the same window, the same filter. */
function Twin({ picture, rows, from, to, zone, mask, name, onSelect }: { picture: Picture; rows: Rows | null; from: number; to: number; zone: string; mask: Uint8Array | null; name: string; onSelect: (n: number) => void }) {
  const list = useMemo(() => {
    const out: number[] = [];
    for (let i = 0; i < picture.count; i++) {
      const a = picture.t0 + picture.start[i]!;
      if (a < to && a + picture.length[i]! > from && (mask === null || mask[i] !== 0)) out.push(i);
    }
    return out.sort((a, b) => picture.start[a]! - picture.start[b]! || picture.first[a]! - picture.first[b]!);
  }, [picture, from, to, mask]);
  if (picture.cells) return <Text size="sm">Too many bars for a table; zoom in.</Text>;
  return (
    <ScrollArea.Autosize mah={480} viewportProps={{ tabIndex: 0, 'aria-label': `Table of ${name}` }}>
      <Table striped stickyHeader className="list bars" aria-label={`Table of ${name}`}>
        <Table.Thead><Table.Tr><Table.Th>What</Table.Th><Table.Th>PEs</Table.Th><Table.Th>Begins ({zone})</Table.Th><Table.Th>Ends</Table.Th><Table.Th>Length</Table.Th><Table.Th><span className="unseen">Details</span></Table.Th></Table.Tr></Table.Thead>
        <Table.Tbody>
          {list.slice(0, tableRows).map((i) => (
            <Table.Tr key={i}>
              <Table.Td>{capital(about(picture, i, zone, rows).split(', ')[0]!)}{picture.flags[i]! & Flag.held ? ', held' : ''}{picture.flags[i]! & Flag.over ? ', over' : ''}</Table.Td>
              <Table.Td className="whole">{picture.size[i]} ({about(picture, i, zone, rows).split(', ')[2]})</Table.Td>
              <Table.Td><Stamp of={begins(picture, i, zone)} /></Table.Td>
              <Table.Td><Stamp of={picture.flags[i]! & Flag.openEnd ? 'unknown' : time(picture.t0 + picture.start[i]! + picture.length[i]!, zone)} /></Table.Td>
              <Table.Td>{picture.flags[i]! & (Flag.openStart | Flag.openEnd) ? '' : length(picture.length[i]!)}</Table.Td>
              <Table.Td><Button size="compact-xs" variant="default" onClick={() => onSelect(picture.number[i]!)}>Details</Button></Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {list.length > tableRows && <Text size="sm">{list.length - tableRows} more; choose a shorter window.</Text>}
    </ScrollArea.Autosize>
  );
}

interface Reservation { id: string; name?: string; state: string; nodes?: string[]; missing?: number; deadline?: string; expires?: string }

function Details({ site, number, zone, stale, me }: { site: string; number: number; zone: string; stale: Record<string, number>; me: Me }) {
  const [spans, setSpans] = useState<Span[] | null>(null);
  const [own, setOwn] = useState<Reservation | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const changes = Object.values(stale).reduce((a, b) => a + b, 0);
  useEffect(() => {
    const abort = new AbortController();
    get<{ spans: Span[] }>(`v1/sites/${encodeURIComponent(site)}/spans/${number}`, abort.signal).then(
      async (s) => {
        setSpans(s.spans);
        setFailure(null);
        const id = s.spans[0]?.id;
        setOwn(id ? await get<Reservation>(`v1/reservations/${encodeURIComponent(id)}`, abort.signal).catch(() => null) : null);
      },
      (e: Failure) => abort.signal.aborted || setFailure(e),
    );
    return () => abort.abort();
  }, [site, number, changes]);
  if (failure) return <Alert color="gray" title={failure.problem.title}>{failure.problem.detail}</Alert>;
  if (!spans) return <Waiting />;
  const first = spans[0]!;
  const at = (t: string) => time(Date.parse(t) / 1000, zone);
  const name = first.kind === 'outage' ? (first.start && Date.parse(first.start) / 1000 > now() ? text.announced : 'Out of use') : first.kind === 'job' ? 'An ordinary job' : first.user === me.user ? 'Your promise' : 'A promise';
  const lines: [string, React.ReactNode][] = [];
  if (first.state) lines.push(['State', first.state]);
  if (first.user) lines.push(['User', first.user]);
  if (own?.name) lines.push(['Name', own.name]);
  if (first.id) lines.push(['Id', <code key="id">{first.id}</code>]);
  for (const s of spans) {
    lines.push([spans.length > 1 ? `Part at ${s.pool}` : 'Pool', `${site}, ${s.pool}`]);
    lines.push(['PEs', `${s.npe}${s.pes ? (own?.nodes?.length ? '' : ` (${spanned(s.pes)})`) : `, ${text.provisional}`}`]);
    lines.push(['Begins', s.start ? `${at(s.start)} ${zone}` : s.seen ? text.orEarlier(`${at(s.seen)} ${zone}`) : 'earlier']);
    lines.push(['Ends', s.end ? `${at(s.end)} ${zone}` : 'unknown']);
    if (s.start && s.end) lines.push(['Length', length((Date.parse(s.end) - Date.parse(s.start)) / 1000)]);
  }
  if (own?.nodes?.length) lines.push(['Nodes', own.nodes.join(', ')]);
  if (own?.missing) lines.push(['Missing', text.pes(own.missing)]);
  if (own?.expires) lines.push(['Held until', `${at(own.expires)} ${zone}`]);
  if (own?.deadline) lines.push(['Deadline', `${at(own.deadline)} ${zone}`]);
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">{name}</Title>
      <Table variant="vertical" layout="fixed">
        <Table.Tbody>{lines.map(([k, v], i) => <Table.Tr key={i}><Table.Th w={120}>{k}</Table.Th><Table.Td className="named">{v}</Table.Td></Table.Tr>)}</Table.Tbody>
      </Table>
      {first.id && <Anchor href={`promises?sel=${encodeURIComponent(first.id)}`} size="sm">All about it, and what can be done</Anchor>}
      {first.id && <Command line={`berth show ${first.id}`} />}
      {!first.id && first.kind !== 'outage' && <Text size="sm" c="dimmed">Whose it is only its owner and operators see.</Text>}
    </Stack>
  );
}

