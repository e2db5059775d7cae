"""Logical merge by itself: inputs come and go, elements go in, one stream comes out.

`Merger` gives names to the numbers of a kernel, picks the kernel from what the inputs declare, and answers
for every element: it is used, left out with a reason, or refused with an error. See `docs/merge.md`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.choice import ORDERED, Choice, Side, choose
from anabranch.kernels.merge.dumping import dumped, restore
from anabranch.kernels.merge.forms import like, whole
from anabranch.kernels.merge.generalise import go_on_without, make_room
from anabranch.kernels.merge.given import events_out
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.playing import played
from anabranch.kernels.merge.r3 import R3
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.refusing import (
    answered,
    leave_out,
    note_late,
    note_repeats,
    said_by,
    valid,
)
from anabranch.kernels.merge.report import count_conduct, explanation, note_disagreements, status_of
from anabranch.kernels.merge.settings import case_named, check_name, checked
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.status import Disagreement, Status
from anabranch.kernels.merge.tally import Input, Tally
from anabranch.kernels.merge.trail import Trail
from anabranch.kernels.merge.widening import widened
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.identity import Words
from anabranch.model.output_policy import FinalOnly, FirstThenFinal, OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.relation import as_batch
from anabranch.model.schema import Columns, conformed
from anabranch.model.time import BEGINNING, FOREVER, checked_tick
from anabranch.model.validity import Drop, InvalidElementError, Policy, Quarantine, Raise, Violation


@dataclass(frozen=True, slots=True)
class Generalise:
    """Where an input breaks a property, go on in the next case that does not need it, with nothing lost.

    What the output had made stable before, relying on the promise, stays as it is. To be able to move, R0, R1
    and R2 keep every event that is not final instead of a few counts.
    """


OnBroken: TypeAlias = Raise | Drop | Generalise | Policy


class Merger:
    """Several physical streams that mean the same, merged into one.

    >>> from anabranch import Insert, Merger, Stable
    >>> merger = Merger()
    >>> for name in ("east", "west"):
    ...     _ = merger.attach(name)
    >>> merger.push("east", [Insert({"room": "A"}, 6, 20)])
    [Insert(payload={'room': 'A'}, start=6, end=20)]
    >>> merger.push("west", [Insert({"room": "A"}, 6, 25), Stable(22)])
    [Adjust(payload={'room': 'A'}, start=6, old_end=20, end=25), Stable(time=22)]
    """

    def __init__(
        self,
        case: Case | str | None = None,
        policy: OutputPolicy | None = None,
        *,
        pace: Pace = Pace.SLOWEST,
        identity: Sequence[str] | None = None,
        on_invalid: Policy | None = None,
        on_broken: OnBroken | None = None,
        on_late: Policy | None = None,
        remember: int = 16_384,
    ) -> None:
        """``case`` is forced if given, else picked from the properties of the inputs.

        ``identity`` names the payload columns that tell events apart (all, if None); the others are carried
        along from the copy that is output. ``pace`` is whose stable lossy inputs follow. ``on_invalid``,
        ``on_broken`` and ``on_late`` say what is done with elements that break a rule of validity (default:
        raise), a declared property (raise), or come too late from a lossy input (drop and count).
        ``remember`` is how many final events are kept to be compared with slower inputs.
        """
        self.forced = case_named(case)
        self.policy = checked("policy", policy or FirstThenFinal(), OutputPolicy)
        self.pace = checked("pace", pace, Pace)
        if isinstance(identity, str):
            error = TypeError(f"identity is a list of column names, {identity!r} is one name")
            error.add_note(f"Write identity=[{identity!r}].")
            raise error
        self.identity = None if identity is None else tuple(identity)
        answers = (Raise, Drop, Quarantine)
        self.on_invalid: Policy = checked("on_invalid", on_invalid or Raise(), *answers)
        self.on_broken: OnBroken = checked("on_broken", on_broken or Raise(), *answers, Generalise)
        self.on_late: Policy = checked("on_late", on_late or Drop(), *answers)
        self.remember = checked("remember", remember, int)
        if remember < 0:
            raise ValueError(f"a merge remembers 0 events or more, not {remember}")
        self.columns = Columns.none()
        self.sides = Sides.of_capacity(4)
        self.inputs: dict[str, Input] = {}
        self.declared: dict[str, Side] = {}
        self.tallies: dict[str, Tally] = {}
        self.attaches = 0
        self.kernel: Ordered | R3 | R4 | None = None
        self.choice: Choice | None = None
        self.moves: list[str] = []
        self.trail: Trail | None = None
        self.cleanse: Cleanse | None = None
        self.counts = np.zeros(3, np.int64)
        self.disagreements: list[Disagreement] = []
        self.refused: list[Violation] = []
        """What the call at work has refused so far."""
        self.owed: Batch | None = None
        """What came out of a call that raised, where the error could not carry it."""

    def __repr__(self) -> str:
        case = "not running yet" if self.kernel is None else self.kernel.case.name
        return f"<Merger of {', '.join(self.inputs) or 'nobody'}: {case}, {self.policy}>"

    @property
    def frontier(self) -> int:
        """The stable of the output."""
        if self.cleanse is not None:
            return self.cleanse.stable
        return BEGINNING if self.kernel is None else self.kernel.stable

    def attach(
        self,
        name: str,
        guarantee: int | None = None,
        properties: Properties | Fact | str | Iterable[Fact | str] | None = None,
        *,
        complete: bool = True,
    ) -> Batch:
        """An input joins; what comes out.

        ``guarantee``: it shows every event that ends at or after this time, and leads from the moment the
        output has reached it. None: it shows everything. ``properties``: what it promises (nothing, if None).
        ``complete=False``: it may have lost rows, so its silence is no evidence that an event is not there.
        """
        check_name(name)
        if name in self.inputs:
            error = ValueError(f"an input is attached once until it is detached, {name!r} is attached")
            error.add_note("Detach it first; after a restart it begins anew under the same name.")
            raise error
        if not complete and guarantee is not None:
            error = ValueError(f"a lossy input guarantees nothing, {name!r} has a guarantee of {guarantee}")
            error.add_note("Leave the guarantee out, or attach it as complete.")
            raise error
        if isinstance(properties, str | Fact):
            properties = [properties]
        facts = properties if isinstance(properties, Properties | None) else Properties.of(*properties)
        side = Side(facts, complete)
        time = BEGINNING if guarantee is None else checked_tick(guarantee, "a guarantee")
        news = self._kept(make_room(self, name, side))
        number = self._free_number()
        self.attaches += 1
        keyed = facts is not None and Fact.KEYED in facts
        stable = self._reached()
        self.sides.attach(number, time, self.attaches, complete=complete, keyed=keyed, stable=stable)
        self.inputs[name] = Input(number, side)
        self.declared[name] = side
        self.tallies.setdefault(name, Tally())
        return self._settled(name, news)

    def detach(self, name: str) -> Batch:
        """An input leaves, at any moment; what comes out.

        What it alone supported stays until others decide.
        """
        number = self._attached(name).number
        count_conduct(self, name)
        self.tallies[name].said = self.inputs[name].said
        if self.kernel is not None:
            self.kernel.forget(number)
        if self.trail is not None:
            self.trail.forget(number)
        self.sides.attached[number] = False
        del self.inputs[name]
        return self._settled(None)

    def idle(self, name: str) -> Batch:
        """Nobody waits for an input until it speaks again and has caught up; what comes out."""
        number = self._attached(name).number
        self.sides.idle[number] = True
        if not self.sides.complete[number]:
            self.sides.joined[number] = False
        return self._settled(None)

    def force_join(self, name: str) -> Batch:
        """An input may lead before the output has reached its guarantee; what comes out.

        The way out where all others have left: events that end before its guarantee, and that it does not
        show, are lost.
        """
        one = self._attached(name)
        one.forced = self.sides.joined[one.number] = True
        return self._settled(name)

    def push(self, name: str, elements: Any) -> Any:
        """What comes out when an input says elements, in the form they came in.

        Elements (one or many) give a list of elements, a `Batch` gives a batch, an Arrow table or record
        batch gives the same.
        """
        output = self._pushed(name, as_batch(elements))
        return like(elements, output)

    def shows(
        self, name: str, identities: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How often an input shows each of some events now, as far as they can still change."""
        if name not in self.inputs or not isinstance(self.kernel, R3 | R4):
            return np.zeros(len(start), np.int64)
        return self.kernel.shows(self.inputs[name].number, identities, start, end)

    def given(self) -> Batch:
        """The events that are out and can still change, each as an insert with the end it has now.

        Under `FinalOnly`, and where R0 to R2 keep no events, those that the kernel knows, or none.
        """
        if isinstance(self.kernel, R3 | R4):
            return events_out(self.kernel)
        if self.trail is not None:
            return self.trail.events(None, self._reached())
        return Batch.of([])

    def play(self, recording: Batch, *, attach: Callable[[str, int | None], Batch] | None = None) -> Batch:
        """What comes out of a recording of several inputs; they are attached and detached as it says.

        An input that is not attached explicitly is attached, as complete, by its first element; one that was
        detached says nothing until it is attached again. ``attach`` takes the place of `attach`, for inputs
        that are lossy or promise something.
        """
        return played(self, recording, attach or self.attach)

    def explain(self) -> str:
        """Which case merges the inputs and why, under which policy, and what tells events apart."""
        return explanation(self)

    def status(self) -> Status:
        """What the merge is doing."""
        return status_of(self)

    def dump(self) -> bytes:
        """The state as bytes, from which `load` goes on as if nothing had happened."""
        return dumped(self)

    @classmethod
    def load(
        cls,
        data: bytes,
        *,
        on_invalid: Policy | None = None,
        on_broken: OnBroken | None = None,
        on_late: Policy | None = None,
    ) -> "Merger":
        """The merge that was dumped; what is done with elements that break rules is said anew."""
        merger = cls(on_invalid=on_invalid, on_broken=on_broken, on_late=on_late)
        restore(merger, data)
        return merger

    def _attached(self, name: str) -> Input:
        if name not in self.inputs:
            error = KeyError(f"no input {name!r} is attached")
            error.add_note(f"Attached are: {', '.join(map(repr, self.inputs)) or 'none'}.")
            raise error
        return self.inputs[name]

    def can_move(self) -> bool:
        """A broken property makes the merge more general instead of stopping it."""
        return isinstance(self.on_broken, Generalise)

    def declared_now(self) -> dict[str, Side]:
        """What was declared for the inputs that are attached."""
        return {name: one.declared for name, one in self.inputs.items()}

    def _reached(self) -> int:
        return BEGINNING if self.kernel is None else self.kernel.stable

    def _free_number(self) -> int:
        number = self.sides.free()
        if number is None:
            self.sides = self.sides.doubled()
            if self.kernel is not None:
                self.kernel.widen(self.sides)
            number = self.sides.free()
        assert number is not None, "there is room after doubling"
        return number

    def _running(self) -> Ordered | R3 | R4:
        """The kernel, which is made when it is first needed: by then inputs have said what they promise."""
        if self.kernel is None:
            self.choice = choose(self.declared_now(), self.policy, self.forced)
            self.kernel = self.made(self.choice.case)
            ordered = self.choice.case in ORDERED
            if isinstance(self.policy, FinalOnly) and (self.can_move() or not ordered):
                self.cleanse = Cleanse(ordered=False)
            if ordered and self.can_move():
                self.trail = Trail()
        return self.kernel

    def made(self, case: Case) -> Ordered | R3 | R4:
        """A kernel of a case that has heard nothing yet."""
        if case in ORDERED:
            return Ordered(case, self.sides)
        if case is Case.R3:
            return R3(self.sides, self.policy, self.remember)
        return R4(self.sides, self.policy, self.pace, self.remember)

    def _settled(self, name: str | None, news: Batch | None = None) -> Batch:
        """What comes out after inputs came, left or were made to join, and after news of that."""
        if self.kernel is None:
            return Batch.of([])
        return self._given(name, [*([] if news is None else [news]), self._fed(None, Batch.of([]))])

    def _pushed(self, name: str, batch: Batch) -> Batch:
        one = self._attached(name)
        _ = self.policy.ticks  # a lag that is not in ticks is refused before anything is used
        if batch.input is not None or (batch.kind > Kind.STABLE).any():
            error = ValueError(
                "an input says inserts, adjusts and stables, this batch records several inputs"
            )
            error.add_note("Give it to Merger.play().")
            raise error
        self._check_identity(batch[:0])
        columns = self.columns.with_rows(batch.payload)
        if batch.payload.schema != columns.schema:
            batch = batch.with_payload(conformed(batch.payload, columns.schema))
        widen = widened(self, columns)
        batch = valid(self, name, batch)
        widen()
        self.tallies[name].elements += len(batch)
        self._running()
        return self._given(name, [self._fed(one.number, self._lagging(batch).told_apart_by(self.identity))])

    def _check_identity(self, nothing: Batch) -> None:
        """Refuse payloads that cannot be told apart before anything of their batch is used."""
        nothing = nothing.told_apart_by(self.identity)
        if self.kernel is None:
            case = choose(self.declared_now(), self.policy, self.forced).case
        else:
            case = self.kernel.case
        if case is not Case.R0 or self.can_move():
            _ = nothing.identities

    def _lagging(self, batch: Batch) -> Batch:
        lag = self.policy.ticks
        if not lag:
            return batch
        stables = (batch.kind == Kind.STABLE) & (batch.start != FOREVER)
        least = np.maximum(batch.start, BEGINNING + lag)
        return batch.with_starts(np.where(stables, least - lag, batch.start))

    def _kept(self, output: Batch) -> Batch:
        """Output of the kernel, with what it leaves behind noted."""
        kernel = self.kernel
        if self.trail is not None and isinstance(kernel, Ordered):
            self.trail.say(output, kernel.stable)
        if kernel is not None and not isinstance(kernel, Ordered) and kernel.notes.rows[0]:
            note_disagreements(self, kernel)
        return replace(output)

    def _fed(self, number: int | None, batch: Batch) -> Batch:
        """What the kernel says to what a number says, or (None) after some came or went.

        The kernel may be another by then. What other numbers said while they waited to join may be pending
        when a promise is broken: a merge that may generalise knows it already.
        """
        parts: list[Batch] = []
        pending: list[tuple[int | None, Batch]] = [(number, batch)]
        while pending:
            (i, said), *pending = pending
            kernel = self._running()
            left: list[tuple[int, Batch]] = []
            broken = None
            try:
                output = self._said_to(kernel, i, said)
            except Broken as caught:
                broken, output, left = caught, caught.output, caught.pending
            if self.trail is not None and i is not None and i == number:
                done = len(said) - sum(len(part) for other, part in left if other == i)
                self.trail.hear(i, said[:done], kernel.stable)
            parts.append(self._kept(output))
            if i is not None:
                note_late(self, kernel, i, said)
                note_repeats(self, kernel, i, said)
            if broken is not None:
                news, again = self._mended(broken)
                parts.append(self._kept(news))
                pending = [*again, *([(None, said)] if i is None else []), *pending]
                if self.trail is None and self.can_move():
                    pending = [(other, part) for other, part in pending if other in (number, None)]
        return concat(parts)

    def _said_to(self, kernel: Ordered | R3 | R4, i: int | None, said: Batch) -> Batch:
        if i is None:
            return kernel.settle()
        if isinstance(kernel, Ordered):
            return kernel.push(i, said)
        return kernel.push(i, said, leave_out=not self.can_move())

    def _mended(self, broken: Broken) -> tuple[Batch, list[tuple[int, Batch]]]:
        """What comes out when a promise was broken, and what is still to be said."""
        (number, part), *others = broken.pending
        name, position = said_by(self, number, part)
        if self.can_move():
            why = f"{name} is not {broken.fact}, by its element {position}"
            return go_on_without(self, name, broken.fact, why), broken.pending
        leave_out(self, name, broken.fact, position, part[:1])
        return part[:0], [(number, part[1:]), *others]

    def _given(self, name: str | None, parts: list[Batch]) -> Batch:
        """What the policy lets out of what the kernel says, counted; then what was refused is answered for.

        Output is the caller's when this returns. Where an answer raises, it is with the error if that is
        ours, and else owed to the next call.
        """
        output = whole(parts)
        if self.cleanse is not None:
            output = self.cleanse.push(output.told_apart_by(self.identity))
        self.counts += np.bincount(output.kind, minlength=3)[:3]
        if name is not None:
            self.tallies[name].led += len(output)
        self.owed = whole([*([] if self.owed is None else [self.owed]), output])
        refused, self.refused = self.refused, []
        error = answered(refused, self.on_invalid, self.on_broken, self.on_late)
        output, self.owed = self.owed, None
        if error is None:
            return output
        if isinstance(error, InvalidElementError):
            error.output = output
        else:
            self.owed = output
        raise error
