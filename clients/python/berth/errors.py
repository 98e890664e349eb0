"""Errors of a service, and of calls that it did not answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence


@dataclass(frozen=True)
class Fault:
    """What is wrong with one field; ``field`` is empty if no single field is at fault."""

    field: str
    message: str


class BerthError(Exception):
    """A mistake of the caller, or a failure of the service. A refusal is an answer and never raised.

    ``code`` never changes its meaning; each code has a subclass. ``field`` and ``message`` are those of
    the first fault, ``faults`` are all of them. ``status`` is the HTTP status, None if the error was
    found here or no answer came. ``key`` is the Idempotency-Key of the call: to ask again, pass it on.
    ``retry_after`` is how many seconds the service asks to wait.
    """

    code: str = "internal"

    def __init__(
        self,
        message: str,
        *,
        field: str = "",
        code: Optional[str] = None,
        status: Optional[int] = None,
        faults: Sequence[Fault] = (),
        key: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        if code is not None:
            self.code = code
        self.faults = list(faults) or [Fault(field, message)]
        self.field = self.faults[0].field
        self.message = self.faults[0].message
        self.status = status
        self.key = key
        self.retry_after = retry_after
        super().__init__("; ".join(f"{f.field}: {f.message}" if f.field else f.message for f in self.faults))


class Invalid(BerthError):
    """The input is malformed or contradicts itself."""

    code = "invalid"


class Conflict(BerthError):
    """The state does not allow it, or another version was seen."""

    code = "conflict"


class NotFound(BerthError):
    """Nothing of the caller's has that name; of events: some are no longer kept."""

    code = "not_found"


class Denied(BerthError):
    """The token is not known, or does not suffice."""

    code = "denied"


class Exhausted(BerthError):
    """A limit on use was reached; wait for ``retry_after`` seconds."""

    code = "exhausted"


class Unavailable(BerthError):
    """The service does not answer, or cannot now. Ask again, with the same ``key``."""

    code = "unavailable"


class Internal(BerthError):
    """A fault of the service."""

    code = "internal"


_BY_CODE = {kind.code: kind for kind in (Invalid, Conflict, NotFound, Denied, Exhausted, Unavailable, Internal)}


def of_problem(problem: Mapping[str, Any], *, key: Optional[str] = None, retry_after: Optional[float] = None) -> BerthError:
    """Return the exception of a problem (RFC 9457). An unknown code of a later service is a plain BerthError."""
    code = str(problem["code"])
    faults = [Fault(str(f.get("field", "")), str(f.get("detail", ""))) for f in problem.get("errors") or []]
    return _BY_CODE.get(code, BerthError)(
        str(problem.get("detail", "")), code=code, status=problem.get("status"), faults=faults, key=key, retry_after=retry_after
    )
