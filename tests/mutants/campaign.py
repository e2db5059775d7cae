"""Deliberate faults in `model`, `rows`, `kernels` and the engines, drawn at random: which do tests not catch?

    ./run mutants                          a hundred faults
    ./run mutants --count 400 --seed 7
    ./run mutants --only kernels/merge     those of some files

Each fault is tried on the tests that run its line (`mutants.trials`), and on the laws of merges on a few
random cases, in a copy of the tree as it is now; a test that does not end has caught it too. What survives is
printed, for someone to look at: a law is missing, or the change makes no difference. Loops are not compiled,
but for hashing. Verdicts are kept, so a campaign that is stopped goes on where it was as long as the tree is
the same; what tests run is found out once for each tree, which takes some minutes.
"""

import argparse
import hashlib
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from random import Random

import msgspec
import pytest
from mutants.faults import Fault, faults
from mutants.trials import Trials, Verdict, left_out, read_verdicts, uncompiled

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "examples", "pyproject.toml")
COMPILED = ("anabranch.model.murmur", "anabranch.model.identity")
"""Hashing is made of instructions that Python has not; its tests compare it with another package."""
PACKAGES = ("model", "rows", "kernels", "engines/embedded", "engines/spark")
GLUE = ("frames", "merge", "merge_changes", "processor", "stages", "table")
GLUE += ("daemon", "jvm", "schema_argument", "session", "worker_python")
GLUE += ("begun_with", "check", "checkpoint", "disk_full", "failure", "lock", "provenance", "seal", "start")
GLUE += ("follow", "status", "watch")
"""Modules of engines/spark that do little but talk to Spark: their tests start it."""
TESTS = (
    "tests/model",
    "tests/rows",
    "tests/kernels",
    "tests/engines",
    "tests/laws",
    "tests/mutants/quick_laws.py",
)
MANY_CASES = (
    "tests/laws/test_campaign.py::test_a_merge_gives_what_the_oracle_gives",
    "tests/engines/spark/test_spark_laws.py::test_shards_give_what_the_replicas_mean_however_they_are_run",
)
"""Tests that quick_laws stands for."""
NEED_PROCESSES = (
    "clusters",
    "connect",
    "environment",
    "jvm",
    "pipelines",
    "queries",
    "waiting",
    "worker_python",
)
"""Tests of Spark that start processes."""


def drawn(root: Path, count: int, seed: int, only: str = "") -> list[Fault]:
    """So many faults, each as likely as any other."""
    found = []
    for path in sources(root):
        name, source = path.relative_to(root).as_posix(), path.read_text()
        if only in name:
            found += [fault for fault in faults(source, name) if not _stays_compiled(fault, source)]
    return Random(seed).sample(found, min(count, len(found)))


def sources(root: Path) -> list[Path]:
    """The files that faults are put into."""
    package = root / "src" / "anabranch"
    return [
        path
        for name in PACKAGES
        for path in sorted((package / name).rglob("*.py"))
        if not (name == "engines/spark" and path.stem in GLUE) and path.stem != "compiled"
    ]


def _stays_compiled(fault: Fault, source: str) -> bool:
    module = ".".join(Path(fault.path).with_suffix("").parts[1:])
    return module in COMPILED and source.splitlines()[fault.first - 1].startswith("@")


def copied(folder: Path) -> Path:
    """A copy of the tree in a folder that is named for what is in it."""
    digest = hashlib.sha256()
    for path in sorted(path for name in COPIED for path in [ROOT / name, *(ROOT / name).rglob("*.*")]):
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc"):
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    copy = folder / digest.hexdigest()[:12]
    if not copy.exists():
        part = folder / f"{copy.name}.part"
        shutil.rmtree(part, ignore_errors=True)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, part / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, part / name)
        part.rename(copy)
    return copy


def tried(copy: Path, chosen: list[Fault], options: argparse.Namespace, verdicts: Path) -> None:
    """Try faults and add what becomes of them to a file."""
    done = 0

    def tell(verdict: Verdict) -> None:
        nonlocal done
        done += 1
        with verdicts.open("ab") as file:
            file.write(msgspec.json.encode(verdict) + b"\n")
        print(f"\r{done} of {len(chosen)}", end="", file=sys.stderr, flush=True)

    os.chdir(copy)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    here = str(Path(__file__).parents[1])
    sys.path[:] = [str(copy / "src"), *(path for path in sys.path if Path(path).resolve() != Path(here))]
    uncompiled("anabranch", COMPILED)
    words = [*TESTS, "-p", "no:terminal", "-p", "no:xdist", "-p", "no:randomly", "-s"]
    for warning in ("overflow encountered", "invalid value encountered"):
        words += ["-W", f"ignore:{warning}:RuntimeWarning"]
    words += ["--hypothesis-profile=mutants"]
    words += [word for name in MANY_CASES for word in ("--deselect", name)]
    words += [word for name in NEED_PROCESSES for word in ("--ignore", f"tests/engines/spark/test_{name}.py")]
    footprints = copy.with_suffix(".footprints")
    trials = Trials(copy, chosen, footprints, options.budget, options.processes, tell)
    if status := pytest.main(words, plugins=[trials]):
        raise SystemExit(f"the tests could not be collected (pytest ends with {status})")


def summary(verdicts: list[Verdict]) -> str:
    """What became of faults, with those that live on."""
    verdicts = [verdict for verdict in verdicts if verdict.result != "unfit"]
    counts = Counter(verdict.result for verdict in verdicts)
    lost = counts["caught"] + counts["timed out"]
    alive = [one for one in verdicts if one.result in ("survived", "unreached")]
    lines = [f"{one.result:>9}  {one.fault}" for one in sorted(alive, key=lambda one: (one.path, one.line))]
    each = sum(one.seconds for one in verdicts) / max(len(verdicts), 1)
    lines += [
        "",
        f"{len(verdicts)} faults: {counts['caught']} caught, {counts['timed out']} timed out, "
        f"{counts['survived']} survived, {counts['unreached']} in lines that no test runs",
        f"score {lost / max(len(verdicts), 1):.1%}, {each:.1f} s of CPU for each",
    ]
    return "\n".join(lines)


def main() -> int:
    """Try faults, and print those that no test catches."""
    parser = argparse.ArgumentParser(prog="./run mutants", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=100, help="how many faults (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="which faults are drawn (default 1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose path has this in it")
    parser.add_argument("--processes", type=int, default=2, help="how many at once (default 2)")
    parser.add_argument(
        "--budget", type=float, default=20.0, help="seconds of tests for a fault (default 20)"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("/tmp/anabranch-mutants"), help="where copies are"
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    copy = copied(options.folder.resolve())
    chosen = drawn(copy, options.count, options.seed, options.only)
    verdicts = copy.with_suffix(".verdicts")
    known = {(verdict.path, verdict.number) for verdict in read_verdicts(verdicts)}
    print(f"{len(chosen)} faults; verdicts are in {verdicts}", file=sys.stderr)
    tried(copy, [fault for fault in chosen if (fault.path, fault.number) not in known], options, verdicts)
    print("", *left_out(copy.with_suffix(".footprints")), sep="\n", file=sys.stderr)
    mine = {(fault.path, fault.number) for fault in chosen}
    print(f"\n{summary([one for one in read_verdicts(verdicts) if (one.path, one.number) in mine])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
