"""Check that streams are valid, and that several can still be one.

Every element is checked against what came before it; several files, or several inputs in one file, are
checked for mutual consistency as well. Exit status: 0 valid, 1 not, 2 misuse.

examples:
  anabranch check feed.jsonl
  anabranch check a.jsonl b.parquet                    two replicas
  anabranch check a.jsonl b.jsonl --output merged.jsonl  and a merge of them
  anabranch check feed.jsonl --properties              is it ordered, keyed, insert-only?
  anabranch check feed.jsonl --quarantine bad.jsonl    write what is invalid, with reasons
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anabranch.cli.arguments import (
    add_json,
    add_quarantine,
    add_reading,
    check_elements,
    check_standard_input,
    source_of,
)

if TYPE_CHECKING:
    from anabranch.model.observation import Observation
    from anabranch.model.recording import Recording
    from anabranch.model.validity import Violation

SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``check``."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="recorded streams, or - for standard input")
    parser.add_argument("--output", metavar="FILE", help="a stream that must be compatible with the others")
    parser.add_argument("--properties", action="store_true", help="say which properties each stream has")
    add_reading(parser)
    add_quarantine(parser)
    add_json(parser)


@dataclass
class _Report:
    """What was found in one file."""

    file: str
    recording: Recording
    violations: list[Violation] = field(default_factory=list)
    observations: dict[str, Observation] = field(default_factory=dict)


def run(options: argparse.Namespace) -> int:
    """Say what is wrong, or that nothing is."""
    from anabranch.cli import quarantine
    from anabranch.model.consistency import contradiction, incompatibility

    paths = [*options.files, *([options.output] if options.output else [])]
    check_standard_input(paths)
    quarantine.check_target(options.quarantine, paths)
    for path in paths:
        check_elements(path, options.format, options.dialect)
    reports = [_look_at(path, options) for path in options.files]
    relations, guarantees = {}, {}
    for number, report in enumerate(reports, 1):
        for name, an_input in report.recording.inputs.items():
            label = name if len(reports) == 1 or name == report.file else f"{report.file}:{name}"
            label = f"{label} (file {number})" if label in relations else label
            relations[label], guarantees[label] = an_input.relation, an_input.guarantee
    problems: list[object] = [contradiction(relations, guarantees)]
    if options.output:
        merged = _look_at(options.output, options)
        if list(merged.recording.inputs) != [options.output]:
            raise ValueError(f"an output is one stream, {options.output} records several inputs")
        reports.append(merged)
        output = merged.recording.inputs[options.output].relation
        problems.append(incompatibility(output, relations, guarantees))
    found = [(report.file, violation) for report in reports for violation in report.violations]
    if options.quarantine:
        quarantine.write(found, options.quarantine)
    named = [str(problem) for problem in problems if problem]
    if options.json:
        print(json.dumps(_answer(reports, named), ensure_ascii=False))
    else:
        _print_reports(reports, named, consistent=len(relations) > 1)
    return 1 if found or named else 0


def _look_at(path: str, options: argparse.Namespace) -> _Report:
    from collections import defaultdict

    from anabranch.cli.progress import progress
    from anabranch.model.observation import Observation
    from anabranch.model.recording import Recording
    from anabranch.model.validity import Quarantine

    report = _Report(path, Recording(), observations=defaultdict(Observation))
    aside = Quarantine(report.violations.append)
    report.recording = Recording(aside, alone=path)
    if options.properties:
        report.recording.heard = lambda name, batch: report.observations[name].look_at(batch)
    with progress(f"checking {path}") as done:
        for batch in source_of(options, path).batches(policy=aside, progress=done):
            report.recording.apply(batch)
    report.recording.close()
    return report


def _answer(reports: list[_Report], problems: list[str]) -> dict[str, Any]:
    from anabranch.cli.quarantine import record

    return {
        "valid": not any(report.violations for report in reports) and not problems,
        "problems": problems,
        "files": [
            {
                "file": report.file,
                "inputs": {name: i.relation.position for name, i in report.recording.inputs.items()},
                "violations": [record(violation, report.file) for violation in report.violations],
                "properties": {
                    name: [str(fact) for fact in observation.properties()]
                    for name, observation in report.observations.items()
                },
            }
            for report in reports
        ],
    }


def _print_reports(reports: list[_Report], problems: list[str], *, consistent: bool) -> None:
    for report in reports:
        elements = sum(an_input.relation.position for an_input in report.recording.inputs.values())
        verdict = f"{len(report.violations)} violations" if report.violations else "all valid"
        print(f"{report.file}: {elements} elements, {verdict}")
        for violation in report.violations[:SHOWN]:
            print(f"  {violation.message}")
            print(f"    {violation.rule.way_out}")
        if len(report.violations) > SHOWN:
            print(f"  … and {len(report.violations) - SHOWN} more (--quarantine FILE writes all)")
        for name, observation in report.observations.items():
            _print_properties(name, observation)
    for problem in problems:
        print(f"not consistent: {problem}")
    if consistent and not problems:
        print("mutually consistent: they can be one stream")


def _print_properties(name: str, observation: Observation) -> None:
    print(f"  properties of {name}: {observation.properties()}")
    for fact, position in observation.broken_at.items():
        print(f"  not {fact}: {fact.value!r} ends with element {position}")
