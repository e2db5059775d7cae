"""Plans that run in this process over what they are given: iterables, files, folders, topics and tables."""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import timedelta
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from anabranch.connectors.files.embedded import FileFeeds, ReplicaFeeds
from anabranch.connectors.files.formats import STANDARD
from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.folder.embedded import FolderFeeds
from anabranch.engines.embedded.job import Job
from anabranch.engines.embedded.job import open as open_job
from anabranch.engines.embedded.job_status import JobStatus
from anabranch.engines.embedded.live import WAITING
from anabranch.engines.embedded.live import live as run_live
from anabranch.engines.embedded.positions import Positions
from anabranch.engines.embedded.run import ROWS
from anabranch.engines.embedded.run import run as run_passes
from anabranch.engines.embedded.stopping import Stop
from anabranch.kernels.merge.status import Comparing, Status
from anabranch.kernels.store.saved import to_bytes
from anabranch.model.batch import Batch, concat
from anabranch.model.clock import Clock
from anabranch.model.clock_columns import clock_of, time_type
from anabranch.model.span import span
from anabranch.model.validity import Policy
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream


class Run(Iterator[Any]):
    """What comes out of a plan, batch by batch, as it is asked for; of several outputs, a dict of batches.

    It is read once. Closing it, or leaving the ``with`` that it stands in, closes what is read.
    """

    def __init__(
        self, job: Job, output: Generator[dict[str, Batch], None, None], stop: Stop, positions: Positions
    ) -> None:
        self.job = job
        """The plan as it is after the last batch: its `status`, and its `dump` until all has ended."""
        self._output, self._stop, self._positions = output, stop, positions
        self._reading = threading.Lock()
        self._closing = False

    def __next__(self) -> Any:
        try:
            with self._reading:
                output = next(self._output)
        finally:
            if self._closing:
                self.close()
        return output[""] if list(output) == [""] else output

    def __repr__(self) -> str:
        """The plan, and how far it is; nothing is read for that."""
        return f"<Run of {self.job!r}, read as it is asked for>\n{self.status()}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> bytes:
        """The state of the plan after the last batch, and how far its inputs have been read.

        ``run(plan, inputs, state=run.state)`` goes on from there: the output until then and the output of
        that run are what one run gives. Iterables have no positions: the next run is given what comes after.
        Keep the state together with the output until then, so that after a crash both are there or neither.
        """
        if not self._reading.acquire(blocking=False):
            error = RuntimeError(
                "the state of a run is that after a batch, and the next batch is being waited for: "
                "it may have been used already, and not been given out"
            )
            error.add_note(
                "Take it between two batches, in the thread that reads; or stop() it and wait for its end."
            )
            raise error
        try:
            return to_bytes(self.job.passes.saved() | self._positions.saved())
        finally:
            self._reading.release()

    @property
    def clock(self) -> Clock:
        """What the ticks of its one output are; of several outputs, numbers."""
        nodes = list(self.job.passes.outputs.values())
        return clock_of(nodes[0].clock) if len(nodes) == 1 else Clock.TICKS

    def table(self) -> pa.Table:
        """All that its one output has still to give, as a table of elements; their times are what they are.

        It is what a file has that `anabranch.write` writes, and a table for pandas, Polars and DuckDB too.
        """
        nodes = list(self.job.passes.outputs.values())
        if len(nodes) > 1:
            error = ValueError(
                f"a table is of one output, and this run has {', '.join(map(repr, self.job.passes.outputs))}"
            )
            error.add_note("Run each stream by itself, or read the run batch by batch.")
            raise error
        nothing = Batch.of([], schema=nodes[0].schema)
        batches = [one if isinstance(one, Batch) else next(iter(one.values())) for one in self]
        return pa.Table.from_batches([concat([nothing, *batches]).to_arrow(unit=time_type(self.clock))])

    def merges(self) -> dict[str, Status]:
        """Each merge of the plan: who led and lagged, and what each replica had, lacked and filled."""
        return {
            name: kernel.status()
            for name, _, kernel in self.job.passes.flow.kernels()
            if isinstance(kernel, Comparing)
        }

    def stop(self) -> None:
        """Read no further: what comes of the piece that is being used is given out, and then the run is over.

        Any thread may stop it, and the handler of a signal. What iterables have given is used before the end,
        for it cannot be read again; what one gives afterwards is not.
        """
        self._stop.ask()

    def close(self) -> None:
        """Read no further, and let go of what is read; a thread that waits for a batch waits no longer."""
        self._closing = True
        self._stop.ask()
        if self._reading.acquire(blocking=False):
            try:
                self._output.close()
            finally:
                self._reading.release()

    def status(self) -> JobStatus:
        """How far sources and outputs are, and what every operator holds and has counted."""
        return self.job.status()


def run(
    streams: Stream | Mapping[str, Stream],
    inputs: Mapping[str, Any],
    *,
    live: bool = False,
    rows: int = ROWS,
    waiting: int = WAITING,
    timeout: float | timedelta | str | None = None,
    finish: bool = True,
    state: bytes | None = None,
    on_failure: Callable[[str, BaseException], object] | None = None,
    on_invalid: Policy | None = None,
    on_broken: Policy | None = None,
    on_late: Policy | None = None,
    progress: Callable[[float], object] | None = None,
) -> Run:
    """What comes out of a plan when its sources are read: one stream, or several by their names.

    ``inputs`` has for each source what is read for it: an iterable of elements, rows, batches or tables; a
    mapping from names of replicas to such or to paths of files; the path of a file; the path of a folder, in
    which each sub-folder is a replica; or what `folder`, `kafka` and `delta_changes` describe. Files hold
    elements where the source is of elements, and rows where it is of rows.

    They are read side by side up to where they end now, at most ``rows`` at a time, in an order that depends
    on nothing but what they say. ``live``: each by a thread of its own, at most ``waiting`` pieces ahead, as
    it arrives; folders, topics and tables are followed until `Run.stop`, or for a ``timeout`` (seconds, or a
    duration such as ``"5 minutes"``), and ``on_failure`` is told of inputs that failed. Rows that an iterable
    gives one by one are gathered: up to 4,096, and of a live one for at most 0.1 seconds. ``progress`` is
    told how much has been read, from 0 to 1.

    ``state`` is what `Run.state` gave: files, folders, topics and tables are read from where that run was,
    and iterables are what comes after; or what `Job.dump` gave, and all inputs are what comes after. With
    ``finish=False`` sources are not taken to be over when they have been read: a line or file that is not
    complete yet is left, and another run goes on from ``run.state``.
    What is invalid, breaks a promise or is late is answered as in `open`.

    >>> import anabranch as ab
    >>> levels = ab.source("levels", {"room": "string", "level": "int64", "at": "int64"}, start="at")
    >>> rows = [{"room": "A", "level": 5, "at": 1}, {"room": "B", "level": 2, "at": 3}]
    >>> for batch in run(levels.filter(ab.col("level") > 3), {"levels": rows}):
    ...     print(*batch.elements(), sep="\\n")
    Insert(payload={'room': 'A', 'level': 5}, start=1, end=2)
    Stable(time=9223372036854775807)
    """
    given: object = inputs
    if not isinstance(given, Mapping):
        error = TypeError(
            f"inputs are a mapping from names of sources to what is read, not {type(given).__name__}"
        )
        error.add_note("Write for example run(plan, {'readings': table}).")
        raise error
    seconds = _seconds(timeout, live=live)
    job = open_job(streams, state, on_invalid=on_invalid, on_broken=on_broken, on_late=on_late)
    read = {name: _read(given, job.passes.sources.get(name)) for name, given in inputs.items()}
    stop, positions = Stop(), Positions(job.passes.positions)
    if live:
        output = run_live(
            job.passes,
            read,
            waiting=waiting,
            timeout=seconds,
            on_failure=on_failure,
            stop=stop,
            positions=positions,
        )
    else:
        output = run_passes(
            job.passes,
            read,
            rows=rows,
            finish=finish,
            progress=progress,
            stop=stop,
            positions=positions,
        )
    return Run(job, output, stop, positions)


def _seconds(timeout: float | timedelta | str | None, *, live: bool) -> float | None:
    """For how long a live run is read."""
    if timeout is None:
        return None
    if not live:
        error = ValueError(f"a run is timed where it is live, and timeout={timeout!r} is of one that is not")
        error.add_note("Write run(…, live=True, timeout=…), or call stop() on the run.")
        raise error
    given = span(timeout, "timeout") if isinstance(timeout, str) else timeout
    seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    if not seconds > 0:
        error = ValueError(f"a timeout is a positive duration, not {timeout!r}")
        error.add_note("Write for example timeout=30, which is seconds, or timeout='5 minutes'.")
        raise error
    return seconds


def _read(given: Any, source: Source | None) -> Any:
    """What is read for a source; a path is a file or a folder, in a mapping the file of a replica."""
    if isinstance(given, Mapping) and source is not None and source.replicated:
        return ReplicaFeeds(given) if any(isinstance(one, str | Path) for one in given.values()) else given
    if not isinstance(given, str | Path):
        return given
    if str(given) == STANDARD:
        return FileFeeds(STANDARD)
    path = local_path(given)
    return FolderFeeds(path) if path.is_dir() else FileFeeds(str(path))
