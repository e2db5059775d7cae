"""A job in this process: what it reads is read to its end, and the result is written as whole files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from anabranch.cli.messages import ALL_REFUSED, say
from anabranch.cli.progress import progress
from anabranch.cli.still_open import WAY_ON, open_text

if TYPE_CHECKING:
    from anabranch.connectors.files.output import FileOutput, FolderOutput
    from anabranch.connectors.running import Run
    from anabranch.jobs.job import Job
    from anabranch.model.batch import Batch
    from anabranch.model.validity import Violation
    from anabranch.rows.refusal import Refusal


class _Aside:
    """State: how many rows were refused, and the file of JSON lines that they are written to as they come."""

    def __init__(self, job: Job) -> None:
        self.job, self.count = job, 0
        self.path: Path | None = None
        self._open = ExitStack()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> _Aside:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()  # whatever stopped the run, what was refused before that is kept

    def __call__(self, violation: Violation) -> None:
        from dataclasses import asdict

        from anabranch.rows.text import text_of

        if self._file is None:
            self._file = self._begun()
        self._file.write(f"{text_of(asdict(self._refusal(violation)))}\n".encode())
        self.count += 1

    def _begun(self) -> IO[bytes]:
        from anabranch.connectors.files.writing import whole

        place = self.job.quarantine
        place.mkdir(parents=True, exist_ok=True)
        self.path = place / f"refused-{len(list(place.glob('refused-*.jsonl'))) + 1:04}.jsonl"
        return self._open.enter_context(whole(str(self.path)))

    def _refusal(self, violation: Violation) -> Refusal:
        from anabranch.rows.refusal import Refusal, refusal

        place = violation.place or f"element {violation.position}"
        if not isinstance(violation.element, str):
            return refusal(violation, place, self.job.stream.node.clock)
        reason = violation.detail or violation.message
        return Refusal(violation.code, reason, violation.input or "", place, violation.element)


def run_embedded(job: Job, options: argparse.Namespace) -> int:
    """Run a job over what is there now; the exit status."""
    from anabranch.connectors.running import run
    from anabranch.jobs.merge_sections import ANSWERS
    from anabranch.model.validity import Quarantine

    output = output_of(job)
    with _Aside(job) as aside, progress(job.file.name) as told:
        answers = {name: answer for name, answer in job.answers().items() if answer is not None}
        aside_all = dict.fromkeys(ANSWERS, Quarantine(aside))
        running = run(
            job.stream,
            job.inputs(),
            finish=options.finish is not False,
            progress=told,
            **{**aside_all, **answers},
        )
        counted = _Counted(running)
        with closing(running), _told_if_stopped(job, options):
            output.write(counted, job.stream)
    return 1 if _conclude(job, running, counted, aside, options) or (options.strict and aside.count) else 0


@contextmanager
def _told_if_stopped(job: Job, options: argparse.Namespace) -> Iterator[None]:
    """What is left where a run is stopped."""
    try:
        yield
    except KeyboardInterrupt:
        if job.folder is not None:
            say(f"stopped; {job.folder} has whole files, of what came out first", options)
        elif job.out != "standard output":
            say(f"stopped, and {job.out} is not written", options)
        raise


class _Counted:
    """State: how many events and revisions a run has given."""

    def __init__(self, running: Run) -> None:
        self.running = running
        self.out = 0

    def __iter__(self) -> Iterator[Batch]:
        from anabranch.model.batch import Kind

        for given in self.running:
            batch = given[""] if isinstance(given, dict) else given
            self.out += int((batch.kind != Kind.STABLE).sum())
            yield batch


def output_of(job: Job) -> FileOutput | FolderOutput:
    """Where a plan is written by this process."""
    from anabranch.connectors.files.formats import STANDARD
    from anabranch.connectors.files.output import FileOutput, FolderOutput

    if job.folder is not None:
        return FolderOutput(job.folder, job.sink.format)
    assert job.out_file is not None, "checked"
    form = "jsonl" if job.out_file == STANDARD and job.sink.format == "parquet" else None
    return FileOutput(job.out_file, form)


def _conclude(
    job: Job,
    running: Run,
    counted: _Counted,
    aside: _Aside,
    options: argparse.Namespace,
) -> bool:
    """Report what came of a run; whether every row that it read was refused."""
    from anabranch.cli.display import time_field
    from anabranch.model.clock import tick_text

    status = running.status()
    rows = sum(source.received for source in status.sources.values())
    frontier = status.outputs.get("", next(iter(status.outputs.values())))
    all_refused = 0 < rows <= sum(status.refused.values()) and not counted.out
    finished = options.finish is not False
    held = {name: report.live for name, report in status.operators.items() if report.live}
    stream = sys.stderr if job.out == "standard output" else sys.stdout
    if options.json:
        told: dict[str, Any] = {
            "end": "all was read",
            "in": rows,
            "out": counted.out,
            "refused": dict(status.refused),
            "remarks": status.remarks(),
            **time_field("stable", frontier),
            "sources": {name: source.received for name, source in status.sources.items()},
            "sink": job.out,
            "finished": finished,
            "open": held,
        }
        print(json.dumps(told), file=stream, flush=True)
        return all_refused
    refused = "".join(f", {count:,} {rule}" for rule, count in status.refused.items())
    say(f"all was read: {rows:,} in, {counted.out:,} out{refused}; stable to {tick_text(frontier)}", options)
    if finished:
        say("the end of the inputs was taken for the end of the stream; --no-finish leaves it open", options)
    elif held:
        say(f"{open_text(held)}; {WAY_ON}", options)
    for name, report in status.operators.items():
        counts = [f"{count:,} {what.replace('_', ' ')}" for what, count in report.counts.items() if count]
        if counts:
            say(f"{name}: {', '.join(counts)}", options)
    for words in status.remarks():
        say(words, options)
    if all_refused:
        say(ALL_REFUSED, options)
    if aside.path is not None:
        say(f"what was refused is in {aside.path}", options)
    say(f"what came out is in {job.out}" if job.out != "standard output" else "that is all", options)
    return all_refused
