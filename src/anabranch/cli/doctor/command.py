"""Check what a merge on Spark needs, and say how to mend what is not in order.

A line for each thing that is looked at: ok, note (worth knowing; a job may run without it) or trouble, and
below trouble what to do about it. Python and packages, Java, the Python of Spark's workers, address and host
name, memory, and disks are always looked at. With FILE, a job of anabranch run, also whether it says what to
do, whether its source is there, its topics answer, the changes of its tables are fed, its sink is its own,
and its checkpoint readable. A job in Python is run as far as its definitions. Nothing else is started unless
--spark asks for it, and nothing is written; where Spark fails, what it said is kept.

Exit status: 0 all is well, 1 something must be mended, 2 misuse.

examples:
  anabranch doctor
  anabranch doctor job.toml
  anabranch doctor job.toml --spark                    and start Spark, and merge three rows on it
  anabranch doctor --broker localhost:9092 --table data/events
  anabranch doctor --broker b.example:9093 --broker-config security.protocol=SASL_SSL \\
      --broker-config sasl.mechanisms=PLAIN --broker-config sasl.username=me \\
      --broker-config 'sasl.password=$PASSWORD'
  anabranch doctor --json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from os.path import expandvars
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.cli.arguments import add_json

if TYPE_CHECKING:
    from anabranch.cli.doctor.finding import Finding

STYLES = {"ok": "green", "note": "cyan", "trouble": "bold red"}
MARGIN = 26


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``doctor``."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="a job, a .toml or .py file")
    parser.add_argument(
        "--broker",
        action="append",
        default=[],
        type=_address,
        metavar="HOST:PORT",
        help="a broker of Kafka that must answer; may be repeated",
    )
    parser.add_argument(
        "--broker-config",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a setting of librdkafka to ask --broker with; $NAME in it is from the environment",
    )
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="PATH",
        help="a Delta table that must open; may be repeated",
    )
    parser.add_argument("--spark", action="store_true", help="start Spark and run a small merge on it")
    add_json(parser)


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as localhost:9092")
    return text


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, such as security.protocol=SASL_SSL")
    return key, expandvars(value)


def run(options: argparse.Namespace) -> int:
    """Look at everything, and tell it as it is found."""
    from anabranch.cli.doctor.checks import findings
    from anabranch.cli.doctor.finding import Request, State
    from anabranch.cli.doctor.job import read

    found: list[Finding] = []
    tell = found.append if options.json else _teller(found)
    job = None
    if options.file:
        _check_file(options.file)
        job, finding = read(options.file)
        tell(finding)
    brokers, config = tuple(options.broker), dict(options.broker_config)
    asked = Request(job, brokers, config, tuple(options.table), spark=options.spark)
    for finding in findings(asked):
        tell(finding)
    bad = sum(finding.state is State.TROUBLE for finding in found)
    if options.json:
        answer = {"well": not bad, "checks": [finding.fields() for finding in found]}
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print(f"\n{bad} of {len(found)} checks found trouble" if bad else "\nall is well")
    return 1 if bad else 0


def _check_file(path: str) -> None:
    """What is no job by its name, or is not there, is misuse; one with mistakes in it is trouble."""
    if Path(path).suffix not in (".toml", ".py"):
        error = ValueError(f"a job is a .toml or a .py file, {path} is neither")
        error.add_note("anabranch run --help shows what is in one.")
        raise error
    Path(path).open().close()


def _teller(found: list[Finding]) -> Callable[[Finding], None]:
    """Prints each finding when it is there; in colours, if the package for them is."""
    show: Callable[[str, str, str], None]
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:

        def show(state: str, style: str, rest: str) -> None:
            print(f"{state:<9}{rest}", flush=True)
    else:
        console = Console(highlight=False, markup=False, emoji=False)

        def show(state: str, style: str, rest: str) -> None:
            console.print(Text.assemble((f"{state:<9}", style), rest), soft_wrap=True)

    def tell(finding: Finding) -> None:
        found.append(finding)
        show(finding.state, STYLES[finding.state], f"{finding.what:<{MARGIN - 9}}{finding.found}")
        for line in finding.mend:
            show("", "", " " * (MARGIN - 9) + line)

    return tell
