"""Say what a plan does, and why it is done so.

Operators from the last to the sources, what may be relied on of what comes of each, and the case of every
merge with its reason. Nothing is read and nothing is written.

FILE is a job that has a plan: a .toml file with [sources.NAME] and [plan], or a .py file with a stream (or a
function plan() that gives one), as anabranch run takes it.

Exit status: 0 it is told, 2 misuse, or what is wrong with the plan.

examples:
  anabranch explain job.toml
  anabranch explain job.py --picture plan.svg     and a picture of it
"""

from __future__ import annotations

import argparse
import json

from anabranch.cli.arguments import add_json


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``explain``."""
    parser.add_argument("file", metavar="FILE", help="the job, a .toml or .py file with a plan")
    parser.add_argument("--picture", metavar="FILE.svg", help="write a picture of the plan here")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Tell the plan of a job."""
    from anabranch.connectors.files.writing import whole
    from anabranch.jobs.job import read_job
    from anabranch.jobs.plan_job import PlanJob

    job = read_job(options.file)
    if not isinstance(job, PlanJob):
        error = ValueError("a plan is explained, and this job has none: it is a merge")
        error.add_note(f"anabranch run {options.file} --check says what it would do, and why.")
        raise error
    words = job.stream.explain()
    if options.picture:
        with whole(options.picture) as file:
            file.write(job.stream.picture().encode())
    if options.json:
        columns = {field.name: str(field.type) for field in job.stream.schema}
        told = {"plan": words.split("\n"), "columns": columns, "sources": list(job.sources)}
        print(json.dumps(told, ensure_ascii=False))
    else:
        print(words)
    return 0
