"""Logical merge by itself: inputs come and go, elements go in, one stream comes out.

`Merger` is the kernel `Merge` for people: it takes elements in any form, checks that they are valid, and
answers for those that are refused. See `docs/merge.md`.

Where what is invalid is to be raised, it is before anything of its batch is used: the push has not taken
place. All else that is refused is told when the batch is done and its output is safe: what is invalid first,
then what breaks a promise or is late, which shows only while a batch is merged.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.embedded.forms import like, whole
from anabranch.engines.embedded.recordings import merge_recording
from anabranch.kernels.answers import Answers, answered
from anabranch.kernels.kernel import Refused, Result, State
from anabranch.kernels.merge.choice import Side
from anabranch.kernels.merge.merge import Merge
from anabranch.kernels.merge.settings import REMEMBER, Generalise, OnBroken, Promised, properties_of
from anabranch.kernels.merge.status import Status
from anabranch.kernels.merge.tally import Input
from anabranch.kernels.store.saved import from_bytes, to_bytes
from anabranch.kernels.validity import checked as checked_elements
from anabranch.model.application import INSERT, STABLE
from anabranch.model.batch import Batch
from anabranch.model.identity import Words
from anabranch.model.origin import Origin
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Case
from anabranch.model.relation import as_batch
from anabranch.model.schema import conformed
from anabranch.model.validity import Drop, InvalidElementError, Policy, Raise, check_policy


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
        policy: OutputPolicy | str | None = None,
        *,
        pace: Pace = Pace.SLOWEST,
        identity: Sequence[str] | None = None,
        on_invalid: Policy | None = None,
        on_broken: OnBroken | None = None,
        on_late: Policy | None = None,
        remember: int = REMEMBER,
    ) -> None:
        """``case`` is forced if given, else picked from the properties of the inputs.

        ``identity`` names the payload columns that tell events apart (all, if None); the others are carried
        along from the copy that is output. ``pace`` is whose stable lossy inputs follow. ``on_invalid``,
        ``on_broken`` and ``on_late`` say what is done with elements that break a rule of validity (default:
        raise), a declared property (raise), or come too late from a lossy input (drop and count).
        ``remember`` is how many final events are kept to be compared with slower inputs.
        """
        self.merge = Merge(
            case,
            policy,
            pace=pace,
            identity=identity,
            remember=remember,
            generalise=isinstance(on_broken, Generalise),
            stables=True,
        )
        self.answers = answers_of(on_invalid, on_broken, on_late)
        self.owed: Batch | None = None
        """What came out of a call that raised, where the error could not carry it."""

    def __repr__(self) -> str:
        return repr(self.merge).replace("<Merge ", "<Merger ", 1)

    @property
    def frontier(self) -> int:
        """The stable of the output."""
        return self.merge.frontier

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The inputs that are attached, by name."""
        return self.merge.inputs

    @property
    def declared(self) -> Mapping[str, Side]:
        """What was declared about each input there has been."""
        return self.merge.declared

    @property
    def moves(self) -> Sequence[str]:
        """Changes to a more general case, and why."""
        return self.merge.moves

    def attach(
        self,
        name: str,
        guarantee: int | None = None,
        properties: Promised | None = None,
        *,
        complete: bool = True,
    ) -> Batch:
        """An input joins; what comes out.

        ``guarantee``: it shows every event that ends at or after this time, and leads from the moment the
        output has reached it. None: it shows everything. ``properties``: what it promises (nothing, if None).
        ``complete=False``: it may have lost rows, so its silence is no evidence that an event is not there.
        """
        promised = properties_of(properties)
        return self._given(name, self.merge.attach(name, guarantee, promised, complete=complete))

    def detach(self, name: str) -> Batch:
        """An input leaves, at any moment; what comes out.

        What it alone supported stays until others decide.
        """
        return self._given(name, self.merge.detach(name))

    def idle(self, name: str) -> Batch:
        """Nobody waits for an input until it speaks again and has caught up; what comes out."""
        return self._given(name, self.merge.idle(name))

    def force_join(self, name: str) -> Batch:
        """An input may lead before the output has reached its guarantee; what comes out.

        The way out where all others have left: events that end before its guarantee, and that it does not
        show, are lost.
        """
        return self._given(name, self.merge.force_join(name))

    def push(self, name: str, elements: Any) -> Any:
        """What comes out when an input says elements, in the form they came in.

        Elements (one or many) give a list of elements, a `Batch` gives a batch, an Arrow table or record
        batch gives the same.
        """
        return like(elements, self._pushed(name, as_batch(elements)))

    def shows(
        self, name: str, identities: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How often an input shows each of some events now, as far as they can still change."""
        return self.merge.shows(name, identities, start, end)

    def given(self) -> Batch:
        """The events that are out and can still change, each as an insert with the end it has now.

        Under `FinalOnly`, and where R0 to R2 keep no events, those that the kernel knows, or none.
        """
        return self.merge.given()

    def play(self, recording: Batch, *, attach: Callable[[str, int | None], Batch] | None = None) -> Batch:
        """What comes out of a recording of several inputs; they are attached and detached as it says.

        An input that is not attached explicitly is attached, as complete, by its first element; one that was
        detached says nothing until it is attached again. ``attach`` takes the place of `attach`, for inputs
        that are lossy or promise something.
        """
        return merge_recording(self, recording, attach or self.attach)

    def explain(self) -> str:
        """Which case merges the inputs and why, under which policy, and what tells events apart."""
        return self.merge.explain()

    def status(self) -> Status:
        """What the merge is doing."""
        return self.merge.status()

    def dump(self) -> bytes:
        """The state as bytes, from which `load` goes on as if nothing had happened."""
        owed = {} if self.owed is None else {"owed": State(1, {}, [self.owed.to_arrow()])}
        return to_bytes({"merge": self.merge.saved(), **owed})

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
        merger, sections = cls(on_invalid=on_invalid, on_broken=on_broken, on_late=on_late), from_bytes(data)
        generalise = merger.merge.generalise
        merger.merge = Merge.load(sections["merge"], generalise=generalise, stables=True)
        if "owed" in sections:
            merger.owed = Batch.from_arrow(sections["owed"].batches[0])
        return merger

    def _pushed(self, name: str, batch: Batch) -> Batch:
        _check_one_input(batch)
        merge = self.merge
        one, tally = merge.attached(name), merge.tallies[name]
        batch, _ = merge.fitted(batch)
        first = tally.elements + tally.refused + 1
        valid, invalid, _ = checked_elements(
            batch.with_origin(Origin(np.arange(first, first + len(batch)))), one.frontier
        )
        if invalid and isinstance(self.answers.on_invalid, Raise):
            error = answered(name, invalid, self.answers)
            assert error is not None, "what is invalid is raised"
            raise error
        if self.owed is not None:
            # What is owed goes out in the columns of what comes out now: everywhere, or nowhere.
            owed = self.owed.with_payload(conformed(self.owed.payload, batch.payload.schema))
        result = merge.push(name, valid)
        if self.owed is not None:
            self.owed = owed
        tally.refused += len(batch) - len(valid)
        return self._given(name, result, invalid)

    def _given(self, name: str, result: Result, invalid: Sequence[Refused] = ()) -> Batch:
        """What came out, after what was refused has been answered for.

        Output is the caller's when this returns. Where an answer raises, it is with the error if that is
        ours, and else owed to the next call.
        """
        output = result.events
        if self.owed is None and not invalid and not result.refused:
            return output
        self.owed = whole([*([] if self.owed is None else [self.owed]), output])
        error = answered(name, [*invalid, *result.refused], self.answers)
        output, self.owed = self.owed, None
        if error is None:
            return output
        if isinstance(error, InvalidElementError):
            error.output = output
        else:
            self.owed = output
        raise error


def _check_one_input(batch: Batch) -> None:
    if batch.input is not None or batch.kind.max(initial=INSERT) > STABLE:
        error = ValueError("an input says inserts, adjusts and stables, this batch records several inputs")
        error.add_note("Give it to Merger.play().")
        raise error


def answers_of(on_invalid: Policy | None, on_broken: OnBroken | None, on_late: Policy | None) -> Answers:
    """What is done with what is refused; a merge that generalises refuses nothing for a broken property."""
    check_policy("on_invalid", on_invalid)
    check_policy("on_broken", on_broken, Generalise)
    check_policy("on_late", on_late)
    broken = None if isinstance(on_broken, Generalise) else on_broken
    return Answers(on_invalid or Raise(), broken or Raise(), on_late or Drop())
