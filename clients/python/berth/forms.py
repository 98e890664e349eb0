"""What is sent to a service and what it answers, field by field as in its OpenAPI document.

Times are aware datetimes, in UTC in answers; durations of answers are seconds. Fields that an answer
leaves out are None, 0, empty or False. Fields that this client does not know are passed over, so that
a later service can have more.
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from keyword import iskeyword
from typing import Any, Dict, List, Optional, Type, TypeVar, Union

from .errors import Invalid

#: A point in time: an aware datetime, or RFC 3339 with a zone.
Time = Union[datetime, str]
#: Whole seconds, a timedelta of such, or a text such as ``2h`` and ``PT2H``.
Duration = Union[int, str, timedelta]
#: How long to hold: a duration, or True for as long as the service does by default.
Hold = Union[bool, int, str, timedelta]

# What is sent. None is left out: the service then takes its default.


@dataclass
class Variant:
    """One shape of a moldable request."""

    npe: int
    duration: Duration


@dataclass
class Part:
    """One block of PEs of a request; all start together."""

    npe: Optional[int] = None
    duration: Optional[Duration] = None
    variants: Optional[List[Variant]] = None
    pes: Optional[str] = None
    constraint: Optional[str] = None
    nodelist: Optional[str] = None
    exclude: Optional[str] = None


@dataclass
class Request:
    """PEs within a window: ``npe`` for ``duration``, or one of ``variants``, or ``parts`` together.

    ``ready`` is now by default; ``ready_in`` and ``deadline_in`` are counted from when it is decided,
    instead of ``ready`` and ``deadline``. ``constraint`` is features of nodes, as Slurm writes them, and
    ``nodelist`` and ``exclude`` are names of nodes. ``users``,
    ``account`` and ``group`` may run there beside ``user``, who asks by default; ``qos`` is a quality of
    service of the site, with which jobs run. ``array`` asks for so
    many equal, independent requests. ``hold`` holds instead of confirming. ``name`` is one of your own,
    by which ``Client.reservation`` finds it.
    """

    npe: Optional[int] = None
    duration: Optional[Duration] = None
    deadline: Optional[Time] = None
    ready: Optional[Time] = None
    name: Optional[str] = None
    kind: Optional[str] = None
    variants: Optional[List[Variant]] = None
    parts: Optional[List[Part]] = None
    pes: Optional[str] = None
    site: Optional[str] = None
    pool: Optional[str] = None
    partition: Optional[str] = None
    hold: Optional[Hold] = None
    no_show: Optional[Duration] = None
    array: Optional[int] = None
    software: Optional[str] = None
    version: Optional[str] = None
    licences: Optional[int] = None
    memory_mb: Optional[int] = None
    storage_mb: Optional[int] = None
    accelerators: Optional[int] = None
    constraint: Optional[str] = None
    nodelist: Optional[str] = None
    exclude: Optional[str] = None
    user: Optional[str] = None
    users: Optional[List[str]] = None
    account: Optional[str] = None
    qos: Optional[str] = None
    group: Optional[str] = None
    ready_in: Optional[Duration] = None
    deadline_in: Optional[Duration] = None


@dataclass
class Task:
    """A command or a script that a local site runs in a reservation. Two with one ``key`` run once."""

    dir: str
    command: Optional[List[str]] = None
    script: Optional[str] = None
    args: Optional[List[str]] = None
    env: Optional[List[str]] = None
    output: Optional[str] = None
    error_output: Optional[str] = None
    name: Optional[str] = None
    array: Optional[str] = None
    limit: Optional[Duration] = None
    nodes: Optional[int] = None
    cores: Optional[int] = None
    memory_mb: Optional[int] = None
    key: Optional[str] = None


@dataclass
class Measurement:
    """How long a task of a workflow took on a number of PEs."""

    npe: int
    seconds: float


@dataclass
class TaskToRun:
    """A task of a workflow: ``seconds`` on one PE with the serial fraction ``alpha``, within ``few`` and
    ``most`` PEs, or as ``measured``. It starts when the tasks named in ``after`` have succeeded."""

    id: str
    seconds: Optional[float] = None
    alpha: Optional[float] = None
    few: Optional[int] = None
    most: Optional[int] = None
    measured: Optional[List[Measurement]] = None
    after: Optional[List[str]] = None
    read_bytes: Optional[List[int]] = None
    retries: Optional[int] = None
    command: Optional[List[str]] = None
    script: Optional[str] = None
    dir: Optional[str] = None
    env: Optional[List[str]] = None
    output: Optional[str] = None
    inputs: Optional[List[str]] = None
    outputs: Optional[List[str]] = None
    software: Optional[str] = None
    version: Optional[str] = None
    licences: Optional[int] = None
    memory_mb: Optional[int] = None
    accelerators: Optional[int] = None
    partition: Optional[str] = None
    constraint: Optional[str] = None
    site: Optional[str] = None
    account: Optional[str] = None
    qos: Optional[str] = None


@dataclass
class WorkflowRequest:
    """A workflow. No ``deadline`` is as early as possible; ``deadline_in`` is counted from when it is decided, instead of it."""

    tasks: List[TaskToRun]
    deadline: Optional[Time] = None
    id: Optional[str] = None
    name: Optional[str] = None
    user: Optional[str] = None
    algorithm: Optional[str] = None
    repair: Optional[str] = None
    site: Optional[str] = None
    pool: Optional[str] = None
    spread: Optional[bool] = None
    hold: Optional[Hold] = None
    deadline_in: Optional[Duration] = None
    account: Optional[str] = None
    qos: Optional[str] = None


@dataclass
class SeriesRequest:
    """A request that repeats, such as ``repeat="every weekday 09:00"`` in ``time_zone``, from ``ready`` on.

    ``until`` or ``times`` says when it ends; with ``ahead`` it is promised so far ahead, is prolonged as time goes, and needs no
    end. ``except_`` and ``add`` are days and times by the clock of the
    zone. An occurrence ends ``window`` after its time at the latest, its duration by default. ``at_least`` is
    how many occurrences must be possible; all by default.
    """

    repeat: Optional[str] = None
    npe: Optional[int] = None
    duration: Optional[Duration] = None
    time_zone: Optional[str] = None
    until: Optional[Time] = None
    times: Optional[int] = None
    except_: Optional[List[str]] = None
    add: Optional[List[str]] = None
    ahead: Optional[Duration] = None
    window: Optional[Duration] = None
    at_least: Optional[int] = None
    ready: Optional[Time] = None
    variants: Optional[List[Variant]] = None
    parts: Optional[List[Part]] = None
    pes: Optional[str] = None
    nodelist: Optional[str] = None
    exclude: Optional[str] = None
    user: Optional[str] = None
    hold: Optional[Hold] = None
    no_show: Optional[Duration] = None
    name: Optional[str] = None
    site: Optional[str] = None
    pool: Optional[str] = None
    software: Optional[str] = None
    version: Optional[str] = None
    licences: Optional[int] = None
    memory_mb: Optional[int] = None
    storage_mb: Optional[int] = None
    accelerators: Optional[int] = None
    partition: Optional[str] = None
    constraint: Optional[str] = None
    account: Optional[str] = None
    qos: Optional[str] = None
    group: Optional[str] = None
    users: Optional[List[str]] = None


# What is answered.


@dataclass
class Me:
    """Who asks, by which ``way`` that is known if not by a token: socket, munge, slurm-jwt or oidc, and for which ``scopes`` alone the
    token is good, if not for all."""

    user: str = ""
    role: str = ""
    way: str = ""
    sites: List[str] = field(default_factory=list)
    scopes: List[str] = field(default_factory=list)
    expires: Optional[datetime] = None
    accounts: List[str] = field(default_factory=list)
    default_account: str = ""


@dataclass
class Place:
    """Where and when one part of a reservation or an offer is."""

    site: str = ""
    pool: str = ""
    npe: int = 0
    duration: int = 0
    start: Optional[datetime] = None
    end: Optional[datetime] = None
    pes: str = ""
    nodes: List[str] = field(default_factory=list)


@dataclass
class Nearest:
    """The most that was to be had."""

    npe: int = 0
    duration: int = 0
    start: Optional[datetime] = None


@dataclass
class Exceeded:
    """The limit that a request goes beyond."""

    limit: str = ""
    owner: str = ""
    account: str = ""
    qos: str = ""
    partition: str = ""
    unit: str = ""
    allowed: float = 0
    asked: float = 0
    frees: Optional[datetime] = None


@dataclass
class Refusal:
    """Why a request was refused. ``detail`` is the same for people."""

    reason: str = ""
    site: str = ""
    pool: str = ""
    wanted: int = 0
    limit: int = 0
    possible: Optional[datetime] = None
    nearest: Optional[Nearest] = None
    exceeded: Optional[Exceeded] = None
    task: str = ""
    detail: str = ""


@dataclass
class Transfer:
    """When data are moved to the site."""

    start: Optional[datetime] = None
    end: Optional[datetime] = None


@dataclass
class Materialised:
    """A reservation as it is at one of its sites."""

    site: str = ""
    name: str = ""
    made: bool = False
    trouble: str = ""


@dataclass
class Reservation(Place):
    """All that is known of a reservation. ``version`` is for ``if_version`` of calls."""

    id: str = ""
    name: str = ""
    state: str = ""
    version: int = 0
    kind: str = ""
    user: str = ""
    series: str = ""
    occurrence: int = 0
    arrival: Optional[datetime] = None
    ready: Optional[datetime] = None
    deadline: Optional[datetime] = None
    variants: List[Variant] = field(default_factory=list)
    parts: List[Place] = field(default_factory=list)
    software: str = ""
    licences: int = 0
    memory_mb: int = 0
    storage_mb: int = 0
    accelerators: int = 0
    partition: str = ""
    constraint: str = ""
    nodelist: str = ""
    exclude: str = ""
    users: List[str] = field(default_factory=list)
    account: str = ""
    qos: str = ""
    group: str = ""
    data: Optional[Transfer] = None
    no_show: int = 0
    expires: Optional[datetime] = None
    missing: int = 0
    checked_in: bool = False
    reason: str = ""
    refusal: Optional[Refusal] = None
    sites: List[Materialised] = field(default_factory=list)
    created: Optional[datetime] = None
    changed: Optional[datetime] = None
    charged_pe_seconds: Optional[int] = None


@dataclass
class Cost:
    """What a promise would cost the ordinary jobs that wait or run now, by their estimates.

    Without ``complete`` not all jobs could be compared, and it is that much at least.
    """

    delayed_jobs: int = 0
    delay_sum: int = 0
    delay_largest: int = 0
    idle_pe_seconds: int = 0
    jobs: int = 0
    complete: bool = False


@dataclass
class Share:
    """In how many of ``cases`` something came true, with the 95 % interval from ``low`` to ``high``, all in percent."""

    percent: float = 0.0
    low: float = 0.0
    high: float = 0.0
    cases: int = 0


@dataclass
class Chance:
    """How probable ``event`` is: "accepted", a request that is made ``later`` seconds from now, or "started", an ordinary job within them.

    Without a ``share`` too few cases are known.
    """

    event: str = ""
    later: int = 0
    share: Optional[Share] = None


@dataclass
class Offer(Place):
    """A place that can be had now, and held under ``id`` until it expires."""

    id: str = ""
    expires: Optional[datetime] = None
    difference: str = ""
    parts: List[Place] = field(default_factory=list)
    idle_pe_seconds: int = 0
    cost: Optional[Cost] = None
    charged_pe_seconds: Optional[int] = None


@dataclass
class Answer:
    """The answer to a request: ``decision`` is accepted, refused, pending or, of an array, partly.

    A refusal has ``reason``, ``refusal`` and perhaps ``offers``, and leaves what was as it was.
    """

    id: str = ""
    decision: str = ""
    reservation: Optional[Reservation] = None
    reason: str = ""
    refusal: Optional[Refusal] = None
    offers: List[Offer] = field(default_factory=list)
    array: List[Answer] = field(default_factory=list)


@dataclass
class TaskReport:
    """How far a task of a reservation is."""

    job: str = ""
    array: str = ""
    key: str = ""
    name: str = ""
    site: str = ""
    state: str = ""
    exit_code: Optional[int] = None
    signal: int = 0
    reason: str = ""
    output: str = ""
    submitted: Optional[datetime] = None
    start: Optional[datetime] = None
    end: Optional[datetime] = None


@dataclass
class Outage:
    """PEs of a pool that cannot be used, or are announced not to be from a time on: ``from_`` in Python, where from is a keyword."""

    number: int = 0
    name: str = ""
    site: str = ""
    pool: str = ""
    pes: str = ""
    npe: int = 0
    nodes: List[str] = field(default_factory=list)
    from_: Optional[datetime] = None
    until: Optional[datetime] = None


@dataclass
class Happening(Place):
    """What happened to a reservation, and who requested it."""

    at: Optional[datetime] = None
    what: str = ""
    by: str = ""
    role: str = ""
    token: str = ""
    address: str = ""
    call: str = ""
    parts: List[Place] = field(default_factory=list)
    reason: str = ""
    task: Optional[TaskReport] = None
    trouble: str = ""
    detail: str = ""
    outages: List[Outage] = field(default_factory=list)


@dataclass
class Delivered:
    """What of a promise a managed site had, and since when."""

    start: Optional[datetime] = None
    end: Optional[datetime] = None
    npe: int = 0
    made: Optional[datetime] = None
    whole: Optional[datetime] = None
    short_pe_seconds: int = 0


@dataclass
class History:
    """What happened to a reservation, in order."""

    history: List[Happening] = field(default_factory=list)
    since: Optional[datetime] = None
    delivered: Optional[Delivered] = None


@dataclass
class WorkflowStep:
    """How far a task of a workflow is."""

    id: str = ""
    after: List[str] = field(default_factory=list)
    reservation: str = ""
    state: str = ""
    why: str = ""
    tries: int = 0
    retries: int = 0
    site: str = ""
    pool: str = ""
    npe: int = 0
    start: Optional[datetime] = None
    end: Optional[datetime] = None
    planned_start: Optional[datetime] = None
    planned_end: Optional[datetime] = None
    critical: bool = False
    output: str = ""
    account: str = ""
    qos: str = ""
    missing: int = 0


@dataclass
class Workflow:
    """All that is known of a workflow; in lists without its tasks."""

    id: str = ""
    name: str = ""
    user: str = ""
    account: str = ""
    qos: str = ""
    state: str = ""
    version: int = 0
    deadline: Optional[datetime] = None
    end: Optional[datetime] = None
    planned_end: Optional[datetime] = None
    slack: Optional[int] = None
    algorithm: str = ""
    planner: str = ""
    repair: str = ""
    replanned: int = 0
    cause: str = ""
    why: str = ""
    refusal: Optional[Refusal] = None
    expires: Optional[datetime] = None
    cpu_hours: float = 0
    created: Optional[datetime] = None
    changed: Optional[datetime] = None
    tasks: List[WorkflowStep] = field(default_factory=list)


@dataclass
class WorkflowOffer:
    """What a deadline costs. It holds nothing: submit the workflow with this deadline and algorithm."""

    deadline: Optional[datetime] = None
    algorithm: str = ""
    end: Optional[datetime] = None
    cpu_hours: float = 0
    critical: List[str] = field(default_factory=list)


@dataclass
class WorkflowAnswer:
    """The answer to a workflow: ``decision`` is promised, held or refused."""

    decision: str = ""
    workflow: Workflow = field(default_factory=Workflow)
    offers: List[WorkflowOffer] = field(default_factory=list)


@dataclass
class Occurrence(Place):
    """One of a series. ``id`` and ``state`` are those of its reservation; one that could not be promised has ``reason``,
    ``refusal`` and perhaps ``offers``. ``shift`` and ``note`` tell what a change of the clock has made of its time."""

    number: int = 0
    id: str = ""
    state: str = ""
    expires: Optional[datetime] = None
    ready: Optional[datetime] = None
    deadline: Optional[datetime] = None
    parts: List[Place] = field(default_factory=list)
    charged_pe_seconds: Optional[int] = None
    shift: str = ""
    note: str = ""
    reason: str = ""
    refusal: Optional[Refusal] = None
    offers: List[Offer] = field(default_factory=list)


@dataclass
class MovedOccurrences:
    """Occurrences that come ``by`` seconds later than their rule says; earlier, if that is negative."""

    from_: int = 0
    to: int = 0
    by: int = 0


@dataclass
class Series:
    """What became of a request that repeats; in lists without its occurrences. The fields from ``ahead`` on are of open series: their
    ``count`` and ``occurrences`` are those that have had their turn, until ``promised_until``, and the next has it at ``prolonged``."""

    id: str = ""
    name: str = ""
    user: str = ""
    repeat: str = ""
    time_zone: str = ""
    at_least: int = 0
    decision: str = ""
    created: Optional[datetime] = None
    count: int = 0
    live: int = 0
    occurrences: List[Occurrence] = field(default_factory=list)
    ahead: int = 0
    open: bool = False
    promised_until: Optional[datetime] = None
    prolonged: Optional[datetime] = None
    again: Optional[datetime] = None
    ends: Optional[datetime] = None
    skipped: List[int] = field(default_factory=list)
    moved: List[MovedOccurrences] = field(default_factory=list)
    charged_pe_seconds: Optional[int] = None


@dataclass
class OccurrenceRefusal:
    """Why an occurrence of a series cannot change."""

    number: int = 0
    reason: str = ""
    refusal: Optional[Refusal] = None


@dataclass
class SeriesAnswer:
    """The answer about a series: ``decision`` is accepted, partly or refused. ``refusals`` say why occurrences cannot change."""

    decision: str = ""
    series: Series = field(default_factory=Series)
    refusals: List[OccurrenceRefusal] = field(default_factory=list)


@dataclass
class WorkflowEvent:
    """What happened to a workflow, or to a task of it."""

    id: str = ""
    name: str = ""
    user: str = ""
    state: str = ""
    task: str = ""
    outcome: str = ""
    why: str = ""
    cause: str = ""
    moved: int = 0
    end: Optional[datetime] = None
    deadline: Optional[datetime] = None
    late: bool = False


@dataclass
class Event:
    """What happened, with the reservation, task or workflow that it happened to."""

    id: int = 0
    at: Optional[datetime] = None
    what: str = ""
    reservation: Optional[Reservation] = None
    refusal: Optional[Refusal] = None
    task: Optional[TaskReport] = None
    trouble: str = ""
    workflow: Optional[WorkflowEvent] = None


T = TypeVar("T")

# The types of the fields of each class, which are costly to work out.
_HINTS: Dict[type, Dict[str, Any]] = {}


def decode(kind: Type[T], data: Any) -> T:
    """Return JSON as a value of a class of this module. ValueError if it has another form."""
    return typing.cast(T, _decode(kind, data))


def _decode(kind: Any, data: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        if not isinstance(data, dict):
            raise ValueError(f"{data!r:.80} is not an object")
        kind = typing.cast(type, kind)
        hints = _HINTS.get(kind)
        if hints is None:
            hints = _HINTS[kind] = typing.get_type_hints(kind)
        named = ((name + "_" if iskeyword(name) else name, value) for name, value in data.items())
        return kind(**{name: _decode(hints[name], value) for name, value in named if name in hints and value is not None})
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is list:
        if not isinstance(data, list):
            raise ValueError(f"{data!r:.80} is not a list")
        return [_decode(arguments[0], item) for item in data]
    if type(None) in arguments:
        return _decode(arguments[0], data)
    if kind is datetime:
        return _moment(data)
    if kind is float and isinstance(data, int) or kind == Duration:
        return data
    if not isinstance(data, kind):
        raise ValueError(f"{data!r:.80} is not of type {kind.__name__}")
    return data


def _moment(text: Any) -> datetime:
    """Return a time of an answer. Python 3.9 and 3.10 do not read the Z of UTC."""
    if not isinstance(text, str):
        raise ValueError(f"{text!r:.80} is not a time")
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def encode(value: Any, name: str = "") -> Any:
    """Return what JSON can hold of a value; ``name`` is its field. Raises Invalid for what it cannot."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        named = ((inner.rstrip("_"), v) for inner, v in fields if v is not None)
        return {inner: encode(v, f"{name}.{inner}" if name else inner) for inner, v in named}
    if isinstance(value, (list, tuple)):
        return [encode(v, f"{name}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, datetime):
        return instant(value, name)
    if isinstance(value, timedelta):
        if value.microseconds:
            raise Invalid(f"{value} has a fraction of a second; want whole seconds", field=name)
        return value.days * 86400 + value.seconds
    if value is None or isinstance(value, (bool, int, str)) or isinstance(value, float) and value - value == 0:
        return value
    raise Invalid(f"{value!r:.80} is a {type(value).__name__}; want text, numbers, times, durations or lists of them", field=name)


def instant(value: Time, name: str) -> str:
    """Return a time as it is sent. Raises Invalid if it has no zone: which instant it is would be a guess."""
    if isinstance(value, str):
        return value
    if value.tzinfo is None or value.utcoffset() is None:
        raise Invalid(f"{value.isoformat()} has no zone; want an aware datetime, such as {value.isoformat()}+00:00", field=name)
    return value.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
