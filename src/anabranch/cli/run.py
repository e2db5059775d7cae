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

[source] with [merge] or [changes] is short for a plan of one source, called rows, and one merge.

With --engine embedded a job reads what is there now in this process, and writes it to a folder (path; format
is parquet, jsonl or arrow), to one file (file = "out.parquet", also .jsonl .arrow .txt) or, without [sink],
to standard output as JSON lines. A format of Spark's, rows(spark), [sink.kafka] and [sink.table] need Spark.
Files appear when they are whole, whatever stops the run.

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
  anabranch run job.toml --engine embedded             what is there, without Spark
  anabranch run job.toml --engine embedded --check     are its sources there, with its columns?
"""

from __future__ import annotations

import argparse

from anabranch.cli.arguments import add_json
from anabranch.cli.messages import say


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``run``."""
    parser.add_argument("file", metavar="FILE", help="the job, a .toml or .py file")
    parser.add_argument(
        "--engine",
        choices=("spark", "embedded"),
        default="spark",
        help="where a job runs: on Spark (the default), or in this process, over what is there now",
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
    from anabranch.jobs.beforehand import check_job
    from anabranch.jobs.inferred_columns import inferred
    from anabranch.jobs.job_file import read_job
    from anabranch.jobs.sampled_keys import remarks

    job, embedded = read_job(options.file), options.engine == "embedded"
    if options.finish and not embedded:
        raise _not_finished(options)
    check_job(job, embedded=embedded, asks=options.check)
    for words in [*inferred(job), *(remarks(job) if options.check or not embedded else ())]:
        say(words, options)
    if options.check:
        from anabranch.cli.plan import run_check

        return run_check(job, options)
    if embedded:
        from anabranch.cli.run_embedded import run_embedded

        return run_embedded(job, options)
    from anabranch.cli.run_spark import run_on_spark

    return run_on_spark(job, options)


def _not_finished(options: argparse.Namespace) -> ValueError:
    error = ValueError(
        f"--finish says that nothing comes after what {options.file} reads now, and a query on Spark goes on "
        "from its checkpoint: leave --finish out, or write --engine embedded"
    )
    error.add_note("A window that was closed early would be wrong as soon as a later run reads a row of it.")
    error.add_note("What is still open when all was read is told in the end.")
    return error
