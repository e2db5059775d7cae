"""Where shards are at frontiers of their own, the least of all is the stable, said where it rose."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anabranch import BEGINNING, FOREVER
from anabranch.engines.spark.transport.frontier_rows import Frontier, least, with_least, without_frontiers

SCHEMA = pa.schema([("kind", pa.string()), ("start", pa.int64()), ("v", pa.string())])
times = st.sampled_from([BEGINNING, -3, 0, 1, 2, 5, 9, FOREVER])


@st.composite
def stories(draw):
    """Where each of some shards is after each micro-batch."""
    shards = draw(st.integers(1, 4))
    ways = [sorted(draw(st.lists(times, min_size=4, max_size=4))) for _ in range(shards)]
    return list(zip(*ways, strict=True))


@given(stories(), st.randoms())
def test_the_stables_that_are_said_are_the_least_of_all_whenever_it_rises(story, random):
    said = BEGINNING
    for before, after in pairwise([[BEGINNING] * len(story[0]), *story]):
        told = [Frontier(n, len(after), *pair) for n, pair in enumerate(zip(before, after, strict=True))]
        random.shuffle(told)
        behind = least(told)
        assert (behind is None) == (min(after) <= said)
        said = said if behind is None else behind.after
        assert said == min(after)
        if len(told) > 1:
            assert least(told[1:]) is None, "one of them has not spoken"


@given(times, times)
def test_a_frontier_is_read_as_it_was_written(before, after):
    one = Frontier(3, 12, before, after)
    assert Frontier.of(one.kind()) == one


def rows(*given):
    return pa.RecordBatch.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in given], schema=SCHEMA
    )


def test_frontiers_are_taken_from_among_the_rows_and_others_stay():
    one, other = Frontier(0, 2, 1, 4), Frontier(1, 2, 1, 3)
    batch = rows(("insert", 1, "a"), (one.kind(), 4, None), (None, None, "refused"), (other.kind(), 3, None))
    rest, frontiers = without_frontiers(batch)
    assert rest.to_pylist() == rows(("insert", 1, "a"), (None, None, "refused")).to_pylist()
    assert list(frontiers) == [one, other]
    table = pa.Table.from_batches([batch])
    assert with_least(table).to_pylist() == [*rest.to_pylist(), {"kind": "stable", "start": 3, "v": None}]
    assert with_least(table.slice(0, 3)).to_pylist() == rest.to_pylist()
    assert with_least(pa.Table.from_batches([rest])).equals(pa.Table.from_batches([rest]))
