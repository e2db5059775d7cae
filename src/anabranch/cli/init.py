"""Write a small job with its data, to run and then to change.

A folder gets a commented job.toml, a README.md, and feeds of two replicas that have holes, repeats and a few
bad rows. Files that are there are not touched unless --force says so, and then only those of the same names.

Exit status: 0 all is written, 2 files are in the way (and nothing is written), or misuse.

examples:
  anabranch init                      in this folder
  anabranch init pipeline             in a folder of its own
  anabranch init pipeline --force     write the files anew
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from anabranch.cli.arguments import add_json

NEXT = {
    "doctor job.toml": "is all there that a run needs?",
    "run job.toml --check": "what would be done, and why",
    "run job.toml --once": "merge what is there",
}
NEXT_WITHOUT_SPARK = {
    "explain job.toml": "what it does, and why",
    "run job.toml --engine embedded --check": "what would be done",
    "run job.toml --engine embedded": "merge what is there, in one process",
}
"""PySpark is not installed."""
MERGED = "merged"


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``init``."""
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="where (default: here)")
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write the files, all or none, and say what to type next."""
    from anabranch.cli.sample_project import files

    place = Path(options.folder)
    texts = files()
    there = [name for name in texts if (place / name).exists() or (place / name).is_symlink()]
    if there and not options.force:
        error = FileExistsError(f"{place.absolute()} has files of the same names: {', '.join(there)}")
        error.add_note("Nothing was written.")
        error.add_note("Name another folder, or replace them with --force.")
        raise error
    for name, text in texts.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8", newline="\n")
    following = _following()
    commands = [f"{_command()} {rest}" for rest in following]
    if options.json:
        answer = {"folder": str(place.absolute()), "files": list(texts), "next": commands}
        print(json.dumps(answer, ensure_ascii=False))
    else:
        _tell(place, texts, dict(zip(commands, following.values(), strict=True)))
    return 0


def _following() -> dict[str, str]:
    """What to type next, and what for."""
    from anabranch.extras import check_spark

    try:
        check_spark()
    except ImportError:
        return NEXT_WITHOUT_SPARK
    return NEXT


def _tell(place: Path, texts: dict[str, str], commands: dict[str, str]) -> None:
    from shlex import quote

    for name in texts:
        print(f"wrote {place / name}")
    if (place / MERGED).exists():
        print(f"{place / MERGED} is of an earlier run, and the next goes on from it; remove it to begin anew")
    print("\nnext:")
    if place.absolute() != Path.cwd():
        print(f"  cd {quote(str(place))}")
    wide = max(map(len, commands))
    for command, what in commands.items():
        print(f"  {command:<{wide}}    {what}")


def _command() -> str:
    """How this command is called, wherever one stands."""
    from shlex import quote

    if shutil.which("anabranch"):
        return "anabranch"
    called = Path(sys.argv[0])
    if called.name == "anabranch":
        return quote(str(called.absolute()))
    return f"{quote(sys.executable)} -m anabranch.cli.main"
