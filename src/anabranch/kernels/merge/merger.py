"""Logical merge by itself: inputs come and go, elements go in, one stream comes out.

`Merger` gives names to the numbers of a kernel, picks the kernel from what the inputs declare, and answers
for every element: it is used, left out with a reason, or refused with an error. See `docs/merge.md`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.choice import ORDERED, Choice, Side, choose
from anabranch.kernels.merge.dumping import case_of, dumped, restore
from anabranch.kernels.merge.moving import known_to, tell
from anabranch.kernels.merge.nodes import ABSENT
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import R3
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.report import explanation, status_of
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.status import Disagreement, Status
from anabranch.kernels.merge.tally import Input, Tally
from anabranch.kernels.merge.trail import Trail
from anabranch.kernels.merge.widening import widened
from anabranch.model.application import BROKEN, VALID, check_times
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.elements import Adjust, Attach, Detach, Element, Insert, Stable
from anabranch.model.identity import Words
from anabranch.model.output_policy import FinalOnly, FirstThenFinal, OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.relation import as_batch
from anabranch.model.schema import Columns, conformed
from anabranch.model.time import BEGINNING, FOREVER, checked_tick, tick_text
from anabranch.model.validity import Drop, InvalidElementError, Policy, Quarantine, Raise, Rule, Violation

EXAMPLES = 100
"""Disagreements that are kept in full."""


@dataclass(frozen=True, slots=True)
class Generalise:
    """Where an input breaks a property, go on in the next case that does not need it, with nothing lost.

    What the output had made stable before, relying on the promise, stays as it is. To be able to move, R0, R1
    and R2 keep every event that is not final instead of a few counts.
    """


OnBroken: TypeAlias = Raise | Drop | Generalise | Policy


class BrokenPropertyError(InvalidElementError):
    """An input broke a property that was declared for it.

    The element was left out; all others were merged, and ``output`` is what came of them.
    """


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
        self.forced = _case(case)
        self.policy = _checked("policy", policy or FirstThenFinal(), OutputPolicy)
        self.pace = _checked("pace", pace, Pace)
        if isinstance(identity, str):
            error = TypeError(f"identity is a list of column names, {identity!r} is one name")
            error.add_note(f"Write identity=[{identity!r}].")
            raise error
        self.identity = None if identity is None else tuple(identity)
        answers = (Raise, Drop, Quarantine)
        self.on_invalid: Policy = _checked("on_invalid", on_invalid or Raise(), *answers)
        self.on_broken: OnBroken = _checked("on_broken", on_broken or Raise(), *answers, Generalise)
        self.on_late: Policy = _checked("on_late", on_late or Drop(), *answers)
        self.remember = _checked("remember", remember, int)
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
        self._owed: Violation | None = None

    def __repr__(self) -> str:
        case = "not running yet" if self.kernel is None else case_of(self.kernel)
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
        if not isinstance(name, str):
            error: Exception = TypeError(f"an input is named by a text, {name!r} is of {type(name).__name__}")
            error.add_note(f"Write {str(name)!r}: a name is the same in what is dumped, recorded and shown.")
            raise error
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
        output = self._generalised_for(name, side)
        time = BEGINNING if guarantee is None else checked_tick(guarantee, "a guarantee")
        number = self._free_number()
        self.attaches += 1
        keyed = facts is not None and Fact.KEYED in facts
        stable = self._reached()
        self.sides.attach(number, time, self.attaches, complete=complete, keyed=keyed, stable=stable)
        self.inputs[name] = Input(number, side)
        self.declared[name] = side
        self.tallies.setdefault(name, Tally())
        if isinstance(self.kernel, R4) and not complete:
            self.kernel.evidence = True
        return concat([output, self._settled(name)]) if len(output) else self._settled(name)

    def detach(self, name: str) -> Batch:
        """An input leaves, at any moment; what comes out.

        What it alone supported stays until others decide.
        """
        number = self._attached(name).number
        self.count_conduct(name)
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
        self.sides.joined[self._attached(name).number] = True
        return self._settled(name)

    def push(self, name: str, elements: Any) -> Any:
        """What comes out when an input says elements, in the form they came in.

        Elements (one or many) give a list of elements, a `Batch` gives a batch, an Arrow table or record
        batch gives the same.
        """
        output = self._pushed(name, as_batch(elements))
        return _like(elements, output)

    def shows(
        self, name: str, identities: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How often an input shows each of some events now, as far as they can still change."""
        if name not in self.inputs or not isinstance(self.kernel, R3 | R4):
            return np.zeros(len(start), np.int64)
        return self.kernel.shows(self.inputs[name].number, identities, start, end)

    def play(self, recording: Batch, *, attach: Callable[[str, int | None], Batch] | None = None) -> Batch:
        """What comes out of a recording of several inputs; they are attached and detached as it says.

        An input that is not attached explicitly is attached, as complete, by its first element; one that was
        detached says nothing until it is attached again. ``attach`` takes the place of `attach`, for inputs
        that are lossy or promise something.
        """
        _checked("a recording", recording, Batch)
        if recording.input is None:
            raise ValueError("a recording says which input said each element, this one is of a single stream")
        attach = attach or self.attach
        turns = np.flatnonzero(
            (np.diff(recording.input, prepend=-1) != 0)
            | (recording.kind >= Kind.ATTACH)
            | (np.roll(recording.kind, 1) >= Kind.ATTACH)
        )
        parts = [recording[:0].untagged()]
        try:
            for begin, end in pairwise([*turns.tolist(), len(recording)]):
                name, turn = recording.inputs[recording.input[begin]], recording[begin:end].untagged()
                match turn.element(0) if turn.kind[0] >= Kind.ATTACH else None:
                    case Attach() if name in self.inputs:
                        self._refuse(Rule.ALREADY_ATTACHED, name, turn)
                    case Attach(guarantee):
                        parts.append(attach(name, None if guarantee == BEGINNING else guarantee))
                    case Detach() if name in self.inputs:
                        parts.append(self.detach(name))
                    case None if name in self.inputs or name not in self.tallies:
                        parts += [] if name in self.inputs else [attach(name, None)]
                        parts.append(self._pushed(name, turn))
                    case _:
                        self._refuse(Rule.DETACHED_INPUT, name, turn)
        except InvalidElementError as error:
            parts += [] if error.output is None else [error.output]
            error.output = _whole(parts)
            raise
        return _whole(parts)

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
            self.kernel = self._made(self.choice.case)
            ordered = self.choice.case in ORDERED
            if isinstance(self.policy, FinalOnly) and (self.can_move() or not ordered):
                self.cleanse = Cleanse(ordered=False)
            if ordered and self.can_move():
                self.trail = Trail()
        return self.kernel

    def _made(self, case: Case) -> Ordered | R3 | R4:
        if case in ORDERED:
            return Ordered(case, self.sides)
        if case is Case.R3:
            return R3(self.sides, self.policy, self.remember)
        lossy = any(not side.complete for side in self.declared.values())
        return R4(self.sides, self.policy, self.pace, lossy, self.remember)

    def _settled(self, name: str | None) -> Batch:
        """What comes out after inputs came, left or were made to join."""
        if self.kernel is None:
            return Batch.of([])
        try:
            output = self._kept(self.kernel.settle())
        except Broken as broken:
            news, pending = self._mended(broken)
            output = concat([self._kept(broken.output), self._kept(news), self._fed(pending)])
        return self._out(name, output)

    def _pushed(self, name: str, batch: Batch) -> Batch:
        one = self._attached(name)
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
        batch = self._valid(name, one, batch)
        widen()
        self.tallies[name].elements += len(batch)
        self._running()
        output = self._out(name, self._fed([(one.number, self._lagging(batch).told_apart_by(self.identity))]))
        if self._owed is not None:
            owed, self._owed = self._owed, None
            broken = BrokenPropertyError(owed)
            broken.output = output
            raise broken
        return output

    def _refuse(self, rule: Rule, name: str, turn: Batch) -> None:
        """What an input may not say while it is, or is not, attached; the policy hears of each element."""
        tally = self.tallies.setdefault(name, Tally())
        self.declared.setdefault(name, Side())
        said = self.inputs[name].said if name in self.inputs else tally.said
        for row in range(len(turn)):
            tally.refused += 1
            position = tally.elements + tally.refused
            self.on_invalid(Violation(rule, position, turn.element(row), said, name))

    def _check_identity(self, nothing: Batch) -> None:
        """Refuse payloads that cannot be told apart before anything of their batch is used."""
        nothing = nothing.told_apart_by(self.identity)
        if self.kernel is None:
            case = choose(self.declared_now(), self.policy, self.forced).case
        else:
            case = Case[case_of(self.kernel)]
        if case is not Case.R0 or self.can_move():
            _ = nothing.identities

    def _valid(self, name: str, one: Input, batch: Batch) -> Batch:
        """The elements that break no rule by their times; the policy hears of the others first."""
        rules = np.full(len(batch), VALID, np.int8)
        said = check_times(batch.kind, batch.start, batch.end, batch.old_end, one.said, rules)
        first = self.tallies[name].elements + self.tallies[name].refused + 1
        invalid = np.flatnonzero(rules != VALID)
        if len(invalid) and not isinstance(self.on_invalid, Drop):
            frontiers = np.maximum.accumulate(np.where(batch.kind == Kind.STABLE, batch.start, BEGINNING))
            for row, element in zip(invalid.tolist(), batch.take(invalid).elements(), strict=True):
                frontier = max(one.said, int(frontiers[row]))
                self.on_invalid(Violation(BROKEN[rules[row]], first + row, element, frontier, name))
        one.said = said
        self.tallies[name].refused += len(invalid)
        return batch.take(rules == VALID) if len(invalid) else batch

    def _lagging(self, batch: Batch) -> Batch:
        if not self.policy.lag:
            return batch
        stables = (batch.kind == Kind.STABLE) & (batch.start != FOREVER)
        least = np.maximum(batch.start, BEGINNING + self.policy.lag)
        return batch.with_starts(np.where(stables, least - self.policy.lag, batch.start))

    def _fed(self, pending: list[tuple[int, Batch]]) -> Batch:
        """What the kernel says to what numbers say, whichever kernel it is by then."""
        parts = []
        while pending:
            (number, batch), *pending = pending
            kernel = self._running()
            try:
                if isinstance(kernel, Ordered):
                    output = kernel.push(number, batch)
                else:
                    output = kernel.push(number, batch, leave_out=not isinstance(self.on_broken, Generalise))
                if self.trail is not None:
                    self.trail.hear(number, batch, kernel.stable)
                parts.append(self._kept(output))
                self._tell_repeats(number, batch)
                self._tell_late(number, batch)
            except Broken as broken:
                if self.trail is not None:
                    left = sum(len(part) for i, part in broken.pending if i == number)
                    self.trail.hear(number, batch[: len(batch) - left], kernel.stable)
                parts.append(self._kept(broken.output))
                self._tell_late(number, batch)
                news, mended = self._mended(broken)
                parts.append(self._kept(news))
                pending = mended + pending
        return concat(parts)

    def _kept(self, output: Batch) -> Batch:
        """Output of the kernel, with what it leaves behind noted."""
        kernel = self.kernel
        if self.trail is not None and isinstance(kernel, Ordered):
            self.trail.say(output, kernel.stable)
        if kernel is not None and not isinstance(kernel, Ordered) and kernel.notes.rows[0]:
            self._note_disagreements(kernel)
        return replace(output)

    def _out(self, name: str | None, output: Batch) -> Batch:
        """What the policy lets out of what the kernel says, counted."""
        if self.cleanse is not None:
            output = self.cleanse.push(output)
        self.counts += np.bincount(output.kind, minlength=3)[:3]
        if name is not None:
            self.tallies[name].led += len(output)
        return output

    def _mended(self, broken: Broken) -> tuple[Batch, list[tuple[int, Batch]]]:
        """What comes out when a promise was broken, and what is still to be said."""
        (number, part), *others = broken.pending
        name, position = self._said_by(number, part)
        if isinstance(self.on_broken, Generalise):
            why = f"{name} is not {broken.fact}, by its element {position}"
            news, queued = self._generalise(name, broken.fact, why)
            return news, queued + broken.pending
        self._leave_out(name, broken.fact, position, part[:1])
        return part[:0], [(number, part[1:]), *others]

    def _leave_out(
        self, name: str, fact: Fact, first: int, broken: Batch, rows: Iterable[int] = (0,)
    ) -> None:
        """Count elements that break a promise as refused, and tell the policy of each."""
        tally, answer = self.tallies[name], self.on_broken
        assert not isinstance(answer, Generalise), "which leaves nothing out"
        tally.elements -= len(broken)
        tally.refused += len(broken)
        if isinstance(answer, Drop):
            return
        why = f"{self.forced.name} was forced, so" if self.forced else "as was declared,"
        for row, element in zip(rows, broken.elements(), strict=True):
            detail = f"{why} {name} must be {fact} ({fact.value}), and is not by {_brief(element)}"
            violation = Violation(Rule.BROKEN_PROPERTY, first + row, element, self._reached(), name, detail)
            if isinstance(answer, Raise):
                self._owed = self._owed or violation
                return
            answer(violation)

    def _generalised_for(self, name: str, side: Side) -> Batch:
        """Make room for an input that promises less than the case needs."""
        if self.kernel is None:
            return Batch.of([])
        wanted = choose(self.declared_now() | {name: side}, self.policy, self.forced)
        if list(Case).index(wanted.case) <= list(Case).index(Case[case_of(self.kernel)]):
            return Batch.of([])
        if isinstance(self.kernel, Ordered) and self.trail is None:
            error = ValueError(f"{case_of(self.kernel)} is running, and {name!r} needs {wanted.reason}")
            error.add_note(
                "Attach it before the first push, or let the merge generalise (on_broken=Generalise())."
            )
            raise error
        self.declared[name] = side
        news, queued = self._move(wanted, f"{name} was attached")
        return self._out(None, concat([self._kept(news), self._fed(queued)]))

    def _generalise(self, name: str, fact: Fact, why: str) -> tuple[Batch, list[tuple[int, Batch]]]:
        """Go on without a fact; what comes out, and what is queued and still to be said."""
        assert self.kernel is not None
        running = Case[case_of(self.kernel)]
        one = self.inputs[name]
        declared = one.declared.properties or (self.forced or running).value
        one.declared = self.declared[name] = replace(one.declared, properties=declared.without(fact))
        if fact is Fact.KEYED:
            self.sides.keyed[one.number] = False
        if running is Case.R4:
            return Batch.of([]), []
        inputs = {
            n: replace(s, properties=s.properties or running.value) for n, s in self.declared_now().items()
        }
        wanted = choose(inputs, self.policy)
        cases = list(Case)
        if cases.index(wanted.case) <= cases.index(running):
            case = cases[cases.index(running) + 1]
            wanted = Choice(case, f"{case.name}: the next more general case")
        return self._move(wanted, why)

    def _move(self, wanted: Choice, why: str) -> tuple[Batch, list[tuple[int, Batch]]]:
        old = self.kernel
        assert old is not None
        if self.sides.free() is None:
            self.sides = self.sides.doubled()
            old.widen(self.sides)
        queued: list[tuple[int, Batch]] = []
        if isinstance(old, Ordered):
            assert self.trail is not None
            given = self.trail.events(None, old.stable).told_apart_by(self.identity)
            queued = [(i, concat(queue)) for i, queue in old.queues.items()]
            joined = [one.number for one in self.inputs.values() if one.number not in old.queues]
            shown = {i: self.trail.events(i, old.stable).told_apart_by(self.identity) for i in joined}
        else:
            assert isinstance(old, R3)
            given, shown = known_to(old)
        self.forced = None
        try:
            self.kernel = self._made(wanted.case)
            news = tell(self.kernel, self.sides, given, shown, old.stable)
        except Broken as broken:
            # What is out by the old case need not be within the new one, but is within the most general.
            wanted = Choice(Case.R4, f"R4: what is out is not {broken.fact}")
            self.kernel = self._made(Case.R4)
            news = tell(self.kernel, self.sides, given, shown, old.stable)
        self.choice = wanted
        self.moves.append(f"{case_of(old)} to {wanted.case.name} at {tick_text(old.stable)}: {why}")
        if wanted.case not in ORDERED:
            self.trail = None
        return news, queued

    def _tell_repeats(self, number: int, batch: Batch) -> None:
        if isinstance(self.kernel, R3 | R4) and len(self.kernel.repeats):
            name, first = self._said_by(number, batch)
            rows = self.kernel.repeats
            self._leave_out(name, Fact.KEYED, first, batch.take(rows), rows.tolist())

    def _tell_late(self, number: int, batch: Batch) -> None:
        if not isinstance(self.kernel, R4) or not len(self.kernel.late) or isinstance(self.on_late, Drop):
            return
        name, first = self._said_by(number, batch)
        rows = self.kernel.late
        for row, element in zip(rows.tolist(), batch.take(rows).elements(), strict=True):
            self.on_late(Violation(Rule.LATE, first + row, element, self.kernel.stable, name))

    def _said_by(self, number: int, batch: Batch) -> tuple[str, int]:
        """The name of the input that has said a batch, and the position of its first element."""
        name = next(name for name, one in self.inputs.items() if one.number == number)
        return name, self.tallies[name].elements + self.tallies[name].refused - len(batch) + 1

    def _note_disagreements(self, kernel: R3 | R4) -> None:
        names = {one.number: name for name, one in self.inputs.items()}
        rows = kernel.notes.row[: kernel.notes.rows[0]][: EXAMPLES - len(self.disagreements)]
        kernel.notes.rows[0] = 0
        payloads = kernel.noted
        for (number, _, start, shown, given), payload in zip(rows.tolist(), payloads, strict=False):
            self.disagreements.append(
                Disagreement(
                    names.get(number, "?"),
                    {key: value for key, value in payload.items() if value is not None},
                    start,
                    None if shown == ABSENT else shown,
                    None if given == ABSENT else given,
                    kernel.stable,
                )
            )

    def count_conduct(self, name: str) -> None:
        """Add what the kernel has counted for an input to its tally."""
        number, tally = self.inputs[name].number, self.tallies[name]
        for what in ("disagreements", "holes", "filled", "late", "removed"):
            column = getattr(self.sides, what)
            setattr(tally, what, getattr(tally, what) + int(column[number]))
            column[number] = 0


def _case(case: Case | str | None) -> Case | None:
    if case is None or isinstance(case, Case):
        return case
    if str(case).upper() not in Case.__members__:
        error = ValueError(f"a case is one of {', '.join(Case.__members__)}, {case!r} is none")
        error.add_note("Leave it out, and it is picked from the properties of the inputs.")
        raise error
    return Case[str(case).upper()]


def _checked(name: str, value: Any, *kinds: type) -> Any:
    """A setting that is of one of its kinds."""
    if not isinstance(value, kinds):
        known = " or ".join(kind.__name__ for kind in kinds)
        error = TypeError(f"{name} is a {known}, not {value!r}")
        if isinstance(value, type) and issubclass(value, kinds):
            error.add_note(f"Make one: {value.__name__}().")
        raise error
    return value


def _whole(parts: list[Batch]) -> Batch:
    return concat([part for part in parts if len(part)] or parts[:1])


def _like(given: Any, output: Batch) -> Any:
    """Output in the form of what was given."""
    match given:
        case Batch():
            return output
        case pa.RecordBatch():
            return output.to_arrow()
        case pa.Table() | pa.RecordBatchReader():
            return pa.Table.from_batches([output.to_arrow()])
        case Insert() | Adjust() | Stable():
            return list(output.elements())
        case _ if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
            return pa.Table.from_batches([output.to_arrow()])
        case _:
            return list(output.elements())


def _brief(element: Element) -> str:
    words = str(element)
    return words if len(words) <= 200 else f"{words[:197]}..."
