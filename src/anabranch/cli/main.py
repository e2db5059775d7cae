"""The command ``anabranch``: finds the sub-command, runs it, and turns what went wrong into a message."""

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from anabranch.cli import check, convert, diff, explain, generate, init, merge, run, show
from anabranch.cli.demo import command as demo
from anabranch.cli.doctor import command as doctor
from anabranch.cli.light_start import start_lightly
from anabranch.connectors.files.local_path import path_meant
from anabranch.extras import without_spark
from anabranch.model.spelling import did_you_mean

COMMANDS = {
    "show": show,
    "check": check,
    "diff": diff,
    "merge": merge,
    "run": run,
    "explain": explain,
    "init": init,
    "doctor": doctor,
    "convert": convert,
    "generate": generate,
    "demo": demo,
}

MISUSE = 2
INTERRUPTED = 130
TERMINATED = 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    options = command_line().parse_args(arguments)
    if arguments is None:
        start_lightly(options)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no ∞ shows ?, and the command goes on
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that unfinished files are removed
    try:
        return options.run(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining as it closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, TypeError, OverflowError, ImportError) as error:
        print(_message(error), file=sys.stderr)
        return MISUSE


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        meant = path_meant(str(error.filename)) if isinstance(error, FileNotFoundError) else ""
        what = f"{error.filename}: {error.strerror}{meant}" if error.filename else error.strerror
    else:
        what = without_spark(error) or str(error)
    return "\n".join([f"anabranch: {what}", *(f"  {note}" for note in getattr(error, "__notes__", []))])


class _Parser(argparse.ArgumentParser):
    """One that answers misuse with what is wrong and where to read on, not with all that there is."""

    def error(self, message: str) -> NoReturn:
        message = f"{message}{_option_meant(message, self)}"
        self.exit(MISUSE, f"anabranch: {message}\n  {self.prog} --help says what may be written.\n")


def _option_meant(message: str, parser: argparse.ArgumentParser) -> str:
    """The end of a message about a word that is no command, no option or no choice of one."""
    if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
        return did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
    if odd := re.match(r"unrecognized arguments:.*?(--[\w-]+)", message):
        return did_you_mean(odd[1], _options(parser))
    return ""


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a parser and of its commands."""
    found: dict[str, None] = {}
    for action in parser._actions:
        found.update(dict.fromkeys(action.option_strings))
        inner = action.choices if isinstance(action, argparse._SubParsersAction) else {}
        for command in inner.values():
            found.update(dict.fromkeys(_options(command)))
    return [name for name in found if name.startswith("--")]


def command_line() -> argparse.ArgumentParser:
    """What may be written after ``anabranch``."""
    parser = _Parser(
        prog="anabranch",
        description="Many unreliable physical streams, one correct logical stream.",
        epilog="examples:\n"
        "  anabranch demo                        two replicas on Spark, one dies, and nothing is lost\n"
        "  anabranch show feed.jsonl             the relation a recorded stream denotes\n"
        "  anabranch check a.jsonl b.parquet     are they valid, and can they be one stream?\n"
        "  anabranch diff a.jsonl b.jsonl        do they mean the same?\n"
        "  anabranch merge a.jsonl b.jsonl       one stream of both, on standard output\n"
        "  anabranch init pipeline               a small job with its data, to begin with\n"
        "  anabranch run job.toml                a merge of your own sources on Spark\n"
        "  anabranch run job.toml --engine embedded       a job of your own, without Spark\n"
        "  anabranch explain job.toml            what a job does, and why so\n"
        "  anabranch doctor job.toml             is all there that it needs?\n"
        "\nanabranch COMMAND --help says more about each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"anabranch {version('anabranch')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        summary, _, details = (module.__doc__ or "").partition("\n\n")
        command = commands.add_parser(
            name,
            help=summary.rstrip("."),
            description=summary,
            epilog=details.strip("\n"),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(command)
        command.set_defaults(run=module.run, command=name)
    return parser


if __name__ == "__main__":
    sys.exit(main())
