"""Where rows or elements enter a plan: their columns, what these mean, and what is promised of them.

A source whose ``start`` is named is of plain rows, which a layout reads (`rows/layout.py`); one without is of
elements. With ``key`` and ``op`` its rows are changes of a table. With ``replica`` it is of several replicas,
which a merge makes one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from anabranch.model.clock import length_text
from anabranch.model.clock_columns import clock_of, full_type
from anabranch.model.properties import Fact, Properties
from anabranch.model.spelling import did_you_mean
from anabranch.model.validity import Policy, check_policy
from anabranch.plan.node import Node, PlanError
from anabranch.progress.admission import Admission
from anabranch.progress.models.disorder import Disorder
from anabranch.progress.models.model import Progress
from anabranch.progress.models.stated import Stated
from anabranch.rows.layout import PAYLOAD_COLUMN, Layout


@dataclass(frozen=True, kw_only=True, eq=False)
class Source(Node):
    """Rows or elements that come from outside."""

    word: ClassVar[str] = "source"
    checked: ClassVar[bool] = False
    """Its adjusts name events that are there, as has been seen to."""

    name: str
    columns: pa.Schema | None
    """Of the rows as they come; of elements those of the payload; None: whatever columns elements have."""
    layout: Layout | None = None
    """What the columns of rows mean; None: the source is of elements."""
    replicas: bool = False
    """Rows and elements say which replica sent them."""
    awaited: tuple[str, ...] = ()
    """Replicas that are waited for from the beginning."""
    silent: tuple[str, ...] = ()
    """Replicas that nobody waits for while they say nothing."""
    lossy: frozenset[str] | bool = False
    """The replicas that may have holes, or whether all may."""
    declared: Properties = field(default_factory=Properties)
    """What each replica promises, or the source where it is one."""
    by_time: bool = False
    """Changes of a key count by commit time, not in the order of their channel."""
    progress: Progress | None = None
    """Until when channels are stable by what is seen of them; None: as ``disorder`` or the data say."""
    on_invalid: Policy | None = None
    on_late: Policy | None = None

    def check(self) -> None:
        """Raise where columns are missing, or nothing says how far the source has come."""
        if not isinstance(self.name, str) or not self.name:
            raise PlanError(f"a source has a name, {self.name!r} is none")
        check_policy("on_invalid", self.on_invalid)
        check_policy("on_late", self.on_late)
        if self.layout is not None:
            self.layout.check(self._given())
        if self.declared.key == () or (self.layout is not None and self.layout.key == ()):
            raise PlanError(f"the key of {self.name!r} has a column or more, and none is given")
        names = self.read_payload.names
        for name in self.declared.key or ():
            if name not in names:
                error = PlanError(
                    f"the key of {self.name!r} has column {name!r}, and there is none"
                    f"{did_you_mean(name, names)}"
                )
                error.add_note(f"Its columns are {', '.join(map(repr, names))}.")
                raise error

    def _given(self) -> pa.Schema:
        assert self.columns is not None, "rows have columns"
        return self.columns

    @property
    def replicated(self) -> bool:
        """Rows and elements say which replica sent them."""
        return self.replicas

    @property
    def of_changes(self) -> bool:
        """Its rows are changes of a table, not events."""
        return self.layout is not None and self.layout.key is not None

    @property
    def is_numbered(self) -> bool:
        """A column says which of the rows of one time comes first."""
        return self.layout is not None and self.layout.sequence not in (None, self.layout.start)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the payload."""
        return self.read_payload

    @cached_property
    def read_payload(self) -> pa.Schema:
        """The columns of the payload as rows or elements have them."""
        if self.layout is None:
            return self.columns or pa.schema([])
        given = self._given()
        return pa.schema([given.field(name) for name in self.layout.payload_of(given.names)])

    @cached_property
    def wide_settings(self) -> dict[str, str]:
        """How rows are read where columns may become wider: each holds a sort of values, of no one type."""
        return {} if self.layout is None else self.layout.reading() | self.layout.settings(self._given())

    @cached_property
    def clock(self) -> pa.DataType | None:
        """The type of the times that come out, which holds every tick of the clock; None: ticks."""
        if self.layout is None:
            return None
        dtype = self._given().field(self.layout.start).type
        return None if pa.types.is_integer(dtype) else full_type(dtype)

    @cached_property
    def reads(self) -> Layout:
        """What the columns of rows mean, with lengths of time in ticks."""
        assert self.layout is not None, "elements are read as they are"
        duration = self.layout.ticks(self.layout.duration, self._given(), "duration")
        return replace(self.layout, duration=duration, disorder=self.disorder)

    @cached_property
    def disorder(self) -> int | None:
        """How many ticks a row may come after rows that start later; None: stables are in the data."""
        if self.layout is None or self.layout.disorder is None:
            return None
        return self.layout.ticks(self.layout.disorder, self._given(), "disorder")

    @property
    def infers_progress(self) -> bool:
        """How far channels have come follows from their rows."""
        return self.progress is not None or self.disorder is not None

    @cached_property
    def properties(self) -> Properties:
        """What is declared, and what follows from the columns."""
        facts, longest = set[Fact](), self.declared.longest
        if not self.is_lossy():
            facts.add(Fact.COMPLETE)
        if self.layout is None or self.infers_progress or self.layout.kind is not None:
            facts.add(Fact.PUNCTUATED)
        if self.layout is not None and self.layout.kind is None:
            facts.add(Fact.INSERT_ONLY)
            if self.layout.end is None:
                lasts = self.layout.ticks(self.layout.duration, self._given(), "duration")
                longest = lasts or 1
        known = self.declared | Properties(frozenset(facts), longest=longest)
        return known.spread() if self.has_channels() else known

    @cached_property
    def of_events(self) -> Properties:
        """What is known of its events: those of changes are rows, which end by adjusts."""
        if not self.of_changes:
            return self.properties
        stay = (fact for fact in self.properties if fact not in (Fact.INSERT_ONLY, Fact.PERFECT))
        return self.properties.keep(*stay)

    def has_channels(self) -> bool:
        """A replica may speak through several channels, each in its own order."""
        return self.layout is not None and self.layout.channel not in (None, self.layout.replica)

    def is_lossy(self, replica: str | None = None) -> bool:
        """Whether a replica, or any, may have lost rows."""
        if isinstance(self.lossy, bool):
            return self.lossy
        return bool(self.lossy) if replica is None else replica in self.lossy

    def admission(self) -> Admission:
        """What the gate of this source goes by."""
        return Admission(
            replicas=self.replicas,
            awaited=self.awaited,
            lossy=self.lossy,
            promised=self.of_events if self.replicas else None,
            progress=self._progress(),
            of_changes=self.of_changes,
        )

    def _progress(self) -> Progress:
        if self.progress is not None:
            return self.progress
        return Stated() if self.disorder is None else Disorder(self.disorder)

    def settings(self) -> dict[str, str]:
        """How rows are read and what is declared; disorder, and which replicas are awaited, may change."""
        lossy = self.lossy if isinstance(self.lossy, bool) else sorted(self.lossy)
        own = {
            "replicas": str(self.replicas),
            "lossy": str(lossy),
            "declared": f"{self.declared}; key {self.declared.key}, longest {self.declared.longest}",
            "by_time": str(self.by_time),
        }
        if self.progress is not None:
            own["progress"] = str(self.progress)
        if self.layout is None:
            columns = self.columns if self.columns is not None else ()
            return {"columns": ", ".join(f"{one.name}: {one.type}" for one in columns), **own}
        exact = {f"{PAYLOAD_COLUMN}{one.name!r}": str(one.type) for one in self.read_payload}
        exact |= {role: repr(name) for role, name in self.layout.roles().items()}
        exact["start" if self.layout.key is None else "time"] = (
            f"{self.layout.start!r} ({self.clock or 'ticks'})"
        )
        lines = {name: exact.get(name, value) for name, value in self.wide_settings.items()}
        return lines | own

    def words(self) -> str:
        """Its name and what it is of."""
        what = "elements" if self.layout is None else "changes" if self.of_changes else "rows"
        late = ""
        if self.disorder is not None:
            late = f", at most {length_text(self.disorder, clock_of(self.clock))} late"
        elif self.progress is not None:
            late = f", {self.progress}"
        lossy = "" if isinstance(self.lossy, bool) else f", {', '.join(sorted(self.lossy))} lossy"
        return f"{self.name}: {what}{' of replicas' if self.replicas else ''}{late}{lossy}"


def declared(value: Any) -> Properties:
    """Properties as people write them."""
    if value is None:
        return Properties()
    if isinstance(value, Properties):
        return value
    facts: Iterable[Fact | str] = [value] if isinstance(value, str | Fact) else value
    return Properties.of(*facts)
