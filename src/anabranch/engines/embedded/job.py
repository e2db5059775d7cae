"""A plan that runs in this process: pushed to, and answering at once.

A push is one pass: what comes of it comes out of it, in the form in which it was given, its stable last. One
thread, no clock: the same pushes give the same answers, and a job that is dumped goes on as if nothing had
happened.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from anabranch.engines.embedded.forms import like
from anabranch.engines.embedded.job_status import JobStatus, status_of
from anabranch.engines.embedded.passes import Passes
from anabranch.kernels.answers import Answers
from anabranch.model.batch import Batch
from anabranch.model.validity import Drop, InvalidElementError, Policy, Raise, check_policy
from anabranch.plan.stream import Stream, outputs_of


def open(  # noqa: A001
    streams: Stream | Mapping[str, Stream],
    state: bytes | None = None,
    *,
    on_invalid: Policy | None = None,
    on_broken: Policy | None = None,
    on_late: Policy | None = None,
) -> "Job":
    """A plan, ready to be pushed to; several streams are outputs by their names.

    ``state`` is what `Job.dump` gave. What is invalid is raised unless ``on_invalid`` says otherwise, and so
    is what breaks a declared property; what is late is dropped and counted. Sources and merges may say it for
    themselves.
    """
    given = {"on_invalid": on_invalid, "on_broken": on_broken, "on_late": on_late}
    for name, policy in given.items():
        check_policy(name, policy)
    if state is not None and not isinstance(state, bytes):
        raise TypeError(f"a state is the bytes that dump() gave, not {state!r:.100}")
    answers = Answers(on_invalid or Raise(), on_broken or Raise(), on_late or Drop())
    return Job(Passes(outputs_of(streams), state, answers))


class Job:
    """State: the passes of a plan, and the form of what was pushed last, in which all calls answer.

    >>> import anabranch as ab
    >>> hot = ab.source("readings", {"room": "string", "level": "int64"}).filter(ab.col("level") > 3)
    >>> job = hot.open()
    >>> job.push("readings", [ab.Insert({"room": "A", "level": 5}, 1, 9), ab.Stable(4)])
    [Insert(payload={'room': 'A', 'level': 5}, start=1, end=9), Stable(time=4)]
    """

    def __init__(self, passes: Passes) -> None:
        self.passes = passes
        self._given: Any = []
        self._nothing: dict[tuple[str, type], tuple[pa.Schema, Any]] = {}
        """Answers without rows, which are made once: that takes a third of the time of a push of one row."""

    def __repr__(self) -> str:
        passes = self.passes
        outputs = ", ".join(name or "one output" for name in passes.outputs)
        return f"<Job: {', '.join(passes.sources)} to {outputs}{', closed' if passes.closed else ''}>"

    def push(self, source: str, given: Any, *, replica: str | None = None) -> Any:
        """What comes out when a source gives elements, a batch, a table or rows, in the form of these.

        ``replica`` says which one sent them, where the source is of replicas and they do not say it
        themselves. With several outputs the answer is a dict of them.
        """
        self._given = given
        return self._formed(self.passes.push, source, given, replica)

    def attach(self, source: str, replica: str, guarantee: int | None = None) -> Any:
        """What comes out when a replica joins; it shows all that ends at or after its guarantee."""
        return self._formed(self.passes.attach, source, replica, guarantee)

    def expect(self, source: str, replica: str) -> None:
        """A replica that is not attached is waited for from now on; what comes of it is its beginning."""
        self.passes.expect(source, replica)

    def detach(self, source: str, replica: str) -> Any:
        """What comes out when a replica of a source leaves."""
        return self._formed(self.passes.detach, source, replica)

    def idle(self, source: str, replica: str) -> Any:
        """What comes out when a replica of a source is not waited for until it sends again."""
        return self._formed(self.passes.idle, source, replica)

    def close(self) -> Any:
        """What comes out when every source is at its end; nothing is pushed after that.

        Where that cannot be put in the form of what was pushed last, closing again gives batches.
        """
        if self.passes.closed:
            self._given = Batch.of([])
        return self._formed(self.passes.close)

    def status(self) -> JobStatus:
        """How far sources and outputs are, and what every operator holds and has counted."""
        return status_of(self.passes)

    def dump(self) -> bytes:
        """The state as bytes, from which `Stream.open` goes on as if nothing had happened."""
        return self.passes.dump()

    def _formed(self, call: Callable[..., dict[str, Batch]], *arguments: Any) -> Any:
        """What a call gives, in the form of what was pushed last."""
        try:
            output = call(*arguments)
        except InvalidElementError as error:
            if error.output is not None:
                self._put_in_form(error)
            raise
        return self._like(output)

    def _put_in_form(self, error: InvalidElementError) -> None:
        try:
            error.output = self._like(error.output)
        except Exception as reason:  # what was refused is told first
            error.output = None
            error.add_note(f"What came out is owed to the next call: {type(reason).__name__}: {reason}")

    def _like(self, output: Mapping[str, Batch]) -> Any:
        """Output in the form of what was pushed last; where that fails, the next call owes it."""
        try:
            formed = {name: self._one_like(name, batch) for name, batch in output.items()}
        except Exception as error:
            self.passes.owed = {name: [batch] for name, batch in output.items()}
            error.add_note(
                "What was pushed is used, and what came out is owed to the next call: push in another form, "
                "for instance a Batch; a job that is closed gives batches when it is closed again."
            )
            raise
        return formed[""] if list(formed) == [""] else formed

    def _one_like(self, name: str, batch: Batch) -> Any:
        clock = self.passes.outputs[name].clock
        if len(batch) or not isinstance(self._given, pa.Table | pa.RecordBatch):
            return like(self._given, batch, clock)
        key, schema = (name, type(self._given)), batch.payload.schema
        if key not in self._nothing or not self._nothing[key][0].equals(schema):
            self._nothing[key] = schema, like(self._given, batch, clock)
        return self._nothing[key][1]
