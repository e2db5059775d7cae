"""Where nothing is removed, first, last, least and greatest keep one value of a group, that of the oracle."""

from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from quick import cases

import anabranch as ab
from anabranch import Insert, Stable, col
from anabranch.kernels.aggregate.one_value import OneText
from anabranch.model.time import FOREVER
from anabranch.oracle.aggregates import first, greatest, last, least

VALUES = {
    pa.string(): ["", "a", "ab", "ä", "b", "seller 0001", "seller 0002", None],
    pa.large_string(): ["", "a", "ab", None],
    pa.binary(): [b"", b"\0", b"a", b"\xff", None],
    pa.decimal128(9, 2): [Decimal("-1.50"), Decimal("0.00"), Decimal("7.25"), Decimal("1000.00"), None],
    pa.float64(): [0.5, -1.0, float("inf"), float("-inf"), float("nan"), 3.0, None],
    pa.date32(): [date(1970, 1, 1) + timedelta(days=days) for days in (-9, 0, 4)] + [None],
    pa.bool_(): [True, False, None],
    pa.dictionary(pa.int32(), pa.string()): ["x", "y", "z", None],
}
MEANT = {
    "first": first,
    "last": last,
    "least": lambda pairs: least([value for _, value in pairs]),
    "greatest": lambda pairs: greatest([value for _, value in pairs]),
}


def windows(kind, size, every, **more):
    made = {"first": col("v").first(), "last": col("v").last()}
    made |= {"least": col("v").min(), "greatest": col("v").max()}
    stream = ab.source("s", pa.schema({"k": pa.int64(), "v": kind}), properties="insert only")
    return stream.window(size, every, start="w").group_by("k").agg(**made, **more)


def plain(value):
    return repr(value)


def one_value_is_that_of_the_oracle(seed, kind, *, early=False):
    random = Random(seed)
    every = random.choice([5, 10, 4])
    stream, rows = windows(kind, 10, every, early=early), []
    for _ in range(120):
        value = random.choice(VALUES[kind])
        payload = {"k": random.randrange(3)} | ({} if value is None else {"v": value})
        rows.append(Insert(payload, random.randrange(0, 30), FOREVER))
    job, out = stream.open(), ab.Relation()
    cuts = sorted(random.sample(range(120), 5))
    for begin, end in zip([0, *cuts], [*cuts, 120], strict=True):
        for one in job.push("s", rows[begin:end]):
            out.apply([one])
        job = stream.open(job.dump())
    for time in (12, 13, FOREVER):
        for one in job.push("s", [Stable(time)]):
            out.apply([one])
        job = stream.open(job.dump())
    pairs = defaultdict(list)
    for row in rows:
        for window in range((row.start - 10) // every + 1, row.start // every + 1):
            found = pairs[row.payload["k"], window * every]
            found += [(row.start, row.payload["v"])] if "v" in row.payload else []
    meant = {key: {name: plain(of(found)) for name, of in MEANT.items()} for key, found in pairs.items()}
    said = {
        (one.payload["k"], one.payload["w"]): {name: plain(one.payload.get(name)) for name in MEANT}
        for one in out.events()
    }
    assert said == meant


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("seed", range(cases(6)))
def test_one_value_is_that_of_the_oracle(seed, kind):
    one_value_is_that_of_the_oracle(seed, kind)


@pytest.mark.parametrize("kind", [pa.string(), pa.float64()], ids=str)
@pytest.mark.parametrize("seed", range(cases(6)))
def test_one_value_is_that_of_the_oracle_early(seed, kind):
    one_value_is_that_of_the_oracle(seed, kind, early=True)


def _last_come(self, slots, start, array):
    rows = {int(slot): row for row, slot in enumerate(slots)}
    return pa.array(list(rows.values()), pa.int64()).to_numpy()


def test_a_wrong_row_is_noticed(monkeypatch):
    monkeypatch.setattr(OneText, "_best", _last_come)
    with pytest.raises(AssertionError):
        one_value_is_that_of_the_oracle(1, pa.string())


@pytest.mark.parametrize("name", MEANT)
def test_texts_that_are_not_said_are_let_go(name):
    made = {"first": col("v").first(), "last": col("v").last(), "least": col("v").min()}
    made = (made | {"greatest": col("v").max()})[name]
    job = ab.source("s", {"v": "string"}, properties="insert only").window(10**9).agg(made).open()
    for step in range(40):
        rows = [Insert({"v": f"{step:03} {n:06}"}, step, step + 1) for n in range(2000)]
        job.push("s", rows)
    assert job.status().nbytes < 200_000
