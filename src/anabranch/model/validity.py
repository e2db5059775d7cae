"""Which element may follow which prefix, and what is done with one that may not.

With L the greatest stable said so far (LM III-C; ends equal to L are still open):

- insert: ``start < end`` and ``start >= L``
- adjust: ``start <= end``, ``old_end >= L``, ``end >= L``, and an event (payload, start, old_end) is there
- stable: always; one at or before L says nothing new

After ``stable(FOREVER)`` no insert and no adjust is valid.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from anabranch.errors import AnabranchError
from anabranch.model.clock import Dial
from anabranch.model.elements import Adjust, Control, Element, Insert


class Rule(Enum):
    """What an element must obey. The value is the code that logs and files carry; it never changes."""

    EMPTY_LIFETIME = "empty-lifetime"
    NEGATIVE_LIFETIME = "negative-lifetime"
    INSERT_BEHIND_STABLE = "insert-behind-stable"
    ADJUST_OF_FROZEN = "adjust-of-frozen"
    ADJUST_BEHIND_STABLE = "adjust-behind-stable"
    NO_SUCH_EVENT = "no-such-event"
    DETACHED_INPUT = "detached-input"
    ALREADY_ATTACHED = "already-attached"
    MALFORMED = "malformed"
    LATE = "late"
    BROKEN_PROPERTY = "broken-property"
    CHANGE_BEHIND_STABLE = "change-behind-stable"
    NO_SUCH_ROW = "no-such-row"
    ROW_IS_THERE = "row-is-there"
    FAILED = "failed"

    @property
    def statement(self) -> str:
        """The rule in words."""
        return _STATEMENTS[self]

    @property
    def breach(self) -> str:
        """What an element that breaks it is or does, in words."""
        return _BREACHES[self]

    @property
    def way_out(self) -> str:
        """What whoever wrote the stream can do about it."""
        return _WAYS_OUT[self]


_STATEMENTS = {
    Rule.EMPTY_LIFETIME: "an inserted event ends after it starts",
    Rule.NEGATIVE_LIFETIME: "an event does not end before it starts",
    Rule.INSERT_BEHIND_STABLE: "an event is inserted at or after the last stable",
    Rule.ADJUST_OF_FROZEN: "an event that ended before the last stable is not adjusted",
    Rule.ADJUST_BEHIND_STABLE: "an end is not moved to before the last stable",
    Rule.NO_SUCH_EVENT: "an adjust names an event that is there, by payload, start and old end",
    Rule.DETACHED_INPUT: "an input that has been detached says nothing until it is attached again",
    Rule.ALREADY_ATTACHED: "an input is attached once, before it says anything, until it is detached",
    Rule.LATE: "what a lossy input shows comes before the output is stable beyond its start",
    Rule.BROKEN_PROPERTY: "an input has the properties that were declared for it",
    Rule.CHANGE_BEHIND_STABLE: "a change commits at or after the last stable",
    Rule.NO_SUCH_ROW: "an update or a delete changes a row that is there by then, by its key",
    Rule.ROW_IS_THERE: "a row is inserted where no row of its key is there",
    Rule.FAILED: "an expression or a function gives a value for every row",
    Rule.MALFORMED: "a record has the fields of a row or of an element, in their types",
}

_BREACHES = {
    Rule.EMPTY_LIFETIME: "has an empty lifetime",
    Rule.NEGATIVE_LIFETIME: "has a negative lifetime",
    Rule.INSERT_BEHIND_STABLE: "is an insert behind the stable",
    Rule.ADJUST_OF_FROZEN: "adjusts an event that is frozen",
    Rule.ADJUST_BEHIND_STABLE: "moves an end behind the stable",
    Rule.NO_SUCH_EVENT: "adjusts an event that is not there",
    Rule.DETACHED_INPUT: "is of an input that is detached",
    Rule.ALREADY_ATTACHED: "attaches an input that is attached",
    Rule.MALFORMED: "is malformed",
    Rule.LATE: "is late",
    Rule.BROKEN_PROPERTY: "breaks a declared property",
    Rule.CHANGE_BEHIND_STABLE: "is a change behind the stable",
    Rule.NO_SUCH_ROW: "changes a row that is not there",
    Rule.ROW_IS_THERE: "inserts a row that is there",
    Rule.FAILED: "has no value",
}

_WAYS_OUT = {
    Rule.EMPTY_LIFETIME: "Give a point event the lifetime [t, t + 1).",
    Rule.NEGATIVE_LIFETIME: "To remove the event, adjust its end to its start.",
    Rule.INSERT_BEHIND_STABLE: "Send the stable later, or send this insert before it.",
    Rule.ADJUST_OF_FROZEN: "Send the stable later, or correct the event before it.",
    Rule.ADJUST_BEHIND_STABLE: "Send the stable later, or end the event at or after it.",
    Rule.NO_SUCH_EVENT: "Check the old end: it is the end the event has now, not the one it began with.",
    Rule.DETACHED_INPUT: "Record an attach before it speaks again.",
    Rule.ALREADY_ATTACHED: "Record a detach before the second attach.",
    Rule.LATE: "Let the stable of the output lag, or mark inputs that are silent as idle less readily.",
    Rule.BROKEN_PROPERTY: "Declare less, force a more general case, or let the merge generalise.",
    Rule.CHANGE_BEHIND_STABLE: "Send progress later, or allow for more disorder.",
    Rule.NO_SUCH_ROW: "Begin with the rows of the table as inserts, or send updates as upserts.",
    Rule.ROW_IS_THERE: "Delete the row first, or send inserts as upserts.",
    Rule.FAILED: "Leave such rows out with a filter before, or write the expression so that it has one.",
    Rule.MALFORMED: "The file formats are described in docs/formats.md.",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One element that broke one rule, with what was known when it did.

    The position counts the elements of its stream from 1; that of a malformed record counts lines. The place
    says where it was read, where that is known: a file and a line, a partition and an offset.
    """

    rule: Rule
    position: int
    element: Element | Control | str
    frontier: int
    input: str | None = None
    detail: str = ""
    place: str = ""
    dial: Dial = field(default_factory=Dial, repr=False)
    """How times are told."""

    @property
    def code(self) -> str:
        """The rule's code."""
        return self.rule.value

    @property
    def message(self) -> str:
        """The rule broken, with the values that break it."""
        what = "line" if self.rule is Rule.MALFORMED else "element"
        whose = f" of input {self.input!r}" if self.input is not None else ""
        where = f"{self.place or f'{what} {self.position}'}{whose}"
        code = "" if self.code in self.rule.breach else f" ({self.code})"
        return f"{where} {self.rule.breach}{code}: {self.rule.statement}; {self.detail or self._values()}"

    def _values(self) -> str:
        text = self.dial.text
        last = text(self.frontier)
        match self.rule, self.element:
            case ((Rule.EMPTY_LIFETIME | Rule.NEGATIVE_LIFETIME), (Insert() | Adjust() as element)):
                return f"this one starts at {text(element.start)} and ends at {text(element.end)}"
            case Rule.INSERT_BEHIND_STABLE, Insert(start=start):
                return f"this one starts at {text(start)}, the last stable is {last}"
            case Rule.ADJUST_OF_FROZEN, Adjust(old_end=old_end):
                return f"this one ended at {text(old_end)}, the last stable is {last}"
            case Rule.ADJUST_BEHIND_STABLE, Adjust(end=end):
                return f"this one moves to {text(end)}, the last stable is {last}"
            case Rule.LATE, (Insert() | Adjust() as element):
                return f"this one starts at {text(element.start)}, the output is stable until {last}"
            case Rule.CHANGE_BEHIND_STABLE, _:
                return f"the last stable is {last}"
            case Rule.NO_SUCH_EVENT, Adjust() as element:
                lifetime = self.dial.lifetime(element.start, element.old_end)
                return f"no event {dict(element.payload)} {lifetime} is there"
            case _:
                return str(self.element)


class InvalidElementError(AnabranchError, ValueError):
    """An element broke a rule of validity.

    ``output`` is what came out of a merge when it refused the element, where something did.
    """

    output: Any = None

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.message)
        self.violation = violation
        self.add_note(violation.rule.way_out)


class BrokenPropertyError(InvalidElementError):
    """An input broke a property that was declared for it.

    The element was left out; all others were merged, and ``output`` is what came of them.
    """


@dataclass(frozen=True, slots=True)
class Raise:
    """Stop at the first violation. What came before it has been applied, nothing after it."""

    def __call__(self, violation: Violation) -> None:
        """Raise."""
        raise InvalidElementError(violation)


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave out what is invalid and go on."""

    def __call__(self, violation: Violation) -> None:
        """Forget the element."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Set aside what is invalid, with its reason, and go on.

    >>> aside = Quarantine()
    >>> aside.violations
    []
    """

    sink: Callable[[Violation], object] | None = None
    violations: list[Violation] = field(default_factory=list, compare=False)

    def __call__(self, violation: Violation) -> None:
        """Hand the violation to the sink, or keep it in ``violations`` where there is none."""
        (self.sink or self.violations.append)(violation)


Policy: TypeAlias = Raise | Drop | Quarantine


def check_policy(name: str, policy: object, *others: type) -> None:
    """Raise where what is to be done with something is none of the policies, or of others that it may be."""
    known = (Raise, Drop, Quarantine, *others)
    if policy is None or isinstance(policy, known):
        return
    *first, last = (f"{one.__name__}()" for one in known)
    error = TypeError(f"{name} is {', '.join(first)} or {last}, not {policy!r}")
    if isinstance(policy, type):
        error.add_note(f"Make one: {policy.__name__}().")
    raise error
