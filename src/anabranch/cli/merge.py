"""Merge replicas: several recorded streams that mean the same, as one.

Each file is an input, called as its stem or as NAME=FILE says. One file that records several inputs in the
order of arrival is played as it is, with those that come and go. Files are read in step: always the one
whose last stable is least, so the result repeats exactly. An input that ends before stable(∞) has left.

The narrowest case is picked that the declared properties allow; without any it is R4, which needs none.
The stream goes to --out, a summary of who led, lagged and disagreed to standard error.
Files of plain rows (CSV, JSON lines, Parquet, Arrow) are merged where --start names the column of their time:
each row is an event, each file a replica. Texts have the types of the first 1,000 rows, which are printed.

An adjust of an event that its input never showed is evidence of a gap, not an error.
Exit status: 0 merged, 1 merged but inputs disagreed (the output has what the leader showed) or nobody could
lead to the end, 2 misuse.

examples:
  anabranch merge a.jsonl b.parquet --out merged.jsonl
  anabranch merge a.jsonl b.jsonl --lossy all --out -     each has holes, the union is complete
  anabranch merge east=1.jsonl west=2.jsonl --policy final --lag 60
  anabranch merge a.parquet b.parquet --lag '5 minutes'   their times are timestamps
  anabranch merge a.parquet b.parquet --declare perfect,keyed --explain
  anabranch merge a.jsonl b.jsonl --guarantee b=1200      b joined late
  anabranch merge recording.jsonl --policy quorum=0.6 --json
  anabranch merge north.csv south.csv --start at --duration '5 minutes' --disorder '1 minute' --lossy all \\
      -o merged.parquet                                   plain rows
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from errno import ENOENT
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli.arguments import (
    FORMATS,
    add_json,
    add_policy,
    add_reading,
    check_elements,
    check_standard_input,
    policy_of,
    source_of,
    span_argument,
)
from anabranch.cli.inputs import (
    ALL,
    NONE,
    asked_for,
    check_names,
    declaration_argument,
    fact_word,
    guarantee_argument,
    lossy_argument,
    named_files,
    names_argument,
    policy_argument,
)
from anabranch.cli.row_arguments import add_rows
from anabranch.model.output_policy import POLICIES, FirstThenFinal, Lead, Pace
from anabranch.model.properties import Case, Fact

if TYPE_CHECKING:
    from datetime import timedelta

    from anabranch.cli.quarantine import Refusals
    from anabranch.engines.embedded.merger import Merger
    from anabranch.kernels.merge.settings import OnBroken
    from anabranch.kernels.merge.status import Disagreement, Status
    from anabranch.model.batch import Batch
    from anabranch.model.clock import Clock
    from anabranch.model.validity import Policy


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``merge``."""
    parser.add_argument(
        "files", nargs="+", metavar="[NAME=]FILE", help="recorded replicas, or - for standard input"
    )
    parser.add_argument(
        "-o", "--out", metavar="FILE", default="-", help="the file to write (default -, as jsonl)"
    )
    parser.add_argument("--to", choices=FORMATS, help="format of the output; its ending tells it otherwise")
    parser.add_argument("--text", action="store_true", help="write values that JSON has no type for as text")
    parser.add_argument(
        "--policy",
        type=policy_argument,
        default=FirstThenFinal(),
        metavar="POLICY",
        help=f"when an event is out: {', '.join(POLICIES)} (default first); with a share quorum=SHARE, "
        f"by what it leads leader={{{','.join(lead.value for lead in Lead)}}}",
    )
    parser.add_argument(
        "--lag",
        type=span_argument,
        default=0,
        metavar="SPAN",
        help="keep the stable this far behind: '3h' where times are timestamps or dates, else ticks",
    )
    parser.add_argument("--case", choices=[case.name for case in Case], help="this case, instead of picking")
    parser.add_argument(
        "--declare",
        type=declaration_argument,
        action="append",
        default=[],
        metavar="[NAME=]FACT,…",
        help=f"what all inputs, or one, promise: {', '.join(map(fact_word, Fact))}",
    )
    parser.add_argument(
        "--lossy",
        type=lossy_argument,
        metavar="NAME,…",
        help=f"inputs that may have holes, {ALL!r} or {NONE!r} (default {NONE}; of rows it must be given)",
    )
    parser.add_argument(
        "--pace",
        choices=[pace.value for pace in Pace],
        default=Pace.SLOWEST.value,
        help="whose stable is followed while there are only lossy inputs (default slowest)",
    )
    parser.add_argument(
        "--guarantee",
        type=guarantee_argument,
        action="append",
        default=[],
        metavar="NAME=TICK",
        help="an input that joined late shows every event that ends at or after this time",
    )
    parser.add_argument(
        "--identity",
        type=names_argument,
        metavar="COLUMN,…",
        help="what tells events apart (default all columns)",
    )
    parser.add_argument(
        "--on-broken",
        choices=("raise", "generalise", "drop"),
        default="raise",
        help="where an input breaks a declared property: stop (raise, the default), go on in a more general "
        "case (generalise), or leave the element out (drop)",
    )
    parser.add_argument("--explain", action="store_true", help="say which case and why, and merge nothing")
    add_rows(parser)
    add_reading(parser)
    add_policy(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write the merged stream, and say who led and who disagreed."""
    from anabranch.cli import merge_rows, quarantine
    from anabranch.cli.progress import progress, said_if_slow
    from anabranch.connectors.files.formats import written_format
    from anabranch.connectors.files.writing import Target

    files = named_files(options.files)
    paths = list(files.values())
    check_standard_input(paths)
    quarantine.check_target(options.quarantine, paths)
    _check_out(options, paths)
    for path in paths:
        if path != "-" and not Path(path).exists():
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)
    written_format(options.out, options.to, None)
    if merge_rows.are_rows(options, files):
        return merge_rows.run(options, files)
    for path in paths:
        check_elements(path, options.format, options.dialect)
    clock = _clock(options, paths)
    target = Target.named(options.out, options.to, as_text=options.text, clock=clock)
    left_out = quarantine.Refusals(kept=bool(options.quarantine))
    merger = _merger(options, files, left_out, clock)
    with progress(f"merging {', '.join(files)}") as done:
        sources = _sources(options, files, left_out, done)
        if options.explain:
            return _explain(merger, sources, options)
        with said_if_slow("the first merge on a machine is compiled for it, once; a moment") as under_way:
            count = target.write(telling(under_way, _merged(merger, sources, options)))
    if options.quarantine:
        quarantine.write(left_out.violations, options.quarantine)
    return concluded(merger.status(), clock, count, left_out, options)


def concluded(
    status: Status,
    clock: Clock,
    count: int,
    left_out: Refusals,
    options: argparse.Namespace,
    remarks: Sequence[str] = (),
) -> int:
    """Report what came of a merge, with remarks about its inputs; the exit status."""
    if options.json:
        fields = {**_status_fields(status, clock), "left_out": left_out.counts}
        print_json(fields | ({"remarks": [*remarks]} if remarks else {}), options)
    else:
        summary = f"{options.out}: {count} elements", status.text(clock), *left_out.lines(), *remarks
        print("\n".join(summary), file=sys.stderr)
    return 1 if status.stuck or any(one.disagreements for one in status.inputs.values()) else 0


def telling(under_way: Callable[[], object], batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches; ``under_way`` is called as they come."""
    for batch in batches:
        if len(batch):
            under_way()
        yield batch


def _check_out(options: argparse.Namespace, paths: list[str]) -> None:
    """What is merged is not written over what is read, nor over what is set aside."""
    if options.out == "-":
        return
    others = [*paths, *([options.quarantine] if options.quarantine else [])]
    if any(Path(options.out).resolve() == Path(path).resolve() for path in others if path != "-"):
        raise ValueError(f"--out would write over {options.out}, which is an input or the quarantine")


def _clock(options: argparse.Namespace, paths: list[str]) -> Clock:
    """What ticks are in all the files."""
    from anabranch.model.clock import Clock

    clocks = {path: source_of(options, path).known_clock() for path in paths}
    known = {path: clock for path, clock in clocks.items() if clock is not None}
    for path, clock in known.items():
        first, other = next(iter(known.items()))
        if clock is not other:
            error = ValueError(f"the times of {first} are {other.value}, those of {path} {clock.value}")
            error.add_note("Replicas are on one clock; convert one of them.")
            raise error
    return next(iter(known.values()), Clock.TICKS)


def lag_in(lag: int | timedelta, clock: Clock) -> int:
    """A lag in ticks of the clock of the files."""
    from anabranch.model.clock import check_unit, in_ticks

    check_unit(lag, clock, "--lag")
    return in_ticks(lag, clock, "--lag")


def _merger(options: argparse.Namespace, files: dict[str, str], left_out: Refusals, clock: Clock) -> Merger:
    from dataclasses import replace

    from anabranch.engines.embedded.merger import Merger
    from anabranch.kernels.merge.settings import Generalise
    from anabranch.model.validity import Quarantine, Raise

    recording = next(iter(files.values()))
    aside = Quarantine(left_out.sink(lambda violation: files.get(violation.input or "", recording)))
    invalid: Policy = Raise() if isinstance(policy_of(options), Raise) else aside
    broken: dict[str, OnBroken] = {"raise": Raise(), "generalise": Generalise(), "drop": aside}
    return Merger(
        options.case,
        replace(options.policy, lag=lag_in(options.lag, clock)),
        pace=Pace(options.pace),
        identity=options.identity,
        on_invalid=invalid,
        on_broken=broken[options.on_broken],
        on_late=aside,
    )


def _sources(
    options: argparse.Namespace,
    files: dict[str, str],
    left_out: Refusals,
    progress: Callable[[float], object],
) -> dict[str, Iterator[Batch]]:
    """What each file holds; progress is told how much of all has been read."""
    from anabranch.model.validity import Quarantine, Raise

    done = dict.fromkeys(files, 0.0)

    def batches(name: str, path: str) -> Iterator[Batch]:
        def tell(share: float) -> None:
            done[name] = share
            progress(sum(done.values()) / len(done))

        policy = policy_of(options)
        if not isinstance(policy, Raise):
            policy = Quarantine(left_out.sink(lambda _: path))
        return _naming(path, source_of(options, path).batches(policy=policy, progress=tell))

    sources = {name: batches(name, path) for name, path in files.items()}
    if len(files) == 1:
        return sources
    return {name: _of_one_input(batches, files[name]) for name, batches in sources.items()}


def _naming(path: str, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches; an error while reading says in which file."""
    try:
        yield from batches
    except (ValueError, TypeError) as error:
        error.add_note(f"In {path}.")
        raise


def _of_one_input(batches: Iterator[Batch], path: str) -> Iterator[Batch]:
    for batch in batches:
        if batch.input is not None:
            error = ValueError(f"a file that records several inputs is merged by itself, {path} is one")
            error.add_note(f"It records {', '.join(map(repr, batch.inputs))}.")
            error.add_note("Take one of them out with: anabranch convert FILE OUT --input NAME")
            raise error
        yield batch


def _attach(merger: Merger, name: str, guarantee: int | None, options: argparse.Namespace) -> Batch:
    """An input joins with what is asked for it; a guarantee in a recording is a complete input's."""
    asked = asked_for(name, options)
    if asked.guarantee is not None:
        guarantee = asked.guarantee
    elif not asked.complete:
        guarantee = None
    return merger.attach(name, guarantee, asked.properties, complete=asked.complete)


def _merged(
    merger: Merger, sources: dict[str, Iterator[Batch]], options: argparse.Namespace
) -> Iterator[Batch]:
    from anabranch.engines.embedded.in_step import merge_in_step

    sources, recording = _told_apart(sources)
    for batch in recording:
        if len(batch):
            yield merger.play(batch, attach=lambda name, time: _attach(merger, name, time, options))
    check_names(options, [*merger.status().inputs, *sources])
    for name in sources:
        yield _attach(merger, name, None, options)
    yield from merge_in_step(sources, merger)


def _told_apart(sources: dict[str, Iterator[Batch]]) -> tuple[dict[str, Iterator[Batch]], Iterator[Batch]]:
    """The inputs by name, or the recording if that is what the one file holds."""
    if len(sources) > 1:
        return sources, iter(())
    ((name, batches),) = sources.items()
    first = next((batch for batch in batches if len(batch)), None)
    if first is None:
        return {name: iter(())}, iter(())
    whole = chain([first], batches)
    return ({name: whole}, iter(())) if first.input is None else ({}, whole)


def _explain(merger: Merger, sources: dict[str, Iterator[Batch]], options: argparse.Namespace) -> int:
    sources, recording = _told_apart(sources)
    names = [*sources, *dict.fromkeys(name for batch in recording for name in batch.inputs)]
    check_names(options, names)
    for name in names:
        _attach(merger, name, None, options)
    if options.json:
        status = merger.status()
        fields = {"case": status.case, "reason": status.reason, "policy": status.policy, "inputs": names}
        print_json({**fields, "explanation": merger.explain().split("\n")}, options)
    else:
        print(merger.explain())
    return 0


def print_json(answer: dict[str, Any], options: argparse.Namespace) -> None:
    """Print an answer as JSON, on standard error where standard output is the stream."""
    import json

    is_stream = options.out == "-" and not options.explain
    print(json.dumps(answer, ensure_ascii=False), file=sys.stderr if is_stream else sys.stdout)


def _status_fields(status: Status, clock: Clock) -> dict[str, Any]:
    """A status as JSON fields, with times as everywhere: null is infinite, what never was is left out."""
    from anabranch.cli.display import time_field

    def with_times(fields: dict[str, Any], *names: str) -> dict[str, Any]:
        times = {key: value for name in names for key, value in time_field(name, fields[name], clock).items()}
        return {key: value for key, value in fields.items() if key not in names} | times

    fields = with_times(status.as_dict(), "frontier")
    fields["inputs"] = {
        name: with_times(one, "frontier", "guarantee") for name, one in fields["inputs"].items()
    }
    return fields | {"disagreements": [_disagreement_fields(one, clock) for one in status.disagreements]}


def _disagreement_fields(one: Disagreement, clock: Clock) -> dict[str, Any]:
    """Who has which event where the output has which; null where there is none."""
    from anabranch.cli.display import event_fields, time_field
    from anabranch.model.elements import Event

    def event(end: int | None) -> dict[str, Any] | None:
        return None if end is None else event_fields(Event(one.payload, one.start, end), clock)

    return {
        "input": one.input,
        "shown": event(one.shown),
        "given": event(one.given),
        **time_field("since", one.since, clock),
    }
