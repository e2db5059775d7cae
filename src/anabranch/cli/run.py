"""Run a merge or a plan as a file says, on Spark or in this process.

FILE.toml has the tables [source], [merge] or [changes], and [sink], and [spark] if the defaults will not do:

  [source]                           a folder with a sub-folder of files for each replica
  path = "feeds"
  files_per_trigger = 20             also: schema, by_replica, bytes_per_trigger, rows_per_trigger

  [merge]                            the arguments of anabranch.spark.merge, by name
  start = "at"
  end = "until"
  replica = "replica"
  disorder = "30 seconds"
  lossy = true                       may a replica lose rows? what it means is told if it is left out
  policy = "final"                   or { name = "quorum", fraction = 0.6, lag = 60 }

  [sink]
  path = "merged"                    also: checkpoint, quarantine, format, trigger, available_now

  [spark]
  master = "local[4]"                also: shards, config, log

Where rows say what happened to a row of a table, [changes] stands in place of [merge]:

  [changes]                          the arguments of anabranch.spark.merge_changes, by name
  key = "id"                         what names a row of the table
  time = "committed"                 when it was inserted, updated or deleted
  op = "op"                          which of these; also: ops = { "4" = "update", "3" = "ignore" }
  replica = "replica"
  disorder = "30 seconds"            also: by_time, and what [merge] has but lifetimes, identity, lossy

Topics of Kafka come from [source.kafka] and go to [sink.kafka]:

  [source]
  schema = "sensor string, at timestamp, level double"

  [source.kafka]
  servers = "localhost:9092"
  topics = { east = "readings-east", west = "readings-west" }       each a replica
  config = { "sasl.password" = "${PASSWORD}" }                       from the environment

  [sink.kafka]
  servers = "localhost:9092"
  topic = "readings"
  exactly_once = true                also: key, values, config

With values = "debezium" in [source.kafka], or in [source] of a folder of JSON lines, records are envelopes of
rows with the columns in schema; op and time are added to them, as [changes] needs them. Likewise to the rows
of Delta tables, of which the changes come from [source.delta]:

  [source.delta]
  tables = { home = "lake/stock", mirror = "mirror/stock" }          each a replica
  start = "earliest"                 or latest, a version, snapshot: what is there, then what changes
  versions_per_trigger = 20          also: op, time (false: none) and version, as the columns are called

A Delta table is kept by [sink.table]:

  [sink.table]
  path = "lake/readings"
  kind = "current"                   or history, elements
  key = "sensor"                     also: open_only, final, compact_every, keep

Any streaming source of Spark's will do: format = "delta" with its [source.options], and select = [SQL, …]
where its columns are not yet those of the rows. FILE.py has a function rows(spark), which gives a streaming
frame, topics, changes of Delta tables or the path of a folder, and the dicts MERGE or CHANGES, SINK and SPARK
with the same keys. Paths are relative to the file. ${NAME} in a text is from the environment; $${NAME} is
that text itself.

A plan, of which anabranch.source and the methods of its streams are the words, has [sources.NAME] and [plan]
in place of [source] and [merge]:

  [sources.readings]                 a folder or a file (path), or kafka = {…}, delta = {…} as above
  path = "feeds"
  columns = { room = "string", level = "float64", at = "timestamp[us, tz=UTC]", replica = "string" }
  start = "at"                       and the other arguments of anabranch.source, by name
  disorder = "30 seconds"
  replica = "replica"
  lossy = true

  [plan]
  from = "readings"                  may be left out where there is one source
  steps = [                          methods of streams, in order; expressions as in Python, over columns
    { filter = "level > 3 and room != 'hall'" },
    { with_columns = { excess = "level - 3" } },
    { merge = { policy = "final" } },          or "merge": what the replicas mean together
    { tumble = "1 minute" },
  ]

Steps are filter, select, with_columns, drop, rename, lasting, hop = { size = …, every = … }, tumble, shift,
extend, clip, started, ended, distinct, sort, final and merge; window = "1 minute" or { size = …, every = … },
then group_by = "room" if there are groups, and agg = { most = "level.max()", n = "count()" }, with
early = true among them for results before a window closes; and join. Where streams meet, each is a table of
its own: [plan.hot] with from and steps, [plan.all] with union = ["hot", "cold"] or merge = ["hot", "cold"],
or a step { join = { right = "cold", on = "room", within = ["1 minute", "0 seconds"] } }, which has the
arguments of join by name; the one that no other reads comes out. FILE.py has a stream, or a function plan()
that gives one, and the dicts SOURCES (what is read for each source), SINK and SPARK.

With --engine embedded a plan reads what is there now in this process, and writes it to a folder (path; format
is parquet, jsonl or arrow), to one file (file = "out.parquet", also .jsonl .arrow .txt) or, without [sink],
to standard output as JSON lines. Files appear when they are whole, whatever stops the run.

What is waited for, and a line for each micro-batch, go to standard error: how many rows came in and went out
(stables are not counted), how far the stream is stable, how far each replica is behind, the size of the
state, and what was quarantined or dropped. In the end it is said who decided what is there, what each replica
lacked and filled in others, what was removed because a complete one lacked it, and who holds what is final.
With --json the micro-batches and the end are told as lines of JSON on standard output. What Spark itself says
is in spark.log in the checkpoint, unless [spark] names another log ("-" is standard error).

Ctrl-C or SIGTERM stops after the micro-batch under way, and the next run goes on from there. A second one
stops at once, and the next run repeats what was cut short; the folder has every micro-batch once either way.

Exit status: 0 all was read, or the query was stopped; 1 every row was refused, or (only with --strict) rows
were quarantined, replicas disagreed or nobody can lead; 2 misuse, or the query failed; 130 stopped at once by
a second Ctrl-C or SIGTERM, or by Ctrl-C before the query runs; 143 by SIGTERM before it runs.

examples:
  anabranch run job.toml --check      what would be done and why, and nothing is started
  anabranch run job.toml              until it is stopped
  anabranch run job.toml --once       what is there now
  anabranch run job.py --once --strict --json > progress.jsonl
  anabranch run plan.toml --engine embedded             a plan over what is there, without Spark
  anabranch run plan.toml --engine embedded --check     are its sources there, with its columns?
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli.arguments import add_json
from anabranch.cli.still_open import WAY_ON, open_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from anabranch.cli.micro_batches import Lines
    from anabranch.engines.spark.query.follow import Totals
    from anabranch.jobs.job import Job
    from anabranch.jobs.plan_job import PlanJob


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``run``."""
    parser.add_argument("file", metavar="FILE", help="the job, a .toml or .py file")
    parser.add_argument(
        "--engine",
        choices=("spark", "embedded"),
        default="spark",
        help="where a plan runs: on Spark (the default), or in this process, over what is there now",
    )
    parser.add_argument("--once", action="store_true", help="stop when all that is there has been read")
    parser.add_argument(
        "--finish",
        action=argparse.BooleanOptionalAction,
        help="take the end of what is read for the end of the stream, so that open windows come out: what a "
        "run in this process does; on Spark a query goes on later, and is never finished",
    )
    parser.add_argument("--check", action="store_true", help="say what would be done and why; start no query")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit status 1 if rows were quarantined, replicas disagreed or nobody can lead",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Check the file, and run what it says."""
    from anabranch.cli.run_plan import run_plan
    from anabranch.jobs.beforehand import check_job
    from anabranch.jobs.job import read_job
    from anabranch.jobs.plan_job import PlanJob
    from anabranch.jobs.sampled_keys import of_merge

    job = read_job(options.file)
    if options.finish and options.engine == "spark":
        raise _not_finished(options)
    if isinstance(job, PlanJob):
        return run_plan(job, options)
    if options.engine == "embedded":
        error = ValueError("without Spark a plan is run, and this job has none")
        error.add_note("Leave --engine out, or describe it with [sources.NAME] and [plan].")
        error.add_note(f"In {options.file}.")
        raise error
    check_job(job)
    for words in of_merge(job):
        _say(words, options)
    if options.check:
        with tempfile.TemporaryDirectory() as folder, session_of(job, Path(folder, "spark.log")) as spark:
            return _check(job, spark, options)
    job.checkpoint.mkdir(parents=True, exist_ok=True)
    log = job.place(job.spark.log) if job.spark.log else job.checkpoint / "spark.log"
    _say(f"starting Spark on {job.spark.master}", options)
    with session_of(job, log) as spark:
        return run_in(job, spark, options)


def _not_finished(options: argparse.Namespace) -> ValueError:
    error = ValueError(
        f"--finish says that nothing comes after what {options.file} reads now, and a query on Spark goes on "
        "from its checkpoint: leave --finish out, or write --engine embedded"
    )
    error.add_note("A window that was closed early would be wrong as soon as a later run reads a row of it.")
    error.add_note("What is still open when all was read is told in the end.")
    return error


@contextmanager
def session_of(job: Job | PlanJob, log: Path) -> Iterator[SparkSession]:
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


def _merged(job: Job, spark: SparkSession) -> tuple[Any, DataFrame]:
    """What is merged, and what comes of it."""
    try:
        rows = job.rows(spark)
        return rows, job.merge.merged(rows)
    except (ValueError, TypeError) as error:
        error.add_note(f"In {job.file}.")
        raise


def _check(job: Job, spark: SparkSession, options: argparse.Namespace) -> int:
    from anabranch.cli.plan import plan
    from anabranch.jobs.beforehand import check_started

    rows, merged = _merged(job, spark)
    check_started(job, merged)
    found = plan(job, rows, merged)
    print(json.dumps(found.fields(), ensure_ascii=False) if options.json else found)
    return 0


def run_in(job: Job, spark: SparkSession, options: argparse.Namespace) -> int:
    """Run the query of a job in a session that is there; the exit status."""
    from anabranch.cli.plan import source_of

    rows, merged = _merged(job, spark)
    return followed(job, merged, source_of(job, rows), options, job.merge.vouching())


def followed(
    job: Job | PlanJob,
    merged: DataFrame,
    source: str,
    options: argparse.Namespace,
    vouching: str | None = None,
) -> int:
    """Run the query of a job until it is stopped or at its end, and say how it goes; the exit status."""
    from anabranch.cli.micro_batches import Lines
    from anabranch.engines.spark.query.checkpoint import completed
    from anabranch.engines.spark.query.follow import follow, stoppable

    lines = Lines.of(merged, as_json=options.json)
    with stoppable() as stop:
        after = completed(job.checkpoint)
        query = job.write(merged, once=options.once)
        _say(f"{job.file.name} runs; {_goes_on(after)}", options)
        _say(f"waiting for the {'first' if after < 0 else 'next'} rows of {source}", options)
        totals = follow(
            query,
            job.checkpoint,
            after,
            stop,
            lines.tell,
            lambda batch: _say(_begins(job.checkpoint, batch), options),
        )
    _conclude(job, totals, lines, options, vouching)
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
    job: Job | PlanJob, totals: Totals, lines: Lines, options: argparse.Namespace, vouching: str | None
) -> None:
    from anabranch.cli.run_plan import ALL_REFUSED

    end, summary = "stopped" if totals.stopped else "all was read", lines.summary(totals)
    if options.json:
        replicas = {} if totals.last is None else lines.fields(totals.last)["replicas"]
        told = {
            "vouching": vouching,
            "replicas": replicas,
            "remarks": _unmet(job, totals),
            "checkpoint": str(job.checkpoint),
            "finished": False,
            "open": totals.held(),
        }
        print(json.dumps({"end": end, **summary, **told}), flush=True)
        return
    if totals.stopped and totals.last is not None:
        end += f" after micro-batch {totals.last.batch}"
    _say(f"{end}: {', '.join(f'{value:,} {name}' for name, value in summary.items())}", options)
    if vouching is not None:
        _say(vouching, options)
    for words in _unmet(job, totals):
        _say(words, options)
    if totals.last is not None:
        for words in [*lines.conduct(totals.last), *([totals.last.stuck] if totals.last.stuck else [])]:
            _say(words, options)
    if totals.all_refused:
        _say(ALL_REFUSED, options)
    if any(totals.held().values()):
        _say(f"{open_text(totals.held())}; {WAY_ON}", options)
    if totals.quarantined:
        _say(f"what was quarantined is in {job.quarantine}", options)
    _say(f"the merged stream is in {job.out}; the next run goes on from {job.checkpoint}", options)


def _unmet(job: Job | PlanJob, totals: Totals) -> list[str]:
    """The replicas that settings name and no row was of, in words. Sources of a plan may share names."""
    from anabranch.jobs.job import Job as MergeJob
    from anabranch.rows.replica_names import named_in, names_without_rows

    if isinstance(job, MergeJob):
        found = [named_in(getattr(job.merge, "lossy", None), job.merge.idle, job.merge.replicas)]
    else:
        replicated = [one for one in job.sources.values() if one.replicated]
        found = [named_in(one.lossy, one.silent, one.awaited) for one in replicated]
    if totals.last is None or len(found) != 1:
        return []
    there = [name for name, one in totals.last.replicas.items() if one.elements]
    return names_without_rows(found[0], there, totals.heard)


def _say(words: str, options: argparse.Namespace) -> None:
    if not options.json:
        print(f"anabranch: {words}", file=sys.stderr, flush=True)
