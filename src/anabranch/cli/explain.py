"""Say what a job does, and why it is done so.

Operators from the last to the sources, what may be relied on in the result of each, and the case of every
merge with its reason. Nothing is written, and no row is read.

With --json the operators are a list too, each after its inputs: its columns with their types, what may be
relied on in its result, the case of a merge, and the line of the file.

FILE is a job, as anabranch run takes it: a .toml file with [sources.NAME] and [plan], or with [source] and
[merge] or [changes]; or a .py file with a stream, a function plan() or a function rows(spark). Where [source]
has no schema, the columns are those of its files; where only Spark knows the columns, as of rows(spark),
anabranch run FILE --check explains the job.

Exit status: 0 it is told, 2 misuse, or what is wrong with the plan.

examples:
  anabranch explain job.toml
  anabranch explain job.py --picture plan.svg     and a picture of it
  anabranch explain job.toml --json               for a program
"""

from __future__ import annotations

import argparse
import json

from anabranch.cli.arguments import add_json


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``explain``."""
    parser.add_argument("file", metavar="FILE", help="the job, a .toml or .py file")
    parser.add_argument("--picture", metavar="FILE.svg", help="write a picture of the plan here")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Tell the plan of a job."""
    from anabranch.connectors.files.writing import whole
    from anabranch.jobs.job_file import read_job
    from anabranch.jobs.source_checks import check_replica_names
    from anabranch.plan.description import described

    job = read_job(options.file)
    for source in job.sources.values():
        check_replica_names(job, source)
    words = job.explained.explain()
    if options.picture:
        with whole(options.picture) as file:
            file.write(job.explained.picture().encode())
    if options.json:
        columns = {field.name: str(field.type) for field in job.stream.schema}
        told = {
            "plan": words.split("\n"),
            "columns": columns,
            "sources": list(job.sources),
            **described({"": job.explained.node}),
        }
        print(json.dumps(told, ensure_ascii=False))
    else:
        print(words)
    return 0
