"""The stream of events of a service (server-sent events)."""

from __future__ import annotations

import http.client
import json
import threading
from types import TracebackType
from typing import Any, Iterator, Optional, Type

from .connection import Connection
from .errors import BerthError, Unavailable, of_problem
from .forms import Event, decode

#: Bounds a line of a stream: an event with a reservation of many nodes.
MAX_LINE = 16 << 20
#: Seconds after which a silent stream is broken; the service gives a sign of life every 15.
SILENCE = 45.0
#: The first and the longest wait in seconds before a stream that broke is opened again.
FIRST_WAIT = 0.5
LAST_WAIT = 30.0


class Events(Iterator[Event]):
    """What happens from now on, or behind an event. It is open once it is made: nothing after that is missed.

    A stream that breaks is opened again behind the last event, ``last``; before the first event, where it began.
    An answer of the service that is a no ends it with that exception. So does NotFound: events were missed, so
    look at everything anew. It is for one thread; ``close`` may be called by another and takes effect at the
    next sign of life, at the latest after 45 seconds.
    """

    def __init__(self, connection: Connection, after: int) -> None:
        self.last = after
        self._connection = connection
        self._closed = threading.Event()
        self._wait = FIRST_WAIT
        self._response: Any = None
        self._first: Optional[Event] = None
        self._open()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], err: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()
        self._drop()

    def __iter__(self) -> Events:
        return self

    def __next__(self) -> Event:
        while not self._closed.is_set():
            try:
                if self._response is None:
                    self._open()
                event, self._first = self._first or self._read(), None
            except Unavailable:
                self._drop()
                self._closed.wait(self._wait)
                self._wait = min(2 * self._wait, LAST_WAIT)
                continue
            except BerthError:
                self.close()
                self._drop()
                raise
            if event is not None:
                self.last = event.id
                return event
        self._drop()
        raise StopIteration

    def close(self) -> None:
        """End the stream."""
        self._closed.set()

    def _drop(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None

    def _open(self) -> None:
        headers = {"Accept": "text/event-stream"}
        if self.last > 0:
            headers["Last-Event-ID"] = str(self.last)
        self._response = self._connection.open("/v1/events", headers, SILENCE)
        self._wait = FIRST_WAIT
        if self.last == 0:
            self._first = self._read()  # where it begins is known before it is used

    def _read(self) -> Optional[Event]:
        """Return the next event, or None after a sign of life or once it is closed."""
        kind, data, id = "", "", ""
        while not self._closed.is_set():
            try:
                line = self._response.readline(MAX_LINE)
            except (OSError, http.client.HTTPException) as err:
                raise self._broken(err) from err
            if not line.endswith(b"\n"):
                raise self._broken("it ended" if not line or len(line) < MAX_LINE else f"a line of more than {MAX_LINE} bytes")
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            name, _, value = text.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "event":
                kind = value
            elif name == "data":
                data = value
            elif name == "id":
                id = value
            elif not text:
                if data:
                    return self._event(kind, data)
                if id.isdecimal():  # the beginning has an id alone
                    self.last = int(id)
                return None
        return None

    def _event(self, kind: str, data: str) -> Event:
        try:
            read = json.loads(data)
            if kind in ("gap", "end"):
                raise of_problem(read)
            return decode(Event, read)
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise self._broken(err) from err

    def _broken(self, why: object) -> Unavailable:
        return Unavailable(f"the stream of events broke: {why}")
