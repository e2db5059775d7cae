"""Files of plain rows, merged by a plan that runs in this process: a source of replicas, and its merge."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from anabranch.cli.inputs import ALL, check_names
from anabranch.cli.row_arguments import ROW_OPTIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from anabranch.kernels.merge.settings import OnBroken
    from anabranch.model.validity import Policy
    from anabranch.plan.stream import Stream

SOURCE = "rows"
"""What the source of the plan is called."""


def are_rows(options: argparse.Namespace, files: dict[str, str]) -> bool:
    """Whether the files hold plain rows; rows without a start are refused, and a mixture with elements."""
    from anabranch.connectors.files.rows_or_elements import holds_rows

    if options.dialect is not None and options.start is None:
        return False
    held = {path: holds_rows(path, options.format) for path in files.values()}
    rows = [path for path, are in held.items() if are]
    elements = [path for path, are in held.items() if are is False]
    if rows and elements:
        raise _mixed(rows[0], elements[0])
    if options.start is not None and elements:
        error = ValueError(f"--start is of plain rows, and {elements[0]} holds elements, which have times")
        error.add_note("Leave --start out. Columns of the names kind and start make a file one of elements:")
        error.add_note("rows that have both are merged when one of them is renamed.")
        raise error
    if options.start is None:
        if rows:
            raise _no_start(rows[0])
        _check_no_row_options(options)
    return options.start is not None


def _mixed(rows: str, elements: str) -> ValueError:
    error = ValueError(
        f"files of one merge hold plain rows or elements, and {rows} holds rows and {elements} elements"
    )
    error.add_note("Merge the files of rows by themselves, with --start; that writes elements.")
    error.add_note("Then merge what was written with the files of elements.")
    return error


def _no_start(path: str) -> ValueError:
    error = ValueError(f"{path} holds plain rows, and which column is the start of their events is not given")
    error.add_note("Name it, and how long events last, how late rows may be, and which files may lack rows:")
    error.add_note(
        f"anabranch merge {path} … --start COLUMN --duration '5 minutes' --disorder '1 minute' --lossy all"
    )
    return error


def _check_no_row_options(options: argparse.Namespace) -> None:
    for name in ROW_OPTIONS:
        if getattr(options, name) is not None:
            error = ValueError(f"--{name} is of plain rows, and --start, which they need, is not given")
            error.add_note(f"Name the column of their start with --start, or leave --{name} out:")
            error.add_note("elements have times of their own.")
            raise error


def run(options: argparse.Namespace, files: dict[str, str]) -> int:
    """Write the merged stream, and report what each replica had, lacked and filled."""
    from anabranch.plan.line import NO_LINE, told

    _check(options, files)
    with told(NO_LINE):
        return _merge(options, files)


def _merge(options: argparse.Namespace, files: dict[str, str]) -> int:
    from anabranch.cli import merge, quarantine
    from anabranch.cli.progress import progress, said_if_slow
    from anabranch.connectors.columns import columns
    from anabranch.connectors.files.formats import format_of
    from anabranch.connectors.files.sampled_columns import in_words
    from anabranch.connectors.files.writing import Target
    from anabranch.connectors.running import run as run_plan
    from anabranch.model.json_lines import MalformedError
    from anabranch.model.validity import Quarantine

    known = columns(files, schema=dict(options.schema or ()), zone=options.zone)
    if texts := [path for path in files.values() if format_of(path).is_text]:
        print(f"anabranch: {in_words(texts, known)}", file=sys.stderr)
    left_out = quarantine.Refusals(kept=bool(options.quarantine))
    first = next(iter(files.values()))
    aside = Quarantine(left_out.sink(lambda violation: files.get(violation.input or "", first)))
    stream = _plan(options, files, known, aside)
    if options.explain:
        return _explain(stream, options)
    with progress(f"merging {', '.join(files)}") as done:
        invalid = _on_invalid(options, aside)
        running = run_plan(stream, {SOURCE: files}, progress=done, on_invalid=invalid, on_late=aside)
        target = Target.named(options.out, options.to, as_text=options.text, clock=running.clock)
        with said_if_slow("the first merge on a machine is compiled for it, once; a moment") as under_way:
            try:
                count = target.write(merge.telling(under_way, running))
            except MalformedError as error:
                error.add_note(
                    "Here: --on-violation drop leaves them out, --quarantine FILE writes them there."
                )
                raise
    if options.quarantine:
        quarantine.write(left_out.violations, options.quarantine)
    (status,) = running.merges().values()
    remarks = running.status().sources[SOURCE].remarks
    return merge.concluded(status, running.clock, count, left_out, options, remarks)


def _check(options: argparse.Namespace, files: dict[str, str]) -> None:
    """Raise where an option is of elements, or one is missing without which a guess would be made."""
    from anabranch.rows.vouching import AS_OPTION, check_answered

    of_elements = {
        "format": "Rows are read by the endings of their files: .csv, .jsonl, .parquet, .arrow.",
        "dialect": "Leave --dialect out.",
        "guarantee": "Leave --guarantee out: every row that a file has is merged.",
    }
    for name, way_out in of_elements.items():
        if getattr(options, name):
            error = ValueError(f"--{name} is of elements, and with --start files hold plain rows")
            error.add_note(way_out)
            raise error
    if any(name is not None for name, _ in options.declare):
        error = ValueError("facts of plain rows are those of all files, and --declare names one")
        error.add_note("Write --declare FACT.")
        raise error
    if options.disorder is None:
        error = ValueError("how late a row may be decides what is final, and --disorder is not given")
        error.add_note(
            "Write --disorder '1 minute', if no row comes more than a minute after rows that start"
        )
        error.add_note("later; --disorder 0, if the rows of each file are in the order of their starts.")
        raise error
    check_names(options, list(files))
    check_answered(options.lossy, inferred=True, written=AS_OPTION)


def _plan(options: argparse.Namespace, files: dict[str, str], known: pa.Schema, aside: Policy) -> Stream:
    """The source of the rows, of which each file is a replica, and its merge."""
    from dataclasses import replace

    import pyarrow as pa

    from anabranch.kernels.merge.settings import Generalise
    from anabranch.model.output_policy import Pace
    from anabranch.model.validity import Raise
    from anabranch.plan.build import source

    _check_times(options, known)
    replica = "replica"
    while replica in known.names:
        replica += "_"
    facts = [fact for _, some in options.declare for fact in some]
    broken: dict[str, OnBroken] = {"raise": Raise(), "generalise": Generalise(), "drop": aside}
    merged: Stream = source(
        SOURCE,
        known.append(pa.field(replica, pa.string())),
        start=options.start,
        end=options.end,
        duration=options.duration,
        disorder=options.disorder,
        payload=options.payload,
        key=options.key,
        properties=facts or None,
        replica=replica,
        replicas=tuple(files),
        lossy=ALL in options.lossy or options.lossy,
    ).merge(
        case=options.case,
        policy=replace(options.policy, lag=options.lag),
        pace=Pace(options.pace),
        identity=options.identity,
        on_broken=broken[options.on_broken],
    )
    return merged


def _check_times(options: argparse.Namespace, known: pa.Schema) -> None:
    """Raise where times are text: no form of a time was in all of the first rows, or nothing was."""
    import pyarrow as pa

    for role in ("start", "end"):
        name = getattr(options, role)
        if name in known.names and pa.types.is_string(known.field(name).type):
            error = ValueError(
                f"--{role} is a timestamp, a date or a number, and column {name!r} has text in its first rows"
            )
            error.add_note(
                "Write times as 2026-03-01T10:00:00Z. If only some of them name a zone: --zone ZONE."
            )
            error.add_note(
                f"If only some are times, or no row is there yet: --schema '{name}=timestamp[us, tz=UTC]'."
            )
            raise error


def _on_invalid(options: argparse.Namespace, aside: Policy) -> Policy:
    from anabranch.cli.arguments import policy_of
    from anabranch.model.validity import Raise

    asked = policy_of(options)
    return asked if isinstance(asked, Raise) else aside


def _explain(stream: Stream, options: argparse.Namespace) -> int:
    from anabranch.plan.description import described

    if options.json:
        told = {"explanation": stream.explain().split("\n"), **described({"": stream.node})}
        print(json.dumps(told, ensure_ascii=False))
    else:
        print(stream.explain())
    return 0
