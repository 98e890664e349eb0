"""Client of a Berth service over HTTP, with the standard library only.

It sends what it is told and turns answers into values and exceptions; it decides
nothing and keeps nothing.
"""

from .client import Client
from .errors import BerthError, Conflict, Denied, Exhausted, Fault, Internal, Invalid, NotFound, Unavailable
from .events import Events
from .forms import (
    Answer,
    Chance,
    Cost,
    Delivered,
    Event,
    Exceeded,
    Happening,
    History,
    Materialised,
    Me,
    Measurement,
    Nearest,
    Occurrence,
    Offer,
    Outage,
    Part,
    Place,
    Refusal,
    Request,
    Reservation,
    Series,
    SeriesAnswer,
    SeriesRequest,
    Share,
    Task,
    TaskReport,
    TaskToRun,
    Transfer,
    Variant,
    Workflow,
    WorkflowAnswer,
    WorkflowEvent,
    WorkflowOffer,
    WorkflowRequest,
    WorkflowStep,
)

__all__ = [
    "Answer", "BerthError", "Chance", "Client", "Conflict", "Cost", "Delivered", "Denied", "Event", "Events", "Exceeded", "Exhausted",
    "Fault", "Happening", "History", "Internal", "Invalid", "Materialised", "Me", "Measurement", "Nearest", "NotFound",
    "Occurrence", "Offer", "Outage", "Part", "Place", "Refusal", "Request", "Reservation", "Series", "SeriesAnswer", "SeriesRequest", "Share", "Task", "TaskReport", "TaskToRun", "Transfer",
    "Unavailable", "Variant", "Workflow", "WorkflowAnswer", "WorkflowEvent", "WorkflowOffer", "WorkflowRequest",
    "WorkflowStep",
]
