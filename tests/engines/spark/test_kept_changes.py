"""The state of a merge of changes as it was written before: by this version, and by one that is not read.

``golden/shard-4-changes.bin`` was written by ``python tests/engines/spark/test_kept_changes.py``, which is
run again when the format changes on purpose; ``shard-3-changes.bin`` by the last version with that format.
"""

from pathlib import Path

import pytest
from engines.spark.changing import MERGING, ORDERED, Query, Shard, shard_of, shown
from laws.table_histories import Said

from anabranch import FOREVER
from anabranch.kernels.store.saved import StateFormatError

GOLDEN = Path(__file__).parent / "golden"


def golden_query() -> Query:
    """In the middle of its work: a row has changed, one is gone for one replica and there for the other."""
    query = Query(ORDERED)
    query.receive(
        [
            Said("a", "insert", 1, "x", 1, "é", 0),
            Said("a", "insert", 3, "y", 2, "gone", 1),
            Said("a", "update", 4, "x", 1, "q", 2),
            Said("a", "stable", 4, number=3),
        ]
    )
    query.receive(
        [Said("b", "snapshot", 5, "x", 1, "q", 0), Said("b", "snapshot", 5, "y", 2, "gone", 1)],
        [Said("a", "delete", 6, "y", 2, number=4)],
    )
    return query


REST = [
    Said("a", "update", 9, "x", 1, "r", 5),
    Said("a", "stable", None, number=6),
    Said("b", "delete", 6, "y", 2, number=2),
    Said("b", "update", 9, "x", 1, "r", 3),
    Said("b", "stable", None, number=4),
]


def test_state_that_was_written_before_is_read_and_goes_on():
    here, there = golden_query(), golden_query()
    data = (GOLDEN / "shard-4-changes.bin").read_bytes()
    there.shards = [Shard.load(here.shards[0].assignment, 0, data)]
    assert there.shards[0].frontier == here.shards[0].frontier
    for query in (here, there):
        query.receive(REST)
        assert shown(query) == [("gone", 3, 6), ("q", 4, 9), ("r", 9, FOREVER), ("é", 1, 4)]
        assert query.refused == []
    assert there.shards[0].frontier == FOREVER
    assert there.shards[0].merge.status().live == 0


def test_state_of_the_format_before_is_refused_by_name():
    data = (GOLDEN / "shard-3-changes.bin").read_bytes()
    with pytest.raises(StateFormatError, match="has version 4, this was written as version 3") as error:
        Shard.load(shard_of(MERGING, ORDERED).assignment, 0, data)
    assert "start the inputs anew" in error.value.__notes__[0]


if __name__ == "__main__":
    (GOLDEN / "shard-4-changes.bin").write_bytes(golden_query().shards[0].dump())
