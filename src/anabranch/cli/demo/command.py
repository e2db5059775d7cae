"""Merge two replicas on Spark while one dies and comes back, beside leader election and de-duplication.

East and west send the same readings of six sensors as files, each in its own order and with its own guesses
and corrections. East dies half way and comes back. A query on local Spark merges them, and is stopped and
started again on the way. The result, and what two other ways make of the same files, is compared with what
the sensors truly measured. It takes less than a minute on two cores.

Exit status: 0 the merge is exact, 1 it is not, 2 it could not be run.

examples:
  anabranch demo
  anabranch demo --out /tmp/demo --seed 3
  anabranch demo --json
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli.arguments import add_json

if TYPE_CHECKING:
    from anabranch.cli.demo.merging import MicroBatch, Restart
    from anabranch.cli.demo.readings import Reading
    from anabranch.cli.demo.replicas import Row
    from anabranch.cli.demo.verdict import Verdict

NAMES = {
    "merge": "logical merge",
    "leader_election": "leader election",
    "deduplication": "de-duplication",
}
MARKER = ".made-by-anabranch-demo"


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``demo``."""
    parser.add_argument(
        "--out", metavar="FOLDER", default="anabranch-demo", help="where all goes (default anabranch-demo)"
    )
    parser.add_argument("--seed", type=int, default=6, help="another seed, other readings (default 6)")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Make the replicas, merge them, judge what came out, and draw it."""
    from random import Random

    from anabranch.cli.demo import feed, rivals
    from anabranch.cli.demo.picture import Result, drawn
    from anabranch.cli.demo.readings import readings
    from anabranch.cli.demo.replicas import east, west
    from anabranch.cli.demo.verdict import judge
    from anabranch.connectors.files.files import write
    from anabranch.extras import check_spark
    from anabranch.model.consistency import difference
    from anabranch.model.relation import Relation

    check_spark()
    begun = time.monotonic()
    place = _made_anew(Path(options.out).absolute())
    random = Random(options.seed)
    truth = readings(random)
    said = {"east": east(random, truth), "west": west(random, truth)}
    talk = Talk(quiet=options.json)
    talk.introduce(truth, said)
    deduplicated = _on_spark(place, truth, said, talk)

    batches = list(feed.written(place / "merged"))
    merged = Relation()
    for batch in batches:
        merged.apply(batch)
    write(str(place / "merged.jsonl"), batches)
    results = {
        "merge": [feed.reading(event) for event in merged.events()],
        "leader_election": rivals.table(rivals.leader_election(said)),
        "deduplication": rivals.table(deduplicated),
    }
    verdicts = {name: judge(truth, result) for name, result in results.items()}
    exact = verdicts["merge"].exact and difference(merged, feed.relation(truth)) is None
    picture = place / "picture.svg"
    shown = [Result(NAMES[name], verdict) for name, verdict in verdicts.items()]
    picture.write_text(drawn(truth, said, shown), encoding="utf-8")
    figures = {
        "exact": exact,
        "readings": len(truth),
        "rows": {name: len(rows) for name, rows in said.items()},
        **{name: verdict.counts() for name, verdict in verdicts.items()},
        "micro_batches": talk.micro_batches,
        "restarts": talk.restarts,
        "seconds": round(time.monotonic() - begun, 1),
        "folder": str(place),
        "picture": str(picture),
    }
    (place / "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if options.json:
        print(json.dumps(figures, ensure_ascii=False))
    else:
        talk.conclude(len(truth), verdicts, exact=exact)
        _point_the_way(place, picture)
    return 0 if exact else 1


def _made_anew(place: Path) -> Path:
    """An empty folder; one that is there is replaced only if a demo made it."""
    if place.exists() or place.is_symlink():
        if not (place / MARKER).is_file():
            error = FileExistsError(f"the demo writes to a folder of its own, and {place} is not one")
            error.add_note("What is in it stays as it is.")
            error.add_note("Name another with --out FOLDER, or move this one away.")
            raise error
        shutil.rmtree(place)
    place.mkdir(parents=True)
    (place / MARKER).write_text("The next `anabranch demo` here replaces this folder.\n")
    return place


def _on_spark(place: Path, truth: list[Reading], said: dict[str, list[Row]], talk: Talk) -> list[Row]:
    """Merge on Spark; the rows that de-duplication lets through."""
    from anabranch import spark as ab
    from anabranch.cli.demo import merging, rivals
    from anabranch.cli.demo.warming import warm
    from anabranch.cli.spark_errors import spark_errors_as_ours
    from anabranch.engines.spark.session.jvm import SHORT_LIVED, end_jvm

    config = {**SHORT_LIVED, "spark.sql.warehouse.dir": str(place / "warehouse")}
    threading.Thread(target=warm, args=(truth, said), daemon=True).start()
    try:
        with spark_errors_as_ours(place / "spark.log"):
            spark = ab.session("local[2]", name="demo", shards=2, config=config, log=place / "spark.log")
            talk.spark_is_there()
            merging.play(spark, place, said, talk.hear)
            return rivals.deduplicated(spark, place / "in")
    finally:
        end_jvm()


class Talk:
    """What is printed on the way, and what of it is kept as figures."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.micro_batches: list[dict[str, Any]] = []
        self.restarts: list[dict[str, Any]] = []

    def say(self, words: str = "") -> None:
        """A line, unless only figures are asked for."""
        if not self.quiet:
            print(words, flush=True)

    def introduce(self, truth: list[Reading], said: dict[str, list[Row]]) -> None:
        """The scene, before Spark starts."""
        from anabranch.cli.demo.readings import SENSORS, clock
        from anabranch.cli.demo.replicas import DIES, RETURNS

        self.say(
            f"East and west send the same {len(truth)} readings of {len(SENSORS)} sensors, as files.\n"
            "A reading holds until the next one, so its end is first guessed and then corrected:\n"
            f"{len(said['east'])} rows of east and {len(said['west'])} of west, in different orders with "
            "different guesses.\n"
            f"East dies at {clock(DIES)}. At {clock(RETURNS)} it is back, repeats itself, and has gaps.\n"
        )
        self.say("Spark starts, and then its workers; the first micro-batch takes longest.")

    def spark_is_there(self) -> None:
        """The head of the table of micro-batches."""
        self.say(
            "A query on Spark merges both while the files appear; a line for each micro-batch:\n\n"
            "  clock     batch  leads  stable until  rows in  inserts  corrections"
        )

    def hear(self, one: MicroBatch | Restart) -> None:
        """A line for a micro-batch or a restart, kept as figures too."""
        from dataclasses import asdict

        from anabranch.cli.demo.feed import stable_text
        from anabranch.cli.demo.merging import Restart
        from anabranch.cli.demo.readings import clock
        from anabranch.cli.display import time_field

        if isinstance(one, Restart):
            self.restarts.append(asdict(one))
            where = "in the middle of" if one.halfway else "after"
            self.say(f"  stopped {where} micro-batch {one.batch}, and started again from its checkpoint")
            return
        fields = asdict(one)
        del fields["now"], fields["frontier"]
        self.micro_batches.append({"now": clock(one.now), **fields, **time_field("frontier", one.frontier)})
        self.say(
            f"  {clock(one.now)}  {one.batch:>5}  {one.leader:<5}  {stable_text(one.frontier):<12}  "
            f"{one.heard:>7}  {one.inserts:>7}  {one.adjusts:>11}{self._event(one.now)}"
        )

    def _event(self, now: int) -> str:
        from anabranch.cli.demo.feed import MINUTE
        from anabranch.cli.demo.replicas import DIES, RETURNS

        words = {DIES: "east dies", RETURNS: "east is back"}
        return next((f"   {words[t]}" for t in words if now - MINUTE <= t < now), "")

    def conclude(self, count: int, verdicts: dict[str, Verdict], *, exact: bool) -> None:
        """The table of the three ways, and whether the merge is exact."""
        from anabranch.cli.demo.rivals import TOLD_APART_BY, WATERMARK
        from anabranch.testing.leader_election import TIMEOUT

        spans = {"leader_election": f", {TIMEOUT} s", "deduplication": f", {WATERMARK} s"}
        self.say(f"\n  {f'of {count} readings':<24}missing  repeated  stale end")
        for name, verdict in verdicts.items():
            counts = verdict.counts()
            extra = f"  and {counts['spurious']} that never were" if counts["spurious"] else ""
            self.say(
                f"  {NAMES[name] + spans.get(name, ''):<24}{counts['missing']:>7}  {counts['repeated']:>8}  "
                f"{counts['stale']:>9}{extra}"
            )
        self.say(
            "\nLeader election follows one replica until it is silent for "
            f"{TIMEOUT} s, as Mimir does; what the other said\nmeanwhile is gone. De-duplication is Spark's "
            f"dropDuplicatesWithinWatermark by {', '.join(TOLD_APART_BY)}:\nit cannot tell a correction from "
            "a repeat, and a replica that comes back is new to it."
        )
        self.say(
            "\nThe merge is what the sensors measured: nothing lost or repeated, through death and restart."
            if exact
            else "\nThe merge is NOT what the sensors measured."
        )


def _point_the_way(place: Path, picture: Path) -> None:
    from shlex import quote

    command = "anabranch" if shutil.which("anabranch") else sys.argv[0]
    print(f"\npicture  {picture}")
    print(f"more     {quote(command)} show {quote(str(place / 'merged.jsonl'))} --history")
    print(f"yours    {quote(command)} run --help")
