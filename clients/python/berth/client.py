"""The calls of a service."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from .connection import Connection, new_key, segment
from .errors import Invalid
from .events import Events
from .forms import (
    Answer,
    Chance,
    Duration,
    History,
    Hold,
    Me,
    Offer,
    Request,
    Reservation,
    Series,
    SeriesAnswer,
    SeriesRequest,
    Task,
    TaskReport,
    Time,
    Workflow,
    WorkflowAnswer,
    WorkflowOffer,
    WorkflowRequest,
    decode,
    encode,
    instant,
)
from .settings import find, loopback

T = TypeVar("T")


class Client:
    """Speaks to one service as the owner of one token, or over its Unix socket as the user that runs it. It is safe for concurrent use.

    Without arguments it goes where the commands of berth go: to BERTH_SERVER with BERTH_TOKEN, or to the
    service of the last ``berth login``, or to the socket of a service on this machine. ``unix:///PATH`` is a
    socket, which needs no token. ``token_file`` has the token in its first line.

    Every call that changes something has an Idempotency-Key, a new one unless ``key`` is given, and is done
    once however often it is made. A call that is not answered is made again up to ``retries`` times, all within
    ``timeout`` seconds; then it raises Unavailable with its ``key``. Nothing is done to another version of a
    reservation than ``if_version``; that is a Conflict.

    A refusal is an answer. What the caller or the service did wrong is a BerthError.
    """

    def __init__(
        self,
        server: Optional[str] = None,
        token: Optional[str] = None,
        *,
        token_file: Optional[str] = None,
        timeout: float = 30.0,
        retries: int = 3,
    ) -> None:
        if not timeout > 0:
            raise Invalid(f"{timeout}; want seconds, more than 0", field="timeout")
        if retries < 0:
            raise Invalid(f"{retries}; want a whole number from 0", field="retries")
        server, token = find(server, token, token_file)
        if token and server.startswith("http:") and not loopback(server):
            warnings.warn(f"the token goes to {server} without TLS and can be read on the way; use https://", stacklevel=2)
        self._connection = Connection(server, token, timeout, retries)

    @property
    def server(self) -> str:
        """The URL of the service, without a slash at its end."""
        return self._connection.server

    def me(self) -> Me:
        """Say whose token this is."""
        return self._read(Me, "GET", "/v1/me")

    # Reservations.

    def reserve(self, request: Request, *, key: Optional[str] = None) -> Answer:
        """Request a reservation, or an array of them."""
        return self._act(Answer, "POST", "/v1/requests", encode(request), key)

    def offers(self, request: Request, *, most: Optional[int] = None) -> List[Offer]:
        """List what could be had, at most count offers, without making the request."""
        query = {} if most is None else {"most": most}
        return self._list(Offer, self._call("POST", "/v1/offers", encode(request), query=query), "offers")

    def chances(self, request: Request) -> List[Chance]:
        """Say how probable it is that the request is accepted later, and that an ordinary job of its size starts in time."""
        return self._list(Chance, self._call("POST", "/v1/offers", encode(request), query={"most": 1, "chance": "true"}), "chances")

    def hold(self, offer: Union[Offer, str], hold: Hold = True, *, key: Optional[str] = None) -> Answer:
        """Hold an offer until it is confirmed or the hold expires."""
        name = offer.id if isinstance(offer, Offer) else offer
        return self._act(Answer, "POST", f"/v1/offers/{segment('offer', name, 'the id of an offer')}/hold", {"hold": encode(hold, "hold")}, key)

    def confirm(self, id: str, *, key: Optional[str] = None, if_version: Optional[int] = None) -> Reservation:
        """Confirm a held reservation."""
        return self._act(Reservation, "POST", _reservation(id) + "/confirm", None, key, if_version)

    def modify(
        self, id: str, request: Request, *, reset: Iterable[str] = (), key: Optional[str] = None, if_version: Optional[int] = None
    ) -> Answer:
        """Ask for a reservation to be changed: all of it, or nothing.

        Fields that are None stay as they are; those named in ``reset`` go back to their defaults.
        """
        body = encode(request)
        body.update(dict.fromkeys(reset))
        return self._act(Answer, "PATCH", _reservation(id), body, key, if_version)

    def extend(
        self,
        id: str,
        *,
        until: Optional[Time] = None,
        by: Optional[Duration] = None,
        key: Optional[str] = None,
        if_version: Optional[int] = None,
    ) -> Answer:
        """Let a reservation go on until a time, or for longer by a duration."""
        given = {"until": until, "by": by}
        body = {name: encode(value, name) for name, value in given.items() if value is not None}
        return self._act(Answer, "POST", _reservation(id) + "/extend", body, key, if_version)

    def release(self, id: str, *, key: Optional[str] = None, if_version: Optional[int] = None) -> Reservation:
        """Give back what is left of a reservation; one that has not started is cancelled."""
        return self._act(Reservation, "POST", _reservation(id) + "/release", None, key, if_version)

    def check_in(self, id: str, *, key: Optional[str] = None, if_version: Optional[int] = None) -> Reservation:
        """Report that a reservation is in use, so that it is not released as a no-show."""
        return self._act(Reservation, "POST", _reservation(id) + "/check-in", None, key, if_version)

    def reservation(self, id: str) -> Reservation:
        """Get one reservation: by its id, its name, or the first or last letters of its id, if they fit no other."""
        return self._read(Reservation, "GET", _reservation(id))

    def reservations(
        self,
        *,
        user: Optional[str] = None,
        site: Optional[str] = None,
        name: Optional[str] = None,
        states: Sequence[str] = (),
        start: Optional[Time] = None,
        end: Optional[Time] = None,
        page_size: Optional[int] = None,
    ) -> Iterator[Reservation]:
        """Yield reservations by id, fetched page by page: of a user, at a site, of a name, in one of some states, within a window."""
        query = _query(user=user, site=site, name=name, state=_words("states", states), limit=page_size)
        for name, at in (("from", start), ("to", end)):
            if at is not None:
                query[name] = instant(at, name)
        return self._pages(Reservation, "/v1/reservations", "reservations", query)

    def history(self, id: str) -> History:
        """Get what happened to a reservation, and who requested it."""
        return self._read(History, "GET", _reservation(id) + "/history")

    def run(self, id: str, task: Task, *, key: Optional[str] = None, if_version: Optional[int] = None) -> str:
        """Run a task in a reservation, at its start or now, at a site that runs tasks itself; return its job."""
        answer = self._call("POST", _reservation(id) + "/run", encode(task), key=_key(key), version=if_version)
        return self._checked(lambda: str(answer["job"]))

    def tasks(self, id: str) -> Iterator[TaskReport]:
        """Yield the tasks of a reservation and how they ended. Sites without an adapter tell of none."""
        return self._pages(TaskReport, _reservation(id) + "/tasks", "tasks", {})

    # Series.

    def submit_series(self, series: SeriesRequest, *, key: Optional[str] = None) -> SeriesAnswer:
        """Ask for a request that repeats: enough of its occurrences are promised, or none is."""
        return self._act(SeriesAnswer, "POST", "/v1/series", encode(series), key)

    def one_series(self, id: str) -> Series:
        """Get one series, with its occurrences: by its id, its name, or the first or last letters of its id, if they fit no other."""
        return self._read(Series, "GET", _series(id))

    def series(self, *, user: Optional[str] = None, page_size: Optional[int] = None) -> Iterator[Series]:
        """Yield series without their occurrences, fetched page by page."""
        return self._pages(Series, "/v1/series", "series", _query(user=user, limit=page_size))

    def modify_series(
        self,
        id: str,
        *,
        first: Optional[int] = None,
        last: Optional[int] = None,
        by: Optional[int] = None,
        npe: Optional[int] = None,
        duration: Optional[Duration] = None,
        key: Optional[str] = None,
    ) -> SeriesAnswer:
        """Change occurrences of a series that are to come, by their numbers: all of these, or none. ``by`` is seconds, later or earlier."""
        given = (("from", first), ("to", last), ("by", by), ("npe", npe), ("duration", duration))
        body = {name: encode(value) for name, value in given if value is not None}
        return self._act(SeriesAnswer, "POST", _series(id) + "/modify", body, key)

    def cancel_series(self, id: str, *, first: Optional[int] = None, last: Optional[int] = None, key: Optional[str] = None) -> SeriesAnswer:
        """Give occurrences of a series back, by their numbers; all of them by default."""
        body = {name: value for name, value in (("from", first), ("to", last)) if value is not None}
        return self._act(SeriesAnswer, "POST", _series(id) + "/cancel", body, key)

    # Workflows.

    def submit_workflow(self, workflow: WorkflowRequest, *, key: Optional[str] = None) -> WorkflowAnswer:
        """Submit a workflow: a reservation for each of its tasks is promised, or none is."""
        return self._act(WorkflowAnswer, "POST", "/v1/workflows", encode(workflow), key)

    def workflow_offers(self, workflow: WorkflowRequest) -> List[WorkflowOffer]:
        """List what deadlines of a workflow cost, the tightest first, without submitting it."""
        return self._list(WorkflowOffer, self._call("POST", "/v1/workflows/offers", encode(workflow)), "offers")

    def workflow(self, id: str) -> Workflow:
        """Get one workflow, with its tasks."""
        return self._read(Workflow, "GET", _workflow(id))

    def workflows(self, *, user: Optional[str] = None, states: Sequence[str] = (), page_size: Optional[int] = None) -> Iterator[Workflow]:
        """Yield workflows without their tasks, fetched page by page: of a user, in one of some states."""
        return self._pages(Workflow, "/v1/workflows", "workflows", _query(user=user, state=_words("states", states), limit=page_size))

    def confirm_workflow(self, id: str, *, key: Optional[str] = None, if_version: Optional[int] = None) -> WorkflowAnswer:
        """Confirm a held workflow; tasks that should have started meanwhile are moved."""
        return self._act(WorkflowAnswer, "POST", _workflow(id) + "/confirm", None, key, if_version)

    def cancel_workflow(self, id: str, *, key: Optional[str] = None, if_version: Optional[int] = None) -> WorkflowAnswer:
        """Stop what runs of a workflow, and give back what was to run."""
        return self._act(WorkflowAnswer, "DELETE", _workflow(id), None, key, if_version)

    def retry_workflow(
        self,
        id: str,
        *,
        deadline: Optional[Time] = None,
        deadline_in: Optional[Duration] = None,
        key: Optional[str] = None,
        if_version: Optional[int] = None,
    ) -> WorkflowAnswer:
        """Submit again what has not succeeded of a workflow that is over, perhaps with a new deadline."""
        given = {"deadline": deadline, "deadline_in": deadline_in}
        body = {name: encode(value, name) for name, value in given.items() if value is not None}
        return self._act(WorkflowAnswer, "POST", _workflow(id) + "/retry", body, key, if_version)

    # Events.

    def events(self, after: int = 0) -> Events:
        """Open the stream of events, from now on or behind an event."""
        if after < 0:
            raise Invalid(f"{after}; want the id of an event, or 0 for from now on", field="after")
        return Events(self._connection, after)

    def _call(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        return self._connection.call(method, path, body, **how)

    def _read(self, kind: Type[T], method: str, path: str) -> T:
        data = self._call(method, path)
        return self._checked(lambda: decode(kind, data))

    def _act(self, kind: Type[T], method: str, path: str, body: Any, key: Optional[str], if_version: Optional[int] = None) -> T:
        data = self._call(method, path, body, key=_key(key), version=if_version)
        return self._checked(lambda: decode(kind, data))

    def _list(self, kind: Type[T], data: Any, name: str) -> List[T]:
        return self._checked(lambda: [decode(kind, item) for item in data[name]])

    def _pages(self, kind: Type[T], path: str, name: str, query: Mapping[str, Any]) -> Iterator[T]:
        query = dict(query)
        while True:
            page = self._call("GET", path, query=query)
            yield from self._list(kind, page, name)
            cursor = page.get("next")
            if not cursor:
                return
            query["cursor"] = cursor

    def _checked(self, read: Callable[[], T]) -> T:
        """Return what is read of an answer, or say that it is not one of this service."""
        try:
            return read()
        except (ValueError, KeyError, TypeError) as err:
            raise self._connection.foreign(str(err)) from err


def _key(key: Optional[str]) -> str:
    return new_key() if key is None else key


def _reservation(id: str) -> str:
    return "/v1/reservations/" + segment("id", id, "the id of a reservation")


def _series(id: str) -> str:
    return "/v1/series/" + segment("id", id, "the id of a series")


def _workflow(id: str) -> str:
    return "/v1/workflows/" + segment("id", id, "the id of a workflow")


def _query(**given: Any) -> Dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None and value != ""}


def _words(name: str, words: Sequence[str]) -> str:
    """Return words with commas. A text alone is a mistake: it would be taken letter by letter."""
    if isinstance(words, str):
        raise Invalid(f"{words!r} is one text; want a list such as [{words!r}]", field=name)
    return ",".join(words)
