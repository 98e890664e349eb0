import '@mantine/core/styles.css';
import './page.css';
import { Alert, Anchor, AppShell, Button, createTheme, type CSSVariablesResolver, Group, MantineProvider, Modal, Paper, PasswordInput, Stack, Text, Title, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { Component, lazy, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Failure, get, login, logout, now, type Me } from './api.js';
import { time } from './clock.js';
import { keepFocus } from './focus.js';
import { Book } from './book.js';
import { Harbour } from './harbour.js';
import { Once, State, usePaper, usualZone, Waiting } from './parts.js';
import { text } from './text.js';

// The heads of dialogs are no banners of the page.
const plainHead = { defaultProps: { attributes: { header: { role: 'presentation' } } } };
const theme = createTheme({ components: { Drawer: plainHead, Modal: plainHead }, respectReducedMotion: true, primaryColor: 'blue', primaryShade: 8, fontFamily: 'system-ui, sans-serif', defaultRadius: 'sm', cursorType: 'pointer' });

/** takeCode returns the code of a login link. It stands in the fragment, which no server and no log sees, and is gone from the address at once. */
function takeCode(): string | null {
  if (!location.hash.startsWith('#login=')) return null;
  const code = location.hash.slice('#login='.length);
  history.replaceState(null, '', location.pathname + location.search);
  return code;
}

// The library's dimmed text, its errors and its dark ground have too little contrast for small text.
const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: { '--mantine-color-dimmed': '#5f5c56', '--mantine-color-error': '#c01c28' },
  dark: { '--mantine-color-dimmed': '#a5a29a', '--mantine-color-error': '#ff8f8f', '--mantine-color-body': '#14171c' },
});

// What is not looked at first is loaded when it is opened.
const Promises = lazy(() => import('./promises.js'));
const Workflow = lazy(() => import('./workflow.js'));
const Operate = lazy(() => import('./operate.js'));
const Sessions = lazy(() => import('./sessions.js'));
const Laboratory = lazy(() => import('./laboratory.js'));

/** roles are those that a page takes at least, in the order in which pages are offered. */
const roles = { harbour: 'viewer', book: 'user', promises: 'user', workflow: 'user', operate: 'operator', laboratory: 'user' } as const;
type Name = keyof typeof roles;
const names = Object.keys(roles) as Name[];
const rank = ['viewer', 'user', 'operator'];
const may = (me: Me, page: Name) => rank.indexOf(me.role) >= rank.indexOf(roles[page]);

/** pageOf returns which page the address is of. */
const pageOf = (): Name => names.find((n) => location.pathname.endsWith('/' + n)) ?? 'harbour';
const addressOf = (page: Name) => (page === 'harbour' ? document.baseURI : new URL(page, document.baseURI).href);

/** follow opens pages that links lead to in the page that is loaded. What it shows follows the address, as when one goes back. */
function follow(e: MouseEvent) {
  const link = e.target instanceof Element ? e.target.closest('a') : null;
  if (!link || e.defaultPrevented || e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey || link.target || link.hasAttribute('download')) return; // to another tab, window or file
  const to = new URL(link.href);
  if (to.hash || !names.some((n) => new URL(addressOf(n)).href === to.origin + to.pathname)) return;
  e.preventDefault();
  history.pushState(null, '', to);
  dispatchEvent(new PopStateEvent('popstate'));
  scrollTo(0, 0);
}

/** Whole shows what to do where a page cannot be loaded or has a fault, and leaves the others as they are. */
class Whole extends Component<{ children: React.ReactNode }, { fault: string }> {
  state = { fault: '' };
  static getDerivedStateFromError = (e: unknown) => ({ fault: String(e) });
  render() {
    if (this.state.fault === '') return this.props.children;
    return (
      <Alert color="red" variant="light" title={text.upgraded.title} role="alert">
        <Text size="sm">{text.upgraded.about} <code className="named">{this.state.fault}</code></Text>
        <Button mt="xs" size="compact-sm" variant="default" onClick={() => location.reload()}>{text.upgraded.act}</Button>
      </Alert>
    );
  }
}

function Page() {
  const [me, setMe] = useState<Me | null>(null);
  const [out, setOut] = useState(false); // it is known that no user is logged in
  const [failure, setFailure] = useState<{ title: string; failure: Failure } | null>(null);
  const [live, setLive] = useState(true);
  const shade = useComputedColorScheme('light');
  const [page, setPage] = useState(pageOf);
  useEffect(() => {
    const back = () => setPage(pageOf());
    addEventListener('popstate', back);
    document.addEventListener('click', follow);
    return () => {
      removeEventListener('popstate', back);
      document.removeEventListener('click', follow);
    };
  }, []);
  const pages = useRef<HTMLElement>(null);
  useEffect(() => { // on a phone there is no room for all names
    const [row, here] = [pages.current, pages.current?.querySelector<HTMLElement>('[aria-current]')];
    if (row && here) row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;
  }, [page, me]);
  const zone = usualZone();
  const [account, setAccount] = useState(false);
  const offered = me ? names.filter((n) => may(me, n)) : [];
  const { setColorScheme } = useMantineColorScheme();

  const ask = useCallback(() => {
    get<Me>('v1/me').then(
      (m) => {
        setMe(m);
        setOut(false);
        setFailure(null);
      },
      (e: Failure) => {
        setOut(true);
        if (e.problem.status !== 401) setFailure({ title: e.problem.title, failure: e });
      },
    );
  }, []);
  const enter = useCallback(() => {
    const code = takeCode();
    if (code === null) return false;
    login({ code }).then(ask, (e: Failure) => {
      setFailure({ title: text.login.linkFailed, failure: e });
      ask();
    });
    return true;
  }, [ask]);
  useEffect(() => {
    if (!enter()) ask();
    addEventListener('hashchange', enter); // a link that is opened in the tab of the page
    return () => removeEventListener('hashchange', enter);
  }, [ask, enter]);
  const ended = useCallback(() => {
    setMe(null);
    setOut(true);
    setAccount(false);
  }, []);

  return (
    <AppShell header={{ height: me && offered.length > 1 ? { base: 80, sm: 48 } : 48 }} padding="md">
      <AppShell.Header px="md">
        <Group mih={{ sm: 48 }} gap="0 10px" justify="space-between" className="head">
          <Group gap="xs" wrap="nowrap">
            <svg width="22" height="22" style={{ flexShrink: 0 }} viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16" rx="3" fill="#123f7a" /><path d="M3 4h6v2H3zm4 3h6v2H7zm-2 3h5v2H5z" fill="#fff" /></svg>
            <Text fw={700} className="brand">Berth</Text>
            {me && <span data-testid="live" className="whole"><State of={live ? 'ok' : 'warning'} words={live ? text.live : text.off} /></span>}
          </Group>
          {offered.length > 1 && (
            <nav ref={pages} aria-label={text.pagesOf} className="pages">
              {offered.map((p) => <Anchor key={p} href={addressOf(p)} size="sm" underline="never" aria-current={page === p ? 'page' : undefined}>{text.pages[p]}</Anchor>)}
            </nav>
          )}
          <Group gap="xs" wrap="nowrap">
            <Button size="compact-sm" variant="default" onClick={() => setColorScheme(shade === 'dark' ? 'light' : 'dark')}>{shade === 'dark' ? 'Light' : 'Dark'}</Button>
            {me && <Button size="compact-sm" variant="default" className="account" aria-haspopup="dialog" aria-label={text.account(me.user, me.role)} onClick={() => setAccount(true)}><span className="account-name">{me.user}<span className="account-role">, {me.role}</span></span></Button>}
            {me && <Button size="compact-sm" variant="default" onClick={() => logout().then(ended, ended)}>Log out</Button>}
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Main>
        {me && page !== 'harbour' && <p className="print-only">{text.printed(text.pages[page], time(now(), zone), zone)}</p>}
        {me && !may(me, page) && (
          <Stack gap="sm">
            <Title order={1} size="h3">{text.pages[page]}</Title>
            <Alert color="gray" title={text.notPermitted(me.role)}>{text.notPermittedAbout(roles[page])}</Alert>
          </Stack>
        )}
        {me && may(me, page) && (
          <Whole key={`${page} ${me.user} ${me.role}`}>
            <Once><Suspense fallback={<Waiting />}>
              {page === 'harbour' && <Harbour me={me} theme={shade} onLive={setLive} onEnded={ended} />}
              {page === 'book' && <Book theme={shade} onLive={setLive} onEnded={ended} />}
              {page === 'promises' && <Promises me={me} onLive={setLive} onEnded={ended} />}
              {page === 'workflow' && <Workflow me={me} onLive={setLive} onEnded={ended} />}
              {page === 'operate' && <Operate onLive={setLive} onEnded={ended} />}
              {page === 'laboratory' && <Laboratory me={me} onLive={setLive} onEnded={ended} />}
            </Suspense></Once>
          </Whole>
        )}
        {me && (
          <Modal lockScroll={false} opened={account} onClose={() => setAccount(false)} title={text.sessions} size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
            <Once><Suspense fallback={<Waiting height={120} />}><Sessions me={me} zone={zone} onEnded={ended} /></Suspense></Once>
          </Modal>
        )}
        {!me && out && <Login failure={failure} onDone={ask} />}
      </AppShell.Main>
    </AppShell>
  );
}

function Login({ failure, onDone }: { failure: { title: string; failure: Failure } | null; onDone: () => void }) {
  const [token, setToken] = useState('');
  const [wrong, setWrong] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const [provider, setProvider] = useState('');
  useEffect(() => {
    get<{ oidc?: { name: string } }>('v1/login').then((l) => setProvider(l.oidc?.name ?? ''), () => undefined); // without it there is the token
  }, []);
  return (
    <Paper withBorder p="lg" maw={460} mx="auto" mt="xl" component="form" onSubmit={(e: React.FormEvent) => {
      e.preventDefault();
      setBusy(true);
      login({ token }).then(
        () => {
          setToken('');
          onDone();
        },
        (f: Failure) => {
          setWrong(f);
          setBusy(false);
        },
      );
    }}>
      <Stack gap="sm">
        <Title order={1} size="h3">{text.login.title}</Title>
        {failure && !wrong && <Alert color="orange" variant="light" title={failure.title}>{failure.failure.message}</Alert>}
        {wrong && <Alert color="red" variant="light" title={text.login.failed} role="alert">{wrong.problem.status === 401 && !wrong.message.includes('expired') ? text.login.unknown : wrong.message}</Alert>}
        {provider !== '' && <Button component="a" href={`login/oidc?to=${encodeURIComponent('/' + location.pathname.slice(new URL(document.baseURI).pathname.length) + location.search)}`}>{text.login.by(provider)}</Button>}
        <PasswordInput label={text.login.token} value={token} onChange={(e) => setToken(e.currentTarget.value)} autoFocus required autoComplete="off" visibilityToggleButtonProps={{ 'aria-label': 'Show the token', tabIndex: 0 }} />
        <Button type="submit" variant={provider === '' ? 'filled' : 'default'} loading={busy} disabled={token.trim() === ''}>{text.login.send}</Button>
        <Text size="sm" c="dimmed">{text.login.about}</Text>
        <Text size="sm" c="dimmed">{text.login.link}</Text>
      </Stack>
    </Paper>
  );
}

/** Root is light on paper, whatever it is on the screen. */
function Root() {
  const printing = usePaper();
  return (
    <MantineProvider theme={theme} cssVariablesResolver={variables} defaultColorScheme="auto" forceColorScheme={printing ? 'light' : undefined} getStyleNonce={() => nonce}>
      <Page />
    </MantineProvider>
  );
}

keepFocus(document);
const nonce = document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content ?? '';
createRoot(document.getElementById('root')!).render(<Root />);
