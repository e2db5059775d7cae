"""A job on Spark, as one query: run until it is stopped or at its end, with a line for each micro-batch."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.cli.messages import ALL_REFUSED, say
from anabranch.cli.still_open import WAY_ON, open_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from anabranch.cli.micro_batches import Lines
    from anabranch.engines.spark.query.follow import Totals
    from anabranch.jobs.job import Job
    from anabranch.plan.source import Source


def run_on_spark(job: Job, options: argparse.Namespace) -> int:
    """Start Spark, and run the query of a job."""
    job.checkpoint.mkdir(parents=True, exist_ok=True)
    log = job.place(job.spark.log) if job.spark.log else job.checkpoint / "spark.log"
    say(f"starting Spark on {job.spark.master}", options)
    with session_of(job, log) as spark:
        return run_in(job, spark, options)


@contextmanager
def session_of(job: Job, log: Path) -> Iterator[SparkSession]:
    """The Spark of a job, which ends with it."""
    from anabranch import spark as ab
    from anabranch.cli.spark_errors import spark_errors_as_ours
    from anabranch.engines.spark.session.jvm import end_jvm

    told = None if job.spark.log == "-" else log
    try:
        with spark_errors_as_ours(told):
            yield ab.session(
                job.spark.master,
                name=job.file.stem,
                shards=job.spark.shards,
                config=job.spark.settings(),
                log=told,
            )
    finally:
        end_jvm()


def run_in(job: Job, spark: SparkSession, options: argparse.Namespace) -> int:
    """Run the query of a job in a session that is there; the exit status."""
    from anabranch.cli.micro_batches import Lines
    from anabranch.engines.spark.query.checkpoint import completed
    from anabranch.engines.spark.query.follow import follow, stoppable
    from anabranch.jobs.job import sources_of
    from anabranch.jobs.source_checks import reading

    stream, frame = job.frame(spark)
    sources = list(sources_of(stream).values())
    read = "; ".join(reading(job, source.name) for source in sources)
    lines = Lines.of(frame, as_json=options.json)
    with stoppable() as stop:
        after = completed(job.checkpoint)
        query = job.write(frame, once=options.once)
        say(f"{job.file.name} runs; {_goes_on(after)}", options)
        say(f"waiting for the {'first' if after < 0 else 'next'} rows of {read}", options)
        totals = follow(
            query,
            job.checkpoint,
            after,
            stop,
            lines.tell,
            lambda batch: say(_begins(job.checkpoint, batch), options),
        )
    _conclude(job, sources, totals, lines, options)
    bad = totals.quarantined or totals.disagreements or (totals.last is not None and totals.last.stuck)
    return 1 if totals.all_refused or (options.strict and bad) else 0


def _begins(checkpoint: Path, batch: int) -> str:
    from anabranch.connectors.folder.file_places import files_of

    count = files_of(checkpoint, batch)
    what = "" if count == 0 else f" {count} file{'s' if count != 1 else ''},"
    return f"micro-batch {batch}:{what} Python workers start"


def _goes_on(after: int) -> str:
    return "the checkpoint is new" if after < 0 else f"it goes on after micro-batch {after} of its checkpoint"


def _conclude(
    job: Job, sources: list[Source], totals: Totals, lines: Lines, options: argparse.Namespace
) -> None:
    vouching = vouching_of(sources)
    remarks = [*unmet(sources, totals), *outside(totals)]
    end, summary = "stopped" if totals.stopped else "all was read", lines.summary(totals)
    if options.json:
        replicas = {} if totals.last is None else lines.fields(totals.last)["replicas"]
        told = {
            "vouching": "; ".join(vouching) or None,
            "replicas": replicas,
            "remarks": remarks,
            "checkpoint": str(job.checkpoint),
            "finished": False,
            "open": totals.held(),
        }
        print(json.dumps({"end": end, **summary, **told}), flush=True)
        return
    if totals.stopped and totals.last is not None:
        end += f" after micro-batch {totals.last.batch}"
    say(f"{end}: {', '.join(f'{value:,} {name}' for name, value in summary.items())}", options)
    for words in [*vouching, *remarks]:
        say(words, options)
    if totals.last is not None:
        for words in [*lines.conduct(totals.last), *([totals.last.stuck] if totals.last.stuck else [])]:
            say(words, options)
    if totals.all_refused:
        say(ALL_REFUSED, options)
    if any(totals.held().values()):
        say(f"{open_text(totals.held())}; {WAY_ON}", options)
    if totals.quarantined:
        say(f"what was quarantined is in {job.quarantine}", options)
    say(f"the result is in {job.out}; the next run goes on from {job.checkpoint}", options)


def vouching_of(sources: list[Source]) -> list[str]:
    """Which replicas decide what is there, in words, for each source of replicas."""
    from anabranch.rows.vouching import in_words

    found = {one.name: in_words(one.lossy) for one in sources if one.replicated}
    return list(found.values()) if len(sources) == 1 else [f"{name}: {text}" for name, text in found.items()]


def outside(totals: Totals) -> list[str]:
    """How many events were in no window, in words."""
    from anabranch.kernels.aggregate.window_times import outside_windows

    return [] if totals.last is None else outside_windows(totals.last.operators)


def unmet(sources: list[Source], totals: Totals) -> list[str]:
    """The replicas that settings name and no row was of, in words. Several sources may share names."""
    from anabranch.rows.replica_names import named_in, names_without_rows

    found = [named_in(one.lossy, one.silent, one.awaited) for one in sources if one.replicated]
    if totals.last is None or len(found) != 1:
        return []
    there = [name for name, one in totals.last.replicas.items() if one.elements]
    return names_without_rows(found[0], there, totals.received)
