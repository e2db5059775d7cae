"""States that were written before are read and go on as if nothing had happened: every kernel, and a job.

The files in ``golden`` were written by ``python tests/engines/test_golden_states.py``, which is run again
when a format changes on purpose, with another version.
"""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from laws.operators import OPERATORS, SCHEMA

import anabranch as ab
from anabranch import Fact, Insert, Quarantine, Stable, col
from anabranch.kernels.store.saved import StateFormatError, from_bytes, to_bytes

GOLDEN = Path(__file__).parent / "golden"
COLUMNS = {"room": "string", "level": "int64", "share": "float64"}
EVENTS = ab.source("left", COLUMNS)
OTHERS = ab.source("right", COLUMNS)
TABLE = {"id": "int64", "name": "string", "op": "string", "at": "int64"}
CHANGES = ab.source("left", TABLE, start="at", op="op", key="id", disorder=2)
REPLICAS_OF_CHANGES = ab.source(
    "left", {**TABLE, "site": "string"}, start="at", op="op", key="id", disorder=2, replica="site"
)
ROWS = {**COLUMNS, "at": "int64", "gateway": "string"}


def replicated(**settings: Any) -> Any:
    return ab.source("left", COLUMNS, replica="gateway", **settings)


PLANS: dict[str, ab.Stream] = {
    "window": EVENTS.window(10, 5).group_by("room").agg(ab.count(), total=col("level").sum()),
    "early window": EVENTS.window(10).agg(ab.count(), mean=col("share").mean(), early=True),
    "windows of many": EVENTS.window(10).agg(
        median=col("share").approx_median(), rooms=col("room").n_unique(), last=col("room").last()
    ),
    "top": EVENTS.window(10).agg(top=col("level").top_k(2, carry=["room"])),
    "session": EVENTS.session(4).group_by("room").agg(ab.count()),
    "rows": EVENTS.rows(2).group_by("room").agg(ab.count()),
    "join": EVENTS.join(OTHERS, on="room", within=5),
    "left join": EVENTS.join(OTHERS, on="room", within=5, how="left"),
    "distinct": EVENTS.lasting(1).distinct(),
    "union": ab.union(EVENTS, OTHERS),
    "sort": EVENTS.sort(),
    "final": EVENTS.final(),
    "r0": replicated(properties=[Fact.INSERT_ONLY, Fact.STRICTLY_INCREASING]).merge(),
    "r1": replicated(properties=[Fact.PERFECT, Fact.DETERMINISTIC_TIES]).merge(),
    "r2": replicated(properties=[Fact.PERFECT, Fact.KEYED]).merge(),
    "r3": replicated(properties=Fact.KEYED).merge(),
    "r4": replicated().merge(),
    "lossy": replicated(lossy=True).merge(),
    "changes": CHANGES,
    "merge of changes": REPLICAS_OF_CHANGES.merge(),
    "job": (
        ab.source("left", ROWS, start="at", disorder=3, replica="gateway", lossy=True, replicas=["a", "b"])
        .merge()
        .join(OTHERS, on="room", within=5)
        .window(10)
        .agg(ab.count())
    ),
}


def golden(name: str) -> Path:
    return GOLDEN / f"{name.replace(' ', '-')}.bin"


def elements(random: Random, now: int, *, ordered: bool) -> list[ab.Insert | ab.Stable]:
    """A few events about a time, of few rooms, and a stable behind them."""
    found = []
    for n in range(6):
        start = now + (n if ordered else random.randint(-3, 3))
        payload = {"room": random.choice("AB"), "level": random.randint(0, 9), "share": random.random()}
        found.append(Insert(payload, start, start + random.choice([1, 4, 20])))
    return [*found, Stable(now - 3)]


def pieces(name: str) -> list[tuple[str, list[Any], str | None]]:
    """What is pushed to a plan: the source, elements or rows, and the replica that sends them."""
    random, found = Random(name), []
    for now in range(10, 70, 10):
        if "changes" in name:
            for site in "ab" if name == "merge of changes" else [None]:
                found.append(("left", changes(Random(now), now), site))
        elif name == "job":
            for gateway in "ab":
                found.append(("left", rows(Random(now), random, now, gateway), gateway))
            found.append(("right", elements(random, now, ordered=False), None))
        elif name in ("r0", "r1", "r2", "r3", "r4", "lossy"):
            for gateway in "ab":
                same = elements(Random(now), now, ordered=name in ("r0", "r1", "r2"))
                found.append(("left", same, gateway))
        else:
            found.append(("left", elements(random, now, ordered=False), None))
            if "join" in name or name == "union":
                found.append(("right", elements(random, now, ordered=False), None))
    return found


def changes(random: Random, now: int) -> list[dict[str, Any]]:
    """Changes of a table of three rows."""
    return [
        {
            "id": n,
            "name": random.choice("xyz"),
            "op": random.choice(["upsert", "upsert", "delete"]),
            "at": now + n,
        }
        for n in range(3)
    ]


def rows(alike: Random, own: Random, now: int, gateway: str) -> list[dict[str, Any]]:
    """Rows of which each gateway may have lost some."""
    found = [
        {"room": alike.choice("AB"), "level": alike.randint(0, 9), "share": alike.random(), "at": now + n}
        for n in range(6)
    ]
    return [{**row, "gateway": gateway} for row in found if own.random() < 0.8]


def halfway(name: str) -> tuple[ab.Job, list[tuple[str, list[Any], str | None]]]:
    """A job in the middle of its work, and what is still to be pushed."""
    job, given = PLANS[name].open(on_invalid=Quarantine()), pieces(name)
    half = len(given) // 2
    for source, piece, replica in given[:half]:
        push(job, source, piece, replica)
    return job, given[half:]


def push(job: ab.Job, source: str, piece: list[Any], replica: str | None) -> list[Any]:
    """What comes out, as texts."""
    output = job.push(source, piece, replica=replica) if replica else job.push(source, piece)
    return [str(one) for one in output]


@pytest.mark.parametrize("name", PLANS)
def test_a_state_that_was_written_before_goes_on(name):
    here, rest = halfway(name)
    there = PLANS[name].open(golden(name).read_bytes(), on_invalid=Quarantine())
    assert there.status().outputs == here.status().outputs
    for piece in rest:
        assert push(there, *piece) == push(here, *piece)
    assert [str(one) for one in there.close()] == [str(one) for one in here.close()]


def kernels_of(stream: ab.Stream) -> set[type]:
    return {type(kernel) for _, _, kernel in stream.open().passes.flow.kernels()}


def test_there_is_a_state_of_every_kernel():
    covered = set().union(*map(kernels_of, PLANS.values()))
    random = Random(1)
    for operator in OPERATORS:
        inputs = [ab.source(f"s{n}", SCHEMA) for n in range(operator.inputs)]
        assert kernels_of(operator.draw(random, inputs).stream) <= covered, operator.name


@pytest.mark.parametrize("name", PLANS)
def test_a_section_of_another_version_is_refused_by_name(name):
    states = from_bytes(golden(name).read_bytes())
    for section, state in states.items():
        other = states | {section: state._replace(version=state.version + 1)}
        with pytest.raises(StateFormatError, match=f"this was written as version {state.version + 1}"):
            PLANS[name].open(to_bytes(other))


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for title in PLANS:
        golden(title).write_bytes(halfway(title)[0].dump())
