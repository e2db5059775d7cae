"""Change data capture: rows that were inserted, updated and deleted, each change with its commit time.

A row is an event: it holds from the time it was committed until the time of its next change. Progress says
that no later change commits before its time.

A change cannot be taken back, so a stream is written only as far as it is final: the start of an event once a
stable has passed it, its end once that can no longer move. In between the event is there without an end. What
a reader has at a stable is therefore equal to the stream in what the stable froze, and at stable(∞) in all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias, assert_never

from anabranch.model.clock import lifetime_text, tick_text
from anabranch.model.dialects.error import DialectError
from anabranch.model.dialects.record_form import Record, RecordForm
from anabranch.model.dialects.rows import Rows
from anabranch.model.dialects.settling import Moment, Settling
from anabranch.model.elements import Adjust, Element, Insert, Payload, Stable, check_payload, check_ticks
from anabranch.model.time import BEGINNING, FOREVER


class Op(StrEnum):
    """What happened to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """A row as it was before a commit, and as it is from then on."""

    op: Op
    time: int
    before: Payload | None = None
    after: Payload | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "op", Op(self.op))
        check_ticks(self, f"a change ({self.op})", "time")
        for image in self.before, self.after:
            if image is not None:
                check_payload(image)
        if (self.after is None) != (self.op is Op.DELETE):
            raise _wrong(self, "has no row after it" if self.after is None else "has a row after it")
        if self.op is not Op.UPDATE and (self.before is None) != (self.op is Op.INSERT):
            raise _wrong(self, "has no row before it" if self.before is None else "has a row before it")
        if self.time == FOREVER:
            raise _wrong(self, "commits at the end of time")


@dataclass(frozen=True, slots=True)
class Progress:
    """No later change commits before this time."""

    time: int

    def __post_init__(self) -> None:
        check_ticks(self, "a progress", "time")


Item: TypeAlias = Change | Progress


def read(
    items: Iterable[Item], *, key: str | Sequence[str] | None = None, ordered: bool = True
) -> Iterator[Element]:
    """The elements that changes stand for.

    With a key, the row that a change ends is found by its key columns, so before-images may be partial or
    missing; without, the image before is the full row. Where changes are ordered by commit time, a later
    commit time is progress by itself.

    >>> rows = [Change(Op.INSERT, 3, after={"id": 1, "v": "a"}), Change(Op.DELETE, 5, before={"id": 1})]
    >>> list(read(rows, key="id"))[2:]
    [Stable(time=5), Adjust(payload={'id': 1, 'v': 'a'}, start=3, old_end=9223372036854775807, end=5)]
    """
    rows, frontier = Rows(_columns(key)), BEGINNING
    for item in items:
        match item:
            case Change(_, time, _, after):
                if time < frontier:
                    raise _behind(item, frontier, ordered)
                if ordered and time > frontier:
                    frontier = time
                    yield Stable(time)
                if item.op is not Op.INSERT:
                    start, row = rows.remove(_ended(rows, item), time)
                    yield Adjust(row, start, FOREVER, time)
                if after is not None:
                    rows.add(after, time)
                    yield Insert(after, time, FOREVER)
            case Progress(time):
                frontier = max(frontier, time)
                if frontier == FOREVER:
                    rows = Rows(rows.key)
                yield Stable(time)
            case _:
                assert_never(item)


def write(
    elements: Iterable[Element],
    *,
    key: str | Sequence[str] | None = None,
    unsettled: Literal["raise", "hold"] = "raise",
) -> Iterator[Item]:
    """The changes that are final, at each stable that says something new, in the order of commit time.

    With a key, a row that ends when another of its key begins is updated. What is not final when the elements
    end is an error, or is held back for good.

    Memory: the events that are not fully frozen.
    """
    if unsettled not in ("raise", "hold"):
        raise ValueError(f"unsettled is 'raise' or 'hold', not {unsettled!r}")
    settling, rows = Settling(), Rows(_columns(key))
    for element in elements:
        match element:
            case Insert():
                settling.insert(element)
            case Adjust():
                settling.adjust(element)
            case Stable(time):
                if time > settling.frontier:
                    for moment in settling.settle(time):
                        yield from _changes(rows, moment)
                    yield Progress(time)
            case _:
                assert_never(element)
    if unsettled == "raise" and settling.unsettled:
        raise _not_final(settling.unsettled)


def _changes(rows: Rows, moment: Moment) -> Iterator[Change]:
    """The changes at one time: first what ends, the latest row first, so that a reader ends what is meant."""
    ended = sorted(moment.ended, key=lambda row: -row[1])
    for row, start in ended:
        since, _ = rows.remove(row, moment.time)
        if since != start:
            raise _crossing(row, start, since, moment.time)
    for row in moment.started:
        rows.add(row, moment.time)
    # Without a key nothing says that one row follows another. With one, no name occurs twice: all were added.
    following = {rows.name(row): row for row in moment.started} if rows.key is not None else {}
    for row, _ in ended:
        after = following.pop(rows.name(row), None)
        yield Change(Op.DELETE if after is None else Op.UPDATE, moment.time, row, after)
    for row in moment.started if rows.key is None else following.values():
        yield Change(Op.INSERT, moment.time, after=row)


def _columns(key: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if key is None else (key,) if isinstance(key, str) else tuple(key)


def _ended(rows: Rows, change: Change) -> Payload:
    """The image that names the row a change ends."""
    if change.before is not None and rows.named(change.before):
        return change.before
    image = change.before if change.after is None or rows.key is None else change.after
    if image is None:
        raise _wrong(change, "has no image of the row before it, and no key is given to find it by")
    return image


def _text(change: Change) -> str:
    return f"the {change.op} of {dict(change.after or change.before or {})} at {tick_text(change.time)}"


def _wrong(change: Change, what: str) -> DialectError:
    return DialectError(
        f"{_text(change)} {what}",
        "an insert has the row after, a delete the row before, an update both, at a time that is reached",
        "With read(..., key=columns) an update needs no row before, and a delete only its key columns.",
    )


def _behind(change: Change, frontier: int, ordered: bool) -> DialectError:
    return DialectError(
        f"{_text(change)} is behind {tick_text(frontier)}",
        "progress, or a later commit among ordered rows, has said that no more changes commit before that",
        "Sort the rows by commit time, or send progress later."
        + (" For rows in another order, read(..., ordered=False)." if ordered else ""),
    )


def _crossing(row: Payload, start: int, since: int, time: int) -> DialectError:
    return DialectError(
        f"the delete of {dict(row)} {lifetime_text(start, time)} would be read as the end of the equal row "
        f"that began at {tick_text(since)}",
        "a delete does not say which of several equal rows ends, and a reader ends the latest",
        "Give the rows a column that tells them apart.",
    )


def _not_final(number: int) -> DialectError:
    return DialectError(
        f"the elements end and {number} of the events are not final",
        "a change row cannot be taken back, so they have not been written, or not their ends",
        "End the stream with stable(FOREVER), or write only what is final with unsettled='hold'.",
    )


_FORM = RecordForm(
    "op",
    {
        "insert": ("time", "after"),
        "update": ("time", "before?", "after"),
        "delete": ("time", "before"),
        "progress": ("time",),
    },
)


def to_record(item: Item) -> Record:
    """An item as a plain dict.

    >>> to_record(Change(Op.DELETE, 9, before={"id": 1}))
    {'op': 'delete', 'time': 9, 'before': {'id': 1}}
    """
    return _FORM.record("progress" if isinstance(item, Progress) else str(item.op), item)


def from_record(record: Mapping[str, Any]) -> Item:
    """The item a plain dict stands for."""
    op, values = _FORM.parse(record)
    return Progress(**values) if op == "progress" else Change(Op(op), **values)
