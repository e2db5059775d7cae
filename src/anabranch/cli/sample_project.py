"""A project to begin with: a job, a README, and what two replicas heard of the same three sensors.

Both hear every sensor once a minute, and write a file every three minutes. West misses readings and garbles
one. East is cut off in the middle of a line, is down for a while, and repeats itself when it is back. Every
reading was heard by one of them at least, so the merged stream is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

SENSORS = {"hall": 20.0, "lab": 22.5, "roof": 4.0}
MINUTES = 12
PER_FILE = 3

Reading = tuple[str, int]
"""A sensor and a minute."""

MISSED_BY_WEST = {("hall", 1), ("hall", 4)}
GARBLED_BY_WEST = ("roof", 4)
UNTIMED = {"sensor": "lab", "level": 22.9, "at": None}
LAST_OF_EAST = ("lab", 4)
"""The reading in the middle of which east is cut off."""
REPEATED_FROM, BACK_AT = 3, 9
"""East repeats the minutes from here to where it was cut off; what it hears again begins here."""

JOB = """\
# Two replicas of one stream, merged on Spark.    anabranch run job.toml --once

[source]
path = "feeds"                  # a folder of files for each replica
schema = "sensor string, level double, at timestamp"    # JSON lines do not say their types
files_per_trigger = 2           # small micro-batches, to watch them; leave it out for real data

[merge]
start = "at"                    # when a reading begins to hold,
duration = "1 minute"           # and for how long
replica = "replica"             # who says it: the name of its folder
disorder = "2 minutes"          # a replica is never further out of order than this
lossy = true                    # each may miss readings: what one of them heard counts, and is final when
                                # both have passed it; false: the one that is ahead decides what there is
properties = "keyed"            # one replica says a reading once,
on_broken = "drop"              # so a second time is a repeat, and is left out

[sink]
path = "merged"                 # its checkpoint and quarantine are in it, unless you name others
format = "jsonl"                # "parquet" for real data

[spark]
master = "local[2]"
shards = 2
"""

README = """\
# A merge to begin with

Two gateways, east and west, hear the same three sensors once a minute and write JSON lines.

- `job.toml` says what is read, how it is merged, and where it goes, with comments.
- `feeds/west` misses two readings, garbles one (`"level": "n/a"`), and has a row without a time.
- `feeds/east` is cut off in the middle of a line, is down (an empty file), and comes back with repeats.

What to type, in this folder:

    anabranch doctor job.toml             is all there that a run needs?
    anabranch run job.toml --check        what would be done, and why
    anabranch run job.toml --once         merge what is there on Spark, a line for each micro-batch
    grep -h insert merged/*.jsonl         {readings} readings, each once; neither gateway has them all
    cat merged/_quarantine/*.jsonl        {bad} bad rows, each with its reason and its place

Without PySpark: `anabranch run job.toml --engine embedded` merges what is there in one process, and `--check`
and `anabranch explain job.toml` say what it does.

Add a file, such as `feeds/west/0005.jsonl`, and run again: it goes on where it stopped. Without `--once` it
waits for new files until Ctrl-C. Remove `merged` to begin anew. Then put your own rows in `feeds`, a folder
for each replica, and name their columns in `job.toml`; `anabranch run --help` has all keys.
"""


def files() -> dict[str, str]:
    """The text of each file by its path; the same every time."""
    return {
        "job.toml": JOB,
        "README.md": README.format(readings=len(SENSORS) * MINUTES, bad=3),
        **{f"feeds/east/{n:04}.jsonl": text for n, text in enumerate(_east(), 1)},
        **{f"feeds/west/{n:04}.jsonl": text for n, text in enumerate(_west(), 1)},
    }


def _west() -> list[str]:
    texts = []
    for first in range(0, MINUTES, PER_FILE):
        heard = [one for one in _readings(range(first, first + PER_FILE)) if one not in MISSED_BY_WEST]
        texts.append("".join(_line(one, level="n/a" if one == GARBLED_BY_WEST else None) for one in heard))
    texts[2] += f"{json.dumps(UNTIMED)}\n"
    return texts


def _east() -> list[str]:
    before = _readings(range(PER_FILE, LAST_OF_EAST[1] + 1), backwards=True)
    cut = before.index(LAST_OF_EAST)
    last = _lines(before[:cut]) + _line(LAST_OF_EAST)[:25]
    back = [*range(REPEATED_FROM, LAST_OF_EAST[1] + 1), *range(BACK_AT, MINUTES)]
    return [
        _lines(_readings(range(PER_FILE), backwards=True)),
        last,
        "",
        _lines(_readings(back, backwards=True)),
    ]


def _readings(minutes: Iterable[int], *, backwards: bool = False) -> list[Reading]:
    """All sensors of each minute, each replica in its own order."""
    sensors = sorted(SENSORS, reverse=backwards)
    return [(sensor, minute) for minute in minutes for sensor in sensors]


def _lines(readings: Iterable[Reading]) -> str:
    return "".join(map(_line, readings))


def _line(reading: Reading, level: object = None) -> str:
    sensor, minute = reading
    measured = round(SENSORS[sensor] + minute * 7 % 5 / 10, 1)
    row = {"sensor": sensor, "level": level or measured, "at": f"2026-03-01T10:{minute:02}:00Z"}
    return f"{json.dumps(row)}\n"
