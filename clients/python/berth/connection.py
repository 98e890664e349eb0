"""One service over HTTP: calls, their keys, and asking again what was not answered."""

from __future__ import annotations

import http.client
import json
import secrets
import socket
import time
import urllib.error
import urllib.request
from typing import Any, Dict, List, Mapping, NoReturn, Optional
from urllib.parse import quote, urlencode

from .errors import BerthError, Invalid, Unavailable, of_problem
from .settings import loopback, socket_path

#: Bounds what is read of an answer: a page of 999 reservations of a thousand nodes each has 30 MB.
MAX_ANSWER = 64 << 20

#: The first wait, in seconds, before a call that was not answered is made again; each next one is twice as long.
FIRST_WAIT = 0.5

#: How often a call is made again at the service that is said to lead: while one takes over from another, both may name a third.
MOST_HOPS = 3

# What a proxy answers when the service behind it does not.
_GATEWAY = (502, 503, 504)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: urllib would send the token on to where it leads."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self._path = path

    def connect(self) -> None:
        if not hasattr(socket, "AF_UNIX"):
            raise OSError("this Python has no Unix sockets")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except BaseException:
            self.sock.close()
            raise


class _SocketHandler(urllib.request.HTTPHandler):
    """Takes the place of TCP for all of one opener."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def http_open(self, req: urllib.request.Request) -> Any:
        def connect(host: str, **options: Any) -> http.client.HTTPConnection:
            return _SocketConnection(self._path, host, **options)

        return self.do_open(connect, req)  # type: ignore[arg-type]


class Connection:
    """Speaks to one service with one token. It is safe for concurrent use."""

    def __init__(self, server: str, token: str, timeout: float, retries: int) -> None:
        self.server = server
        self._token = token
        self._timeout = timeout
        self._retries = retries
        # Like curl and the commands of berth, it goes through the proxy of the environment, except to this machine.
        handlers: List[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})] if loopback(server) else []
        self._base = server
        path = socket_path(server)
        if path is not None:
            self._base = "http://localhost"  # the name of this machine for itself
            handlers.append(_SocketHandler(path))
        self._opener = urllib.request.build_opener(_NoRedirects, *handlers)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Optional[Mapping[str, Any]] = None,
        key: Optional[str] = None,
        version: Optional[int] = None,
    ) -> Any:
        """Make a call and return the JSON of its answer, None if that is empty.

        A call that is not answered, or with ``unavailable``, is made again. With a key it is done once
        for all that; calls without one only look.
        """
        headers: Dict[str, str] = {}
        if key is not None:
            headers["Idempotency-Key"] = _header("Idempotency-Key", key)
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body, allow_nan=False).encode()
        if query:
            path += "?" + urlencode(query)
        end = time.monotonic() + self._timeout
        wait = FIRST_WAIT
        for left in range(self._retries, -1, -1):
            try:
                return self._once(method, path, data, headers, max(end - time.monotonic(), 0.001), key)
            except Unavailable as err:
                wait = max(wait, err.retry_after or 0)
                if left == 0 or time.monotonic() + wait >= end or not _unanswered(err):
                    raise
            time.sleep(wait)
            wait *= 2
        raise AssertionError("the last attempt returns or raises")

    def open(self, path: str, headers: Mapping[str, str], timeout: float, key: Optional[str] = None, method: str = "GET", data: Optional[bytes] = None) -> Any:
        """Make a call once and return its response, unread. Each wait for bytes of it lasts at most ``timeout``."""
        base = self._base
        for left in range(MOST_HOPS, -1, -1):
            request = urllib.request.Request(base + path, data=data, headers=dict(headers), method=method)
            if self._token:
                request.add_unredirected_header("Authorization", "Bearer " + self._token)
            try:
                return self._opener.open(request, timeout=timeout)
            except urllib.error.HTTPError as err:
                with err:
                    problem = self._problem(err, key)
                    leader = self._leader(err.code, problem) if left else None
                    if leader is None:
                        self._fail(err, problem, key)
                    base = leader
            except (OSError, http.client.HTTPException) as err:
                raise self.unreachable(err, key) from err
        raise AssertionError("the last attempt returns or raises")

    def _leader(self, status: int, problem: Any) -> Optional[str]:
        """Return where the service is that leads, if the one that was asked says so and the token may go there.

        That is sent over plain HTTP to another machine only if the first call was sent so too.
        """
        leader = problem.get("leader") if isinstance(problem, dict) and status == 503 else None
        if not isinstance(leader, str) or not self._token:
            return None
        plain = self._base.startswith("http://") and not loopback(self._base)
        if leader.startswith("https://") or leader.startswith("http://") and (plain or loopback(leader)):
            return leader.rstrip("/")
        return None

    def _once(self, method: str, path: str, data: Optional[bytes], headers: Mapping[str, str], timeout: float, key: Optional[str]) -> Any:
        with self.open(path, headers, timeout, key, method, data) as response:
            try:
                text = response.read(MAX_ANSWER)
                # A read with a limit does not say that less came than was announced.
                if response.length:
                    raise http.client.IncompleteRead(text, response.length)
            except (OSError, http.client.HTTPException) as err:
                raise self.unreachable(err, key) from err
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError as err:
            raise self.foreign(str(err), key) from err

    def _problem(self, err: urllib.error.HTTPError, key: Optional[str]) -> Any:
        """Return the JSON of an answer that is a problem, None if it is something else."""
        try:
            return json.loads(err.read(MAX_ANSWER))
        except (OSError, http.client.HTTPException) as cut:
            raise self.unreachable(cut, key) from cut
        except ValueError:
            return None

    def _fail(self, err: urllib.error.HTTPError, problem: Any, key: Optional[str]) -> NoReturn:
        """Raise the problem of an answer that is one."""
        after = err.headers.get("Retry-After", "")
        retry_after = float(after) if after.isdigit() else None
        try:
            raised: Optional[BerthError] = of_problem(problem, key=key, retry_after=retry_after)
        except (ValueError, KeyError, TypeError, AttributeError):
            raised = None
        if raised is None:
            raised = Unavailable(
                f"{self.server} answers {err.code} {err.reason}; is a service of Berth there?", status=err.code, key=key, retry_after=retry_after
            )
        raise raised

    def unreachable(self, err: Exception, key: Optional[str] = None) -> Unavailable:
        """Return the exception for a service that does not answer."""
        why = err.reason if isinstance(err, urllib.error.URLError) else err
        text = str(why) or type(why).__name__
        return Unavailable(f"{self.server} does not answer: {text}; is berth serve running there?", key=key)

    def foreign(self, why: str, key: Optional[str] = None) -> Unavailable:
        """Return the exception for an answer that is not one of Berth."""
        return Unavailable(f"{self.server} answers something else than this service would ({why})", status=200, key=key)


def _unanswered(err: Unavailable) -> bool:
    """Report whether a call can be answered if it is made again."""
    return err.status is None or err.status in _GATEWAY


def new_key() -> str:
    """Return a key that no other call has."""
    return secrets.token_hex(16)


def segment(name: str, value: str, wanted: str) -> str:
    """Return a value as part of a path. Raises Invalid for what would be another path."""
    if value in ("", ".", ".."):
        raise Invalid(f"{value!r}; want {wanted}", field=name)
    return quote(value, safe="")


def _header(name: str, value: str) -> str:
    if not value or any(c < " " or c > "~" for c in value):
        raise Invalid(f"{value!r:.40}; want printable ASCII characters", field=name)
    return value
