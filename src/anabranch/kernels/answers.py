"""What is done with rows that were not used: they are raised, dropped or set aside, as policies say.

Kernels give them as data (`Refused`). Here, and nowhere else, they become violations with the element as an
object and the reason in words; of those that are dropped none is made.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from anabranch.kernels.kernel import Refused
from anabranch.model.clock import Dial
from anabranch.model.elements import Adjust, Control, Element, Insert
from anabranch.model.validity import (
    BrokenPropertyError,
    Drop,
    InvalidElementError,
    Policy,
    Raise,
    Rule,
    Violation,
)

_POLICIES = ("on_invalid", "on_broken", "on_late")


@dataclass(frozen=True, slots=True)
class Answers:
    """What is done with elements that break a rule of validity, a declared property, or come too late."""

    on_invalid: Policy = field(default_factory=Raise)
    on_broken: Policy = field(default_factory=Raise)
    on_late: Policy = field(default_factory=Drop)

    def of(self, owner: object) -> "Answers":
        """The same, but for what an operator or a source says itself."""
        own = {name: getattr(owner, name, None) for name in _POLICIES}
        return replace(self, **{name: policy for name, policy in own.items() if policy is not None})

    def to(self, rule: Rule) -> Policy:
        """What is done with what breaks a rule."""
        match rule:
            case Rule.LATE:
                return self.on_late
            case Rule.BROKEN_PROPERTY:
                return self.on_broken
            case _:
                return self.on_invalid


_TICKS = Dial()


def answered(
    name: str, refused: Iterable[Refused], answers: Answers, dial: Dial = _TICKS
) -> Exception | None:
    """Tell the policies of all that an input said and was refused; the first error that comes of it.

    Times are told as ``dial`` shows them. Where a function that sets aside fails, it is asked for the others
    all the same.
    """
    first: Exception | None = None
    for group in refused:
        answer = answers.to(group.rule)
        if isinstance(answer, Drop):
            continue
        for violation in violations(name, group, dial):
            if isinstance(answer, Raise):
                first = first or error_of(violation)
                break
            try:
                answer(violation)
            except InvalidElementError as error:
                first = first or error
            except Exception as error:
                error.add_note(f"Refused, and not set aside: {violation.message}.")
                first = first or error
    return first


def error_of(violation: Violation) -> InvalidElementError:
    """What is raised for a violation."""
    broken = violation.rule is Rule.BROKEN_PROPERTY
    return BrokenPropertyError(violation) if broken else InvalidElementError(violation)


def violations(name: str, refused: Refused, dial: Dial = _TICKS) -> Iterator[Violation]:
    """Each refused row as a violation of an input; its position is its number, or its place among them."""
    origin, whose = refused.batch.origin, refused.name if refused.name is not None else name
    for row, element in enumerate(refused.batch.objects()):
        position = row + 1 if origin is None else int(origin.number[row])
        known = int(refused.known[row])
        detail = in_words(refused.detail, known, element, dial)
        place = "" if origin is None else origin.place_of(row)
        yield Violation(refused.rule, position, element, known, whose, detail, place, dial)


def in_words(detail: str, known: int, element: Element | Control | str, dial: Dial = _TICKS) -> str:
    """The values that break a rule, with those of one row."""
    if "{" not in detail:
        return detail
    brief = _told(element, dial)
    brief = brief if len(brief) <= 200 else f"{brief[:197]}..."
    return detail.replace("{known}", dial.text(known)).replace("{element}", brief)


def _told(element: Element | Control | str, dial: Dial) -> str:
    """An element with its times as they are told."""
    match element:
        case Insert(payload, start, end) if dial != _TICKS:
            return f"Insert(payload={dict(payload)}, start={dial.text(start)}, end={dial.text(end)})"
        case Adjust(payload, start, old_end, end) if dial != _TICKS:
            ends = f"old_end={dial.text(old_end)}, end={dial.text(end)}"
            return f"Adjust(payload={dict(payload)}, start={dial.text(start)}, {ends})"
        case _:
            return str(element)
