"""Checkpoints that are damaged between two runs: the answer is right, or an error of ours says what to do.

    ./run damages                           a hundred damages
    ./run damages --count 500 --seed 11

Three queries are run up to a point. A damage is drawn from its seed alone: a file of a checkpoint loses a
bit, its end, all of it, or changes places with another, with or without Hadoop's checksum beside it; or
the last files of a log are gone, or a folder. Then more input comes, and the query is started again. What the
sink has must be what an undamaged run gives, no row more; or the query must stop with an error of ours that
has a way out, and with the checkpoint put back as it was it must go on to the same end.
"""

import argparse
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from element_rows import ELEMENTS, element_rows, named, pieces, put

from anabranch import Case
from anabranch import spark as ab
from anabranch.engines.spark.query.failure import QueryError
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE, AFTER = 8, 2
"""Rounds of input: before the damage, a micro-batch each, and after it, all at once."""
SETTINGS = {
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
    "spark.sql.streaming.stateStore.maintenanceInterval": "500ms",
}
"""So that a short query has snapshots of its state, and changes after them."""
CHECKPOINT, IN, OUT = "checkpoint", "in", "out"
COPIES = ("east", "west")

Rows = Counter[str]


@dataclass(frozen=True)
class Subject:
    """A query that is damaged: how it reads, and what it writes to."""

    door: str
    sink: str

    @property
    def name(self) -> str:
        return f"{self.door}-{self.sink}"

    def feed(self, inputs: Path, rounds: range) -> None:
        """Put some rounds of input where the query looks for it."""
        _, made = replicas(
            Random(5), len(COPIES), case=Case.R3, shape=Shape(events=60, payloads=20, horizon=80)
        )
        random = Random(3)
        cut = {n: pieces(random, c, BEFORE + AFTER) for n, c in zip(COPIES, named(made), strict=True)}
        for number in rounds:
            if self.door == "native":
                for name, parts in cut.items():
                    put(inputs, name, number, parts[number])
                continue
            inputs.mkdir(parents=True, exist_ok=True)
            tables = []
            for name, parts in cut.items():
                first = sum(map(len, parts[:number]))
                table = element_rows(parts[number], name)
                tables.append(table.append_column("n", pa.array(range(first, first + len(table)))))
            file = inputs / f"{number}.parquet"
            pq.write_table(pa.concat_tables(tables), file)
            os.utime(file, (1_700_000_000 + number,) * 2)  # Spark reads files by their age

    def run(self, spark: "SparkSession", inputs: Path, folder: Path, *, at_once: bool) -> None:
        """Run the query over what is there; one round a micro-batch, or all at once."""
        if self.door == "native":
            limit = None if at_once else len(COPIES)
            rows, order = ab.folder(spark, inputs, files_per_trigger=limit), {}
        else:
            schema = "kind string, start long, end long, old_end long, value string, replica string, n long"
            reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 100 if at_once else 1)
            rows, order = reader.parquet(str(inputs)), {"sequence": "n"}
        merged = ab.merge(rows, **ELEMENTS, **order, case="R3")
        place, checkpoint = folder / OUT, folder / CHECKPOINT
        if self.sink == "table":
            query = ab.write_table(merged, place, kind="history", checkpoint=checkpoint, available_now=True)
        else:
            query = ab.write_folder(merged, place, checkpoint=checkpoint, available_now=True)
        ab.wait(query)

    def rows(self, folder: Path) -> Rows:
        """What the sink has: rows, and how often each is there."""
        if self.sink == "table":
            tables = [DeltaTable(folder / OUT).to_pyarrow_table()]
        else:
            tables = [pq.read_table(file) for file in sorted((folder / OUT).glob("*.parquet"))]
            assert not list((folder / OUT).glob("_quarantine/*"))
        return Counter(str(row) for table in tables for row in table.to_pylist())


SUBJECTS = (Subject("native", "folder"), Subject("generic", "folder"), Subject("native", "table"))


class Bench:
    """Queries run up to a point, each to be had again as often as one likes.

    Each time in a new folder: Spark still writes snapshots of the state of a query for a while after its end.
    """

    def __init__(
        self,
        spark: "SparkSession",
        folder: Path,
        subjects: tuple[Subject, ...] = SUBJECTS,
        *,
        snapshots: bool = True,
    ) -> None:
        self.spark, self.folder, self.subjects = spark, folder, subjects
        self.numbers = itertools.count()
        self.place: dict[str, Path] = {}
        for subject in subjects:
            place = self._kept(subject)
            subject.feed(self._inputs(subject), range(BEFORE))
            subject.run(spark, self._inputs(subject), place, at_once=False)
            if snapshots:
                _wait_for_snapshots(place / CHECKPOINT)

    @cached_property
    def meant(self) -> dict[str, Rows]:
        """What the sinks have in the end where nothing is damaged."""
        found = {}
        for subject in self.subjects:
            self.restored(subject)
            found[subject.name] = self.finished(subject)
        return found

    def _inputs(self, subject: Subject) -> Path:
        return self.folder / subject.name / IN

    def _kept(self, subject: Subject) -> Path:
        return self.folder / subject.name / "kept"

    def restored(self, subject: Subject) -> Path:
        """The query as it was when it had run up to its point."""
        for number in range(BEFORE, BEFORE + AFTER):
            for file in self._inputs(subject).rglob(f"*{number}.parquet"):
                file.unlink()
        return self._beginning(subject, self._kept(subject) / OUT)

    def put_back(self, subject: Subject) -> Path:
        """The sink as it is now, with the checkpoint as it was."""
        return self._beginning(subject, self.place[subject.name] / OUT)

    def _beginning(self, subject: Subject, out: Path) -> Path:
        place = self.folder / subject.name / f"{next(self.numbers)}"
        shutil.copytree(out, place / OUT)
        shutil.copytree(self._kept(subject) / CHECKPOINT, place / CHECKPOINT)
        self.place[subject.name] = place
        return place

    def finished(self, subject: Subject) -> Rows:
        """What the sink has when more input has come and the query has been started again."""
        place = self.place[subject.name]
        subject.feed(self._inputs(subject), range(BEFORE, BEFORE + AFTER))
        subject.run(self.spark, self._inputs(subject), place, at_once=True)
        return subject.rows(place)

    def verdict(self, seed: int) -> tuple[str, str, str]:
        """A damage, whether it was survived, and how."""
        random = Random(seed)
        subject = random.choice(self.subjects)
        meant = self.meant[subject.name]
        place = self.restored(subject)
        what = f"{subject.name}: {damage(random, place / CHECKPOINT)}"
        try:
            found = self.finished(subject)
        except Exception as error:  # each is judged
            wrong = unhelpful(error, place)
            if wrong:
                return what, WRONG, wrong
            self.put_back(subject)
            if (found := self.finished(subject)) != meant:
                return what, WRONG, f"put back, it gives {_difference(found, meant)} ({error})"
            return what, NAMED, f"{type(error).__name__}: {error}"
        if found != meant:
            return what, WRONG, _difference(found, meant)
        return what, RIGHT, ""


RIGHT, NAMED, WRONG = "right", "named", "WRONG"


def unhelpful(error: BaseException, place: Path) -> str | None:
    """What an error lacks of what a person needs: that it is ours, where it is, and a way out."""
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, QueryError) or type(error).__module__.startswith(("py4j", "pyspark")):
        return f"not ours: {told}"
    if not getattr(error, "__notes__", []):
        return f"no way out: {told}"
    if not any(word in str(error) for word in (str(place), "checkpoint", "state")):
        return f"does not say where: {told}"
    return None


def _difference(found: Rows, meant: Rows) -> str:
    more, fewer = found - meant, meant - found
    return f"{more.total()} rows more and {fewer.total()} fewer, of {meant.total()}"


def _wait_for_snapshots(checkpoint: Path) -> None:
    """Spark writes snapshots of the state a little later."""
    until = time.monotonic() + 60
    for part in (checkpoint / "state" / "0").glob("[0-9]*"):
        while len(list(part.glob("*.zip"))) < 3 and time.monotonic() < until:
            time.sleep(0.1)


def damage(random: Random, checkpoint: Path) -> str:
    """Damage a checkpoint in one way; says which."""
    kind = random.choices(
        (_changed, _gone, _swapped, _set_back, _folder_gone, _unsummed), weights=(8, 4, 4, 3, 2, 1)
    )[0]
    return kind(random, checkpoint)


def _groups(checkpoint: Path) -> dict[str, list[Path]]:
    """The files of a checkpoint by what they are, old before new, checksums apart."""
    groups: dict[str, list[Path]] = {}
    files = (f for f in checkpoint.rglob("*") if f.is_file() and f.suffix != ".crc")
    for file in sorted(files, key=lambda f: (_number(f), str(f))):
        inside = file.relative_to(checkpoint).parts
        group = inside[0] if inside[0] != "state" else file.suffix or inside[2]
        groups.setdefault("ours" if group.startswith("anabranch") else group, []).append(file)
    return groups


def _number(file: Path) -> int:
    first = file.name.split(".")[0].split("_")[0].split("-")[0]
    return int(first) if first.isdecimal() else -1


def _drawn(random: Random, checkpoint: Path) -> Path:
    """A file; of many of a kind rather a new one, for the old are not read again."""
    group = random.choice(list(_groups(checkpoint).values()))
    return random.choice(group[-4:] if random.random() < 0.8 else group)


def _sum(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def _changed(random: Random, checkpoint: Path) -> str:
    """A bit, the end or all of a file is lost."""
    file = _drawn(random, checkpoint)
    data = bytearray(file.read_bytes())
    how = random.choice(("flip", "cut", "empty"))
    if how == "flip" and data:
        at = random.randrange(len(data))
        data[at] ^= 1 << random.randrange(8)
        how = f"flip byte {at}"
    elif how == "cut" and data:
        del data[random.randrange(len(data)) :]
        how = f"cut to {len(data)} bytes"
    else:
        data.clear()
    file.write_bytes(data)
    if random.random() < 0.5:
        _sum(file).unlink(missing_ok=True)
        how += ", unsummed"
    return f"{how} {file.relative_to(checkpoint)}"


def _gone(random: Random, checkpoint: Path) -> str:
    file = _drawn(random, checkpoint)
    file.unlink()
    _sum(file).unlink(missing_ok=True)
    return f"delete {file.relative_to(checkpoint)}"


def _unsummed(random: Random, checkpoint: Path) -> str:
    file = _drawn(random, checkpoint)
    _sum(file).unlink(missing_ok=True)
    return f"delete the checksum of {file.relative_to(checkpoint)}"


def _swapped(random: Random, checkpoint: Path) -> str:
    """Two files of a kind have each other's name, and their checksums with them."""
    groups = [group for group in _groups(checkpoint).values() if len(group) > 1]
    group = random.choice(groups)
    one, other = random.sample(group[-4:], 2)
    for a, b in ((one, other), (_sum(one), _sum(other))):
        if a.exists() and b.exists():
            aside = a.with_name("aside")
            a.rename(aside)
            b.rename(a)
            aside.rename(b)
    return f"swap {one.relative_to(checkpoint)} and {other.relative_to(checkpoint)}"


def _set_back(random: Random, checkpoint: Path) -> str:
    """The last files of the logs are gone."""
    names = random.choice((("offsets",), ("commits",), ("offsets", "commits")))
    logs = list(names)
    if (checkpoint / "sources").exists() and random.random() < 0.5:
        logs.append("sources/0")
    count = random.randint(1, 3)
    for log in logs:
        files = sorted((f for f in (checkpoint / log).iterdir() if f.suffix != ".crc"), key=_number)
        for file in files[-count:]:
            file.unlink()
            _sum(file).unlink(missing_ok=True)
    return f"delete the last {count} of {', '.join(logs)}"


def _folder_gone(random: Random, checkpoint: Path) -> str:
    folder = random.choice(sorted(f for f in checkpoint.rglob("*") if f.is_dir()))
    shutil.rmtree(folder)
    return f"delete {folder.relative_to(checkpoint)}/"


def verdicts(bench: Bench, seeds: range) -> Iterator[tuple[int, str, str, str]]:
    """Of each seed its damage, the verdict, and why."""
    for seed in seeds:
        yield seed, *bench.verdict(seed)


def session(folder: Path) -> "SparkSession":
    """A session for a bench."""
    spark = ab.session("local[2]", shards=2, config={"spark.local.dir": str(folder / "local"), **SETTINGS})
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main() -> int:
    """Damage checkpoints until all seeds are done; 1 where something was not survived."""
    parser = argparse.ArgumentParser(prog="./run damages", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=100, help="how many (default 100)")
    parser.add_argument("--seed", type=int, default=7, help="the first seed (default 7)")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="anabranch-damages-") as name:
        spark = session(Path(name))
        bench = Bench(spark, Path(name))
        for seed, what, verdict, why in verdicts(bench, range(options.seed, options.seed + options.count)):
            counts[verdict] += 1
            print(f"{seed} {verdict} {what}" + (f" -> {why.splitlines()[0]}" if why else ""), flush=True)
        spark.stop()
    print(
        f"{options.count} damages from seed {options.seed}: {counts[RIGHT]} right answers, "
        f"{counts[NAMED]} errors of ours, {counts[WRONG]} wrong"
    )
    return 1 if counts[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
