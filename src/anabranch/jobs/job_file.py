"""The job in a file.

A TOML file has a table for each part: [sources.NAME] and [plan], or [source] with [merge] or [changes], which
is short for one source and a plan of one merge; [sink] and [spark]. A Python file has a stream, or a function
``plan()``, and a dict ``SOURCES``; or a function ``rows(spark)`` and a dict ``MERGE`` or ``CHANGES``; and the
dicts ``SINK`` and ``SPARK``. Paths are relative to the file, so a job is the same wherever it is started.
"""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from anabranch.connectors.files.formats import STANDARD
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.jobs.ends import SinkSection, SourceSection, check_table, check_together
from anabranch.jobs.job import Job, sources_of
from anabranch.jobs.merge_sections import ChangesSection, MergeSection
from anabranch.jobs.opened_sources import places_of
from anabranch.jobs.plan_building import built, stream_sections
from anabranch.jobs.plan_sections import PlanSourceSection
from anabranch.jobs.program import in_program
from anabranch.jobs.sections import Section, SparkSection, keys, section, unknown
from anabranch.model.spelling import did_you_mean, is_slip, nearest
from anabranch.plan.stream import Stream

_ENDS: dict[str, type[Section] | None] = {"sink": SinkSection, "spark": SparkSection}
OF_MERGES = {"source": SourceSection, "merge": MergeSection, "changes": ChangesSection, **_ENDS}
OF_PLANS = {"sources": PlanSourceSection, "plan": None, **_ENDS}


def read_job(path: str) -> Job:
    """The job in a file."""
    file = Path(path).absolute()
    try:
        match file.suffix:
            case ".toml":
                return _of_tables(file, _tables(file.read_text(encoding="utf-8")))
            case ".py":
                return _of_program(file)
    except (ValueError, TypeError) as reason:
        reason.add_note(f"In {path}.")
        raise
    error = ValueError(f"a job is a .toml or a .py file, {path} is neither")
    error.add_note("anabranch run --help shows what is in one.")
    raise error


def _tables(text: str) -> dict[str, Any]:
    """The tables in a text of TOML; a quote that is not closed is an error that says so."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        message = str(reason)
        if invalid := re.match(r"Invalid value \(at line (\d+), column (\d+)\)", message):
            raise _no_value(text, int(invalid[1]), int(invalid[2])) from None
        found = re.search(r"Illegal character '\\n' \(at line (\d+)", message)
        if found is None and not re.match(r"Unterminated string|Expected \"'\"", message):
            raise
        number = int(found[1]) if found else _unclosed(text)
        error = ValueError(f"a quote is not closed in line {number}: {text.splitlines()[number - 1].strip()}")
        error.add_note("A text begins and ends with the same quote, in one line.")
        raise error from None


def _no_value(text: str, number: int, column: int) -> ValueError:
    """The error for a word that stands where a value has to be."""
    line = text.split("\n")[number - 1]
    word = re.match(r"[^\s,\]}#]*", line[column - 1 :])
    odd = word[0] if word else ""
    meant = did_you_mean(odd, ("true", "false"))
    error = ValueError(f"{odd!r} in line {number} is no value{meant}: {line.strip()}")
    error.add_note("Text is written in quotes; numbers, true and false are not.")
    return error


def _meant_by(names: Iterable[str], known: str) -> str:
    """The end of a message about a name that is missing, where one like it is there."""
    odd = next((name for name in names if nearest(name, (known,))), None)
    return "" if odd is None else f"; there is {odd!r}, did you mean {known!r}?"


def _unclosed(text: str) -> int:
    """The first line with a single quote that has no partner."""
    lines = enumerate(text.splitlines(), 1)
    return next((n for n, line in lines if line.count("'") % 2), len(text.splitlines()))


def _of_tables(file: Path, tables: Mapping[str, Any]) -> Job:
    has_plan = "plan" in tables or "sources" in tables
    if has_plan and "plan" not in tables:
        meant = _meant_by(tables, "plan")
        error = ValueError(f"a job with [sources.NAME] needs a table [plan]{meant}")
        error.add_note("Add [plan] with its steps; for a merge alone, write [source] and [merge].")
        raise error
    known: Mapping[str, Any] = OF_PLANS if has_plan else OF_MERGES
    for name in tables:
        if name not in known:
            what = "a job that has a plan" if has_plan else "a job"
            error = unknown(f"[{name}] is no table of {what}", name, known, "Its tables are")
            if name in ("source", "merge", "changes"):
                error.add_note("A plan has [sources.NAME], and its merges are steps or streams of [plan].")
            raise error
    plan, ends = (_plan if has_plan else _merge)(file, tables)
    sink, spark = tables.get("sink", {}), tables.get("spark", {})
    return _checked(
        Job(file, plan, ends, _sink(sink, "[sink]"), _spark(spark, "[spark]")),
    )


def _plan(file: Path, tables: Mapping[str, Any]) -> tuple[Stream, dict[str, Any]]:
    """The plan of [sources.NAME] and [plan], and what is read for each source."""
    given = tables.get("sources")
    if not isinstance(given, Mapping) or not given:
        error = ValueError("a plan needs a table [sources.NAME] for each of its sources")
        error.add_note(f"Add [sources.NAME] with its keys: {', '.join(keys(PlanSourceSection))}.")
        raise error
    sources = {name: section(PlanSourceSection, one, f"[sources.{name}]") for name, one in given.items()}
    for name, one in sources.items():
        one.check(name)
    stream = built(file, sources, stream_sections(tables["plan"]))
    return stream, {name: one.ends() for name, one in sources.items()}


def _merge(file: Path, tables: Mapping[str, Any]) -> tuple[MergeSection | ChangesSection, dict[str, Any]]:
    """The merge of [merge] or [changes], and what is read for its one source."""
    if "source" not in tables:
        error = ValueError("a job needs a table [source], or [sources.NAME] and [plan]")
        error.add_note(f"Add [source] with its keys: {', '.join(keys(SourceSection))}.")
        error.add_note(
            "A job with several sources, or other steps than a merge, has [sources.NAME] and [plan]."
        )
        raise error
    source = section(SourceSection, tables["source"], "[source]")
    source.check()
    return _merging(tables, "[{}]".format), {ROWS_SOURCE: source}


def _merging(sections: Mapping[str, Any], spelled: Callable[[str], str]) -> MergeSection | ChangesSection:
    """What rows mean: the one of two sections that a merge has."""
    match [name for name in ("merge", "changes") if name in sections]:
        case ["merge"]:
            return section(MergeSection, sections["merge"], spelled("merge"))
        case ["changes"]:
            return section(ChangesSection, sections["changes"], spelled("changes"))
        case given:
            merge, changes = spelled("merge"), spelled("changes")
            found = "both" if given else "neither"
            error = ValueError(f"a job has one of {merge} and {changes}, and this has {found}")
            error.add_note(f"{merge} is for rows that are events, and has a start at least;")
            error.add_note(
                f"{changes} is for rows that say what happened to a row of a table, and has key and time."
            )
            raise error


def _of_program(file: Path) -> Job:
    file.open().close()  # so that a file that is not there is named as everywhere
    sys.path.insert(0, str(file.parent))  # it may import what is beside it, as a program may
    with in_program(file):
        names = runpy.run_path(str(file), run_name="__anabranch__")
    has_plan = "stream" in names or ("plan" in names and "rows" not in names)
    _check_dicts(names, ("SOURCES",) if has_plan else ("MERGE", "CHANGES"))
    plan, ends = (_plan_of_program if has_plan else _merge_of_program)(file, names)
    sink, spark = names.get("SINK", {}), names.get("SPARK", {})
    return _checked(Job(file, plan, ends, _sink(sink, "SINK"), _spark(spark, "SPARK")))


def _check_dicts(names: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise where a dict is called almost as one that a job has, which would be ignored."""
    for meant in (*known, "SINK", "SPARK"):
        if meant in names:
            continue
        for name, value in names.items():
            if isinstance(value, Mapping) and name not in known and is_slip(name, meant):
                error = ValueError(
                    f"a job in Python has a dict {meant}, and this one has {name}, did you mean {meant!r}?"
                )
                error.add_note(f"A dict that is something else has another name, such as _{name.lower()}.")
                raise error


def _merge_of_program(
    file: Path, names: Mapping[str, Any]
) -> tuple[MergeSection | ChangesSection, dict[str, Any]]:
    if not callable(names.get("rows")):
        defined = [name for name, value in names.items() if isinstance(value, Stream) or callable(value)]
        meant = next(filter(None, (_meant_by(defined, known) for known in ("stream", "plan", "rows"))), "")
        error = ValueError(f"a job in Python needs a function rows(spark), or a stream{meant}")
        error.add_note(
            "It gives a streaming frame, or the path of a folder. A plan has a stream in its place."
        )
        raise error
    own = {name.lower(): value for name, value in names.items() if name.isupper()}
    return _merging(own, str.upper), {ROWS_SOURCE: names["rows"]}


def _plan_of_program(file: Path, names: Mapping[str, Any]) -> tuple[Stream, dict[str, Any]]:
    if "stream" in names:
        stream = names["stream"]
    else:
        with in_program(file):
            stream = names["plan"]()
    if not isinstance(stream, Stream):
        what = "stream" if "stream" in names else "what plan() gives"
        error = ValueError(f"{what} is a stream of anabranch, and it is {type(stream).__name__}")
        error.add_note("Make one with anabranch.source(…); replicas are merged by .merge().")
        raise error
    ends = names.get("SOURCES")
    if not isinstance(ends, Mapping):
        error = ValueError("a plan in Python needs a dict SOURCES")
        error.add_note("It has for each source what is read: a path, anabranch.folder(…), kafka(…), …")
        raise error
    sources = sources_of(stream)
    for name in sources:
        if name not in ends:
            meant = _meant_by([one for one in ends if one not in sources], name)
            error = ValueError(f"SOURCES has what is read for each source, and nothing for {name!r}{meant}")
            error.add_note(f"It has {', '.join(map(repr, ends)) or 'nothing'}.")
            raise error
    for name in ends:
        if name not in sources:
            raise unknown(f"SOURCES has {name!r}, and the plan has no such source", name, sources, "It has")
    return stream, dict(ends)


def _sink(values: Any, name: str) -> SinkSection:
    """Where the result goes; its format, if one is named, is that of its file."""
    sink = section(SinkSection, values, name)
    sink.check()
    sink.check_format(values.get("format"))
    return sink


def _spark(values: Any, name: str) -> SparkSection:
    """The session that a job runs in on Spark."""
    spark = section(SparkSection, values, name)
    spark.check()
    return spark


def _checked(job: Job) -> Job:
    from anabranch.engines.spark.query.provenance import check_apart

    if not isinstance(job.plan, Stream):
        job.plan.arguments()
        check_table(job.plan, job.sink)
    written = job.written()
    if job.spark.log is not None and job.spark.log != "-":
        job.place(job.spark.log)
    alone = [] if job.out_file in (None, STANDARD) else [Path(str(job.out_file))]
    for given in job.ends.values():
        if isinstance(given, SourceSection) and not isinstance(job.plan, Stream):
            check_together(given, job.plan)
        for place in places_of(job, given):
            check_apart(place, written.get("sink"), job.checkpoint, job.quarantine, *alone)
    return job
