"""Logical merge: several physical streams that mean the same, as one (LM).

`Merge` gives names to the numbers of a case's kernel, picks the case from what the inputs declare, and goes
on in a more general one where that is wanted. It takes valid elements (`kernels/validity.py`) and acts on
stables where they stand. What breaks a declared property, or comes too late from a lossy input, is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.kernel import Refused, Report, Result, State
from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.choice import ORDERED, Choice, Side, choose
from anabranch.kernels.merge.generalise import go_on_without, make_room
from anabranch.kernels.merge.given import events_out
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import R3
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.report import count_conduct, explanation, note_disagreements, status_of
from anabranch.kernels.merge.saving import restore, saved
from anabranch.kernels.merge.settings import (
    REMEMBER,
    case_named,
    check_name,
    checked,
    columns_named,
    policy_of,
)
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.status import Disagreement, Status
from anabranch.kernels.merge.tally import Input, Tally
from anabranch.kernels.merge.trail import Trail
from anabranch.kernels.merge.widening import widened
from anabranch.model.application import STABLE
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.identity import Words
from anabranch.model.output_policy import FinalOnly, OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.schema import Columns, conformed
from anabranch.model.spelling import did_you_mean
from anabranch.model.time import BEGINNING, FOREVER, LONGEST_SPAN, checked_tick
from anabranch.model.validity import Rule

_NO_WORDS: Words = np.zeros((1, 2), np.uint64)


@dataclass(frozen=True, slots=True)
class _Nothing:
    """No events, and one row of a stable, in the columns of a stream."""

    columns: Columns
    events: Batch
    null_row: pa.RecordBatch

    @classmethod
    def of(cls, columns: Columns) -> "_Nothing":
        stable = Batch.stable(0, columns.schema)
        return cls(columns, stable[:0], stable.payload)


class Merge:
    """The kernel of merge.

    >>> from anabranch import Insert, text
    >>> merge = Merge()
    >>> for name in ("east", "west"):
    ...     _ = merge.attach(name)
    >>> print(text(merge.push("east", Batch.of([Insert({"room": "A"}, 6, 20)])).events))
    + {"room": "A"} [6, 20)
    >>> result = merge.push("west", Batch.of([Insert({"room": "A"}, 6, 25)]))
    >>> print(text(merge.advance("west", 22).events), merge.frontier)
    ~ {"room": "A"} [6, 20) -> [6, 25) 22
    """

    def __init__(
        self,
        case: Case | str | None = None,
        policy: OutputPolicy | str | None = None,
        *,
        pace: Pace = Pace.SLOWEST,
        identity: Sequence[str] | None = None,
        remember: int = REMEMBER,
        generalise: bool = False,
        stables: bool = False,
    ) -> None:
        """``case`` is forced if given, else picked from the properties of the inputs.

        ``identity`` names the payload columns that tell events apart (all, if None); the others are carried
        along from the copy that is output. ``pace`` is whose stable lossy inputs follow. ``remember`` is how
        many final events are kept to be compared with slower inputs. With ``generalise`` a broken property
        makes the case more general, and nothing is refused for it. With ``stables`` those of the output stand
        among what comes out.
        """
        self.forced = case_named(case)
        self.policy: OutputPolicy = policy_of(policy)
        self.pace: Pace = checked("pace", pace, Pace)
        self.identity = columns_named(identity)
        self.remember: int = checked("remember", remember, int)
        if not 0 <= remember < LONGEST_SPAN:
            raise ValueError(f"a merge remembers 0 events or more, and fewer than 2**62, not {remember}")
        self.generalise, self.stables = generalise, stables
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
        self.counts: NDArray[np.int64] = np.zeros(3, np.int64)
        self.disagreements: list[Disagreement] = []
        self._agreed = BEGINNING
        self._refused: list[Refused] = []
        self._nothing = _Nothing.of(self.columns)

    def __repr__(self) -> str:
        case = "not running yet" if self.kernel is None else self.kernel.case.name
        return f"<{type(self).__name__} of {', '.join(self.inputs) or 'nobody'}: {case}, {self.policy}>"

    @property
    def held(self) -> bool:
        """Its frontier depends on events: under `FinalOnly`."""
        return isinstance(self.policy, FinalOnly)

    @property
    def frontier(self) -> int:
        """The stable of the output."""
        return self._reached() if self.cleanse is None else self.cleanse.frontier

    @property
    def agreed(self) -> int:
        """The stable that the merge has reached in every shard that is told the same promises.

        In R0 to R2 an input joins when events have come that are as late as its guarantee. Another shard has
        no such event, so what counts here is when the output has come so far by stables alone.
        """
        if any(not side.complete for side in self.declared.values()):
            self._agreed = self._reached()
            return self._agreed
        joining = True
        while joining:
            before = self._agreed
            for one in self.inputs.values():
                if self.sides.guarantee[one.number] <= before:
                    self._agreed = max(self._agreed, self.policy.lagging(one.frontier))
            joining = self._agreed > before
        return self._agreed

    def attach(
        self,
        name: str,
        guarantee: int | None = None,
        properties: Properties | None = None,
        *,
        complete: bool = True,
    ) -> Result:
        """What comes of an input that joins.

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
        side = Side(properties, complete)
        time = BEGINNING if guarantee is None else checked_tick(guarantee, "a guarantee")
        news = self._kept(make_room(self, name, side))
        number = self._free_number()
        self.attaches += 1
        keyed = properties is not None and Fact.KEYED in properties
        stable = self._reached()
        self.sides.attach(number, time, self.attaches, complete=complete, keyed=keyed, stable=stable)
        self.inputs[name] = Input(number, side)
        self.declared[name] = side
        self.tallies.setdefault(name, Tally())
        return self._settled(name, news)

    def detach(self, name: str) -> Result:
        """What comes of an input that leaves; what it alone supported stays until others decide."""
        number = self.attached(name).number
        _ = self.agreed  # what it has promised counts
        count_conduct(self, name)
        self.tallies[name].frontier = self.inputs[name].frontier
        if self.kernel is not None:
            self.kernel.forget(number)
        if self.trail is not None:
            self.trail.forget(number)
        self.sides.attached[number] = False
        del self.inputs[name]
        return self._settled(None)

    def idle(self, name: str) -> Result:
        """What comes of not waiting for an input until it speaks again and has caught up."""
        number = self.attached(name).number
        self.sides.idle[number] = True
        if not self.sides.complete[number]:
            self.sides.joined[number] = False
        return self._settled(None)

    def force_join(self, name: str) -> Result:
        """What comes of an input that may lead before the output has reached its guarantee.

        The way out where all others have left: events that end before its guarantee, and that it does not
        show, are lost.
        """
        one = self.attached(name)
        one.forced = self.sides.joined[one.number] = True
        return self._settled(name)

    def push(self, name: str, batch: Batch) -> Result:
        """What comes of valid elements of an input. Where this raises, none of them has been used."""
        one = self.attached(name)
        lag = self.policy.ticks  # one that is not in ticks is refused before anything is used
        batch, widen = self.fitted(batch)
        widen()
        self.tallies[name].elements += len(batch)
        self._running()
        if lag:
            one.frontier = int(batch.start.max(where=batch.kind == Kind.STABLE, initial=one.frontier))
            batch = self._lagging(batch)
        fed = self._fed(one.number, batch.told_apart_by(self.identity))
        if not lag:
            # Without a lag the loop has found the greatest stable already.
            one.frontier = int(self.sides.reached[one.number])
        return self._given(name, fed)

    def fitted(self, batch: Batch) -> tuple[Batch, Callable[[], None]]:
        """Elements in the columns of the stream, and what puts all that is held into them.

        Raises where either cannot be, or where events could not be told apart; until it is called, nothing
        has changed.
        """
        columns = self.columns.with_rows(batch.payload)
        if (
            columns is self.columns
            and self.kernel is not None
            and batch.payload.schema.equals(columns.schema)
        ):
            return batch, _as_it_is
        self._check_identity(batch[:0])
        if batch.payload.schema != columns.schema:
            batch = batch.with_payload(conformed(batch.payload, columns.schema))
        return batch, widened(self, columns)

    def advance(self, name: str, time: int) -> Result:
        """What comes of an input being stable until a time: of a stable by itself."""
        one = self.attached(name)
        reached = self.policy.lagging(time)
        self.tallies[name].elements += 1
        one.frontier = max(one.frontier, time)
        kernel = self._running()
        if self.trail is None and not isinstance(kernel, Ordered):
            return self._given(name, self._kept(kernel.advance(one.number, reached)))
        nothing, zero = self._nothing_now(), np.zeros(1, np.int64)
        kind, start = np.array([Kind.STABLE], np.int8), np.array([reached], np.int64)
        stable = Batch(kind, start, zero, zero, nothing.null_row).identified(_NO_WORDS, self.identity)
        return self._given(name, self._fed(one.number, stable))

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

    def explain(self) -> str:
        """Which case merges the inputs and why, under which policy, and what tells events apart."""
        return explanation(self)

    def status(self) -> Status:
        """What the merge is doing."""
        return status_of(self)

    def snapshots(self) -> Mapping[str, tuple[int, int]]:
        """None: events have no snapshots."""
        return {}

    def report(self) -> Report:
        """What is held, and what came out."""
        held = [one for one in (self.kernel, self.cleanse) if one is not None]
        nbytes = sum(one.nbytes for one in (*held, self.trail) if one is not None)
        counts = dict(zip(("inserts", "adjusts", "stables"), self.counts.tolist(), strict=True))
        return Report(sum(one.live for one in held), nbytes, counts)

    def saved(self) -> State:
        """All of the state, and the settings."""
        return saved(self)

    @classmethod
    def load(cls, state: State, *, generalise: bool = False, stables: bool = False) -> "Merge":
        """The merge whose state was saved."""
        merge = cls(generalise=generalise, stables=stables)
        restore(merge, state)
        if isinstance(merge.kernel, R3 | R4):
            merge.kernel.stables = stables or merge.held
        return merge

    def attached(self, name: str) -> Input:
        """An input that is attached; a KeyError where it is not."""
        if name not in self.inputs:
            error = KeyError(f"no input {name!r} is attached{did_you_mean(name, self.inputs)}")
            error.add_note(f"Attached are: {', '.join(map(repr, self.inputs)) or 'none'}.")
            raise error
        return self.inputs[name]

    def declared_now(self) -> dict[str, Side]:
        """What was declared for the inputs that are attached."""
        return {name: one.declared for name, one in self.inputs.items()}

    def made(self, case: Case) -> Ordered | R3 | R4:
        """A kernel of a case that has heard nothing yet."""
        if case in ORDERED:
            return Ordered(case, self.sides)
        # Who lets out only what is final goes by the stables of the kernel.
        stables = self.stables or self.held
        if case is Case.R3:
            return R3(self.sides, self.policy, self.remember, stables=stables)
        return R4(self.sides, self.policy, self.pace, self.remember, stables=stables)

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
            if isinstance(self.policy, FinalOnly) and (self.generalise or not ordered):
                self.cleanse = Cleanse(ordered=False)
            if ordered and self.generalise:
                self.trail = Trail()
        return self.kernel

    def _nothing_now(self) -> _Nothing:
        if self._nothing.columns is not self.columns:
            self._nothing = _Nothing.of(self.columns)
        return self._nothing

    def _settled(self, name: str | None, news: Batch | None = None) -> Result:
        """What comes out after inputs came, left or were made to join, and after news of that."""
        if self.kernel is None:
            return Result(Batch.of([]))
        return self._given(name, _whole([*([] if news is None else [news]), self._fed(None, Batch.of([]))]))

    def _check_identity(self, nothing: Batch) -> None:
        """Refuse payloads that cannot be told apart before anything of their batch is used."""
        nothing = nothing.told_apart_by(self.identity)
        if self.kernel is None:
            case = choose(self.declared_now(), self.policy, self.forced).case
        else:
            case = self.kernel.case
        if case is not Case.R0 or self.generalise:
            _ = nothing.identities

    def _lagging(self, batch: Batch) -> Batch:
        lag = self.policy.ticks
        stables = (batch.kind == Kind.STABLE) & (batch.start != FOREVER)
        least = np.maximum(batch.start, BEGINNING + lag)
        return batch.with_starts(np.where(stables, least - lag, batch.start))

    def _kept(self, output: Batch) -> Batch:
        """Output of the kernel, with what it leaves behind noted."""
        kernel = self.kernel
        if isinstance(kernel, Ordered):
            if self.trail is not None:
                if self.identity is not None:
                    output = self.trail.alike(output, self.identity)
                self.trail.say(output, kernel.stable)
        elif kernel is not None and kernel.notes.rows[0]:
            note_disagreements(self, kernel)
        return output

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
            self._leave_out(kernel, i, said)
            if broken is not None:
                news, again = self._mended(broken)
                parts.append(self._kept(news))
                pending = [*again, *([(None, said)] if i is None else []), *pending]
                if self.trail is None and self.generalise:
                    pending = [(other, part) for other, part in pending if other in (number, None)]
        return parts[0] if len(parts) == 1 else concat(parts)

    def _said_to(self, kernel: Ordered | R3 | R4, i: int | None, said: Batch) -> Batch:
        leave_out = not self.generalise
        if i is not None:
            return kernel.push(i, said, leave_out=leave_out)
        return kernel.settle(leave_out=leave_out) if isinstance(kernel, Ordered) else kernel.settle()

    def _leave_out(self, kernel: Ordered | R3 | R4, number: int | None, said: Batch) -> None:
        """Refuse what came too late, and what repeats a key, in what a number has said or had queued."""
        if isinstance(kernel, Ordered):
            repeats, kernel.repeats = kernel.repeats, []
            for of, rows in repeats:
                self._refuse_broken(self._name_of(of), Fact.KEYED, rows)
            return
        if number is None:
            return
        if isinstance(kernel, R4) and len(kernel.late):
            self._refuse(Rule.LATE, self._name_of(number), said.take(kernel.late))
        if len(kernel.repeats):
            self._refuse_broken(self._name_of(number), Fact.KEYED, said.take(kernel.repeats))

    def _mended(self, broken: Broken) -> tuple[Batch, list[tuple[int, Batch]]]:
        """What comes out when a promise was broken, and what is still to be said."""
        (number, part), *others = broken.pending
        name = self._name_of(number)
        if self.generalise:
            tally = self.tallies[name]
            counted = tally.elements + tally.refused - len(part) + 1
            position = counted if part.origin is None else int(part.origin.number[0])
            why = f"{name} is not {broken.fact}, by its element {position}"
            return go_on_without(self, name, broken.fact, why), broken.pending
        self._refuse_broken(name, broken.fact, part[:1])
        return part[:0], [(number, part[1:]), *others]

    def _refuse_broken(self, name: str, fact: Fact, rows: Batch) -> None:
        """Count elements that break a promise as refused."""
        self.tallies[name].elements -= len(rows)
        self.tallies[name].refused += len(rows)
        why = f"{self.forced.name} was forced, so" if self.forced else "as was declared,"
        detail = f"{why} {name} must be {fact} ({fact.value}), and is not by {{element}}"
        self._refuse(Rule.BROKEN_PROPERTY, name, rows, detail)

    def _refuse(self, rule: Rule, name: str, rows: Batch, detail: str = "") -> None:
        self._refused.append(Refused(rule, rows, np.full(len(rows), self._reached()), detail, name))

    def _name_of(self, number: int) -> str:
        return next(name for name, one in self.inputs.items() if one.number == number)

    def _given(self, name: str | None, output: Batch) -> Result:
        """What the policy lets out of what the kernel says, counted, and what was refused."""
        if self.cleanse is not None:
            output = self.cleanse.act(output.told_apart_by(self.identity))
        refused: tuple[Refused, ...] = ()
        if self._refused:
            refused, self._refused = _grouped(self._refused), []
        if not len(output):
            return Result(output.plain(), refused)
        counts = np.bincount(output.kind, minlength=3)
        self.counts += counts
        if name is not None:
            self.tallies[name].led += len(output)
        if not self.stables and counts[STABLE]:
            output = self._without_stables(output, int(counts[STABLE]))
        return Result(output.plain(), refused)

    def _without_stables(self, output: Batch, stables: int) -> Batch:
        if stables == len(output):
            return self._nothing_now().events
        if stables == 1 and output.kind[-1] == Kind.STABLE:
            return output[:-1]
        return output.take(output.kind != Kind.STABLE)


def _as_it_is() -> None:
    """All that is held is in the columns of the stream already."""


def _whole(parts: list[Batch]) -> Batch:
    """Parts as one batch, with the columns of those that say something."""
    return concat([part for part in parts if len(part)] or parts[:1])


def _grouped(refused: list[Refused]) -> tuple[Refused, ...]:
    """Those of one input that break one rule, one after the other, as one."""
    runs: list[list[Refused]] = []
    for one in refused:
        if runs and (runs[-1][0].rule, *runs[-1][0][3:]) == (one.rule, *one[3:]):
            runs[-1].append(one)
        else:
            runs.append([one])
    return tuple(
        run[0]
        if len(run) == 1
        else run[0]._replace(
            batch=concat([one.batch for one in run]), known=np.concatenate([one.known for one in run])
        )
        for run in runs
    )
