"""A plan that runs in this process, pass by pass: batches of each output come of what its sources are given.

One thread, no clock: the same calls give the same batches, and a plan whose state was saved goes on as if
nothing had happened.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from anabranch.engines.drive import Drive
from anabranch.engines.embedded.forms import whole
from anabranch.engines.embedded.intake import Intake, intake
from anabranch.engines.settings import check_settings
from anabranch.errors import AnabranchError
from anabranch.kernels.answers import Answers, answered
from anabranch.kernels.kernel import State
from anabranch.kernels.store.saved import StateFormatError, from_bytes, to_bytes, version_of
from anabranch.model.batch import Batch, concat
from anabranch.model.clock_columns import dial_of
from anabranch.model.spelling import did_you_mean
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import InvalidElementError, Quarantine, Raise, Rule, Violation
from anabranch.plan.node import Node, PlanError
from anabranch.plan.source import Source
from anabranch.plan.state_settings import state_settings
from anabranch.progress.gate import Gate
from anabranch.progress.inspection import Look
from anabranch.rows.refusal import Refusal
from anabranch.rows.refusal import answered as answered_rows
from anabranch.rows.row_keys import RowKeys

VERSION = 2
_JOB = "job"
_CLOSED = "closed"
POSITIONS = "positions"
"""The section of a state that says where its inputs had been read."""
_WAY_OUT = "open the plan again with what dump() gave last, and push again what was pushed since then"


class ClosedError(AnabranchError, RuntimeError):
    """A job that is closed is pushed to no more."""


class FailedJobError(AnabranchError, RuntimeError):
    """A job in which a pass failed is used no more."""


class Passes:
    """State: a flow, the gates of its sources, and what is owed where an answer raised."""

    def __init__(self, outputs: Mapping[str, Node], state: bytes | None, answers: Answers) -> None:
        self.outputs = dict(outputs)
        states = None if state is None else self._states(state)
        self.positions = None if states is None else states.pop(POSITIONS, None)
        """Where the inputs had been read, if the state is of a run and says so."""
        self.drive = Drive(outputs, states)
        self.flow, self.gates, self.sources = self.drive.flow, self.drive.gates, self.drive.sources
        self.answers = answers
        self.received = dict.fromkeys(self.sources, 0)
        """How many rows or elements each source has given."""
        self.keys = {name: RowKeys() for name in self.sources}
        """The keys that rows of each source have had since the job was opened."""
        self.refused: Counter[str] = Counter()
        """How many rows broke each rule."""
        self.closed = False
        self.failure = "in the midst of a call"
        """By what a pass was broken off, where one was, and what was pushed then."""
        self.owed: dict[str, list[Batch]] = {name: [] for name in self.flow.output}
        """What came out and was not handed over."""
        self.stables = dict.fromkeys(self.flow.output, BEGINNING)
        """The last stable in each output."""
        self.dials = {name: dial_of(node.clock) for name, node in self.sources.items()}
        if states is not None:
            self._resume(states[_JOB])

    def push(self, source: str, given: Any, replica: str | None = None) -> dict[str, Batch]:
        """What comes out when a source gives elements, a batch, a table, rows, or what is read of them."""
        taken = intake(self._source(source), given, replica, self.received[source])
        gate = self.gates[source]
        if gate.admission.of_changes:
            taken = replace(taken, rows=taken.rows.with_snapshots())
            gate.foresee(taken.rows.stretches)
        look = gate.look(taken.rows)
        self._check(source, taken, look)
        self.received[source] += len(taken)
        try:
            gate.admit(taken.rows, look)
            if self.sources[source].silent:
                gate.idle_but(self.sources[source].silent, {one.replica for one in taken.rows.stretches})
            self.drive.settle()
        except BaseException as error:
            self._break_off(error, source, len(taken))
            raise
        if taken.keys is not None:
            self.keys[source].join(taken.keys)
        return self._passed(source, taken.malformed, len(taken))

    def attach(self, source: str, replica: str, guarantee: int | None = None) -> dict[str, Batch]:
        """What comes out when a replica joins; it shows all that ends at or after its guarantee."""
        gate = self._replicas(source)
        if gate.attendance.is_attached(replica):
            error = PlanError(f"a replica is attached once until it is detached, {replica!r} is attached")
            error.add_note("Detach it first; after a restart it begins anew under the same name.")
            raise error
        gate.attach(replica, guarantee)
        return self._passed(source)

    def expect(self, source: str, replica: str) -> None:
        """A replica that is not attached is waited for from now on; what comes of it is its beginning."""
        self._replicas(source).expect(replica)

    def detach(self, source: str, replica: str) -> dict[str, Batch]:
        """What comes out when a replica of a source leaves."""
        self._attached(source, replica).leave(replica)
        return self._passed(source)

    def end_channel(self, source: str, replica: str, channel: str) -> dict[str, Batch]:
        """What comes out when one of the channels of a replica, or of a source, is at its end."""
        self._source(source)
        self.gates[source].forget(replica, channel)
        return self._passed(source)

    def idle(self, source: str, replica: str) -> dict[str, Batch]:
        """What comes out when a replica of a source is not waited for until it sends again."""
        self._attached(source, replica).idle(replica)
        return self._passed(source)

    def end_source(self, source: str, *, closes: bool = True) -> dict[str, Batch]:
        """What comes out when a source is at its end and others are not; see `Flow.end`.

        One that is stable for ever already stays, to be compared with the others.
        """
        replicated, gate = self._source(source).replicated, self.gates[source]
        unfinished = [name for name in gate.replicas if gate.stable(name) != FOREVER]
        if unfinished and not replicated:
            self.flow.end(source, closes=closes)
        for name in unfinished if replicated else ():
            if closes:
                self.flow.advance(source, FOREVER, name)
            else:
                gate.leave(name)
        return self._passed(source)

    def close(self) -> dict[str, Batch]:
        """What comes out when every source is at its end; once more where that is owed."""
        if self.closed and any(self.owed.values()):
            return self._passed("")
        self._check_open()
        for source, gate in self.gates.items():
            for name in gate.replicas:
                self.flow.advance(source, FOREVER, name)
        self.closed = True
        return self._passed("")

    def check_usable(self) -> None:
        """Raise where a pass was broken off."""
        if self.flow.midway:
            raise FailedJobError(
                f"a job in which a pass was broken off is used no more ({self.failure}); {_WAY_OUT}"
            )

    def dump(self) -> bytes:
        """The state as bytes, from which `Stream.open` goes on as if nothing had happened."""
        self._check_open()
        return to_bytes(self.saved())

    def saved(self) -> dict[str, State]:
        """The sections of the state; that of a plan that is closed is closed where it is opened."""
        self.check_usable()
        values = {
            "settings": state_settings(self.outputs),
            "received": self.received,
            "stables": self.stables,
            "owed": {name: len(parts) for name, parts in self.owed.items()},
        }
        if self.closed:
            values[_CLOSED] = True
        owed = [part.to_arrow() for parts in self.owed.values() for part in parts]
        return {_JOB: State(VERSION, values, owed), **self.drive.saved()}

    def _states(self, state: bytes) -> dict[str, State]:
        """The sections of a state, once it is known to be of this plan."""
        states = from_bytes(state)
        if _JOB not in states:
            raise StateFormatError(
                f"the state of a job is what Job.dump() gave, this has {', '.join(states) or 'nothing'} in it"
            )
        before = version_of(states[_JOB], VERSION, "a job").values["settings"]
        check_settings(before, state_settings(self.outputs), state="state", reader="plan")
        return states

    def _resume(self, saved: State) -> None:
        self.received |= saved.values["received"]
        self.stables |= saved.values["stables"]
        self.closed = _CLOSED in saved.values
        batches = list(saved.batches)
        for name, count in saved.values["owed"].items():
            self.owed[name] = [Batch.from_arrow(batches.pop(0)) for _ in range(count)]

    def _check(self, source: str, taken: Intake, look: Look) -> None:
        """Raise what is invalid before anything is used, where that is what is asked for."""
        policy, gate = self.answers.of(self.sources[source]).on_invalid, self.gates[source]
        if not isinstance(policy, Raise):
            return
        answered_rows(taken.malformed, policy)
        error = answered(source, gate.refused(taken.rows, look), Answers(policy), self.dials[source])
        if error is not None:
            raise error

    def _passed(self, source: str, malformed: Sequence[Refusal] = (), rows: int = 0) -> dict[str, Batch]:
        """What comes out of a pass; what was refused in it is answered for.

        Where an answer raises, output is with the error if that is ours, and else owed to the next call.
        """
        try:
            self.drive.run()
            for name in self.flow.output:
                self.owed[name].append(self._taken(name))
        except BaseException as failure:
            self._break_off(failure, source, rows)
            raise
        error = self._refusals(source, malformed)
        if error is not None and not isinstance(error, InvalidElementError):
            raise error
        output = {name: whole(parts) for name, parts in self.owed.items()}
        self.owed = {name: [] for name in output}
        if error is not None:
            error.output = output
            raise error
        return output

    def _break_off(self, error: BaseException, source: str, rows: int) -> None:
        """A pass has failed: what was pushed is used in part, and the state is that of no push."""
        self.flow.midway = True
        last = self.received.get(source, 0)
        which = f"row {last} of" if rows == 1 else f"rows {last - rows + 1} to {last} of"
        lost = (
            f", and {which} {source!r} {'was' if rows == 1 else 'were'} not used, or in part" if rows else ""
        )
        self.failure = f"by {type(error).__name__}{lost}"
        error.add_note(f"The pass was broken off{lost}. The job is used no more: {_WAY_OUT}.")

    def _taken(self, name: str) -> Batch:
        """Events that have come out of an output, its stable last, where that is more than the last."""
        events, frontier = self.flow.taken(name), self.flow.frontier(name)
        if frontier <= self.stables[name]:
            return events
        self.stables[name] = frontier
        return concat([events, Batch.stable(frontier, events.payload.schema)])

    def _refusals(self, source: str, malformed: Sequence[Refusal]) -> Exception | None:
        """Answer for all that was refused; the first error that comes of it."""
        first: Exception | None = None
        for node, group in self.drive.refusals():
            self.refused[group.rule.value] += len(group.batch)
            error = answered(source, [group], self.answers.of(node), dial_of(node.clock))
            if error is not None:
                node.line.note(error)
            first = first or error
        for one in malformed:
            self.refused[one.rule] += 1
            policy = self.answers.of(self.sources[source]).on_invalid
            if isinstance(policy, Quarantine):
                who = one.replica if self.sources[source].replicated else None
                policy(Violation(Rule.MALFORMED, 0, one.raw, BEGINNING, who, one.reason, one.place))
        return first

    def _source(self, source: str) -> Source:
        self._check_open()
        if source not in self.sources:
            error = PlanError(f"the plan has no source {source!r}{did_you_mean(source, self.sources)}")
            error.add_note(f"Its sources are {', '.join(map(repr, self.sources))}.")
            raise error
        return self.sources[source]

    def _replicas(self, source: str) -> Gate:
        if not self._source(source).replicated:
            error = PlanError(f"replicas come and go, and {source!r} is not of replicas")
            error.add_note("Give the source replica=….")
            raise error
        return self.gates[source]

    def _attached(self, source: str, replica: str) -> Gate:
        gate = self._replicas(source)
        if replica not in gate.replicas:
            error = PlanError(f"no replica {replica!r} of {source!r} is attached")
            error.add_note(f"Attached are {', '.join(map(repr, gate.replicas)) or 'none'}.")
            raise error
        return gate

    def _check_open(self) -> None:
        self.check_usable()
        if self.closed:
            raise ClosedError("a job that is closed has given its last stable; open the plan again")
