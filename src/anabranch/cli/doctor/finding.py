"""What a check found: that all is well, something to know, or something to mend and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from anabranch.extras import without_spark

if TYPE_CHECKING:
    from anabranch.jobs.job import Job


class State(StrEnum):
    """How it stands with what was looked at."""

    OK = "ok"
    NOTE = "note"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    state: State
    what: str
    """What was looked at, in a word or two."""
    found: str
    mend: tuple[str, ...] = ()
    """What to do about it, a line each."""

    def fields(self) -> dict[str, Any]:
        """The finding as JSON fields."""
        return {"check": self.what, "state": str(self.state), "found": self.found, "mend": list(self.mend)}


@dataclass(frozen=True, slots=True)
class Request:
    """What a visit is about, besides this machine."""

    job: Job | None = None
    brokers: tuple[str, ...] = ()
    broker_config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of librdkafka to ask them with."""
    tables: tuple[str, ...] = ()
    spark: bool = False

    def setting(self, key: str) -> str | None:
        """A setting of Spark that the job has."""
        return self.job.spark.settings().get(key) if self.job else None

    @property
    def master(self) -> str:
        """Where Spark runs."""
        return self.job.spark.master if self.job else "local[*]"


class Check(Protocol):
    """Looks at one thing, changes nothing, and says what it found; nothing where it was not asked for."""

    __name__: str

    def __call__(self, asked: Request, /) -> Iterator[Finding]:
        """What it found."""
        ...


def ok(what: str, found: str) -> Finding:
    """All is well."""
    return Finding(State.OK, what, found)


def note(what: str, found: str, *mend: str) -> Finding:
    """Something to know; a job may run without it."""
    return Finding(State.NOTE, what, found, mend)


def trouble(what: str, found: str, *mend: str) -> Finding:
    """Something that must be mended."""
    return Finding(State.TROUBLE, what, found, mend)


def failed(what: str, error: BaseException) -> Finding:
    """An error as trouble: what it says, and its notes as what to do."""
    plain = str(error) if type(error) in (OSError, ValueError) else f"{type(error).__name__}: {error}"
    words = without_spark(error) or plain
    first, *rest = words.strip().splitlines() or [type(error).__name__]
    return trouble(what, first, *(line.strip() for line in rest), *getattr(error, "__notes__", []))
