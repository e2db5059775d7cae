"""A run says at its end what replicas had and had not, who decided, and whom what is final waits for."""

from datetime import timedelta

from anabranch import source
from anabranch.cli.micro_batches import Lines
from anabranch.cli.run_spark import vouching_of
from anabranch.engines.spark.query.follow import Totals
from anabranch.engines.spark.query.status import Replica, Status
from anabranch.model.time import BEGINNING

LINES = Lines(timedelta(microseconds=1))
NOON = 1_772_452_800_000_000
COUNTS = ("elements", "led", "disagreements", "holes", "filled", "late", "refused", "removed")


def replica(frontier=NOON, **changes):
    return Replica(frontier, 0, True, True, **(dict.fromkeys(COUNTS, 0) | changes))


def status(received=None, **replicas):
    return Status(0, "R4", NOON, received or {}, {"insert": 5}, 1, 0, 0, replicas, dropped=520)


def test_what_a_complete_leader_removed_is_told_with_the_way_out():
    (told,) = LINES.conduct(status(north=replica(removed=662), south=replica()))
    assert told == (
        "662 events of north that south does not have were removed; "
        "if replicas may lose rows, write lossy = true"
    )


def test_whom_what_is_final_waits_for_is_told_with_since_when():
    told = LINES.conduct(status(east=replica(), west=replica(NOON - 60_000_000, holds=True)))
    assert told == [
        "west holds what is final since 2026-03-02 11:59:00; if it is gone for good, write "
        'idle = ["west"], or have a row of it say detach'
    ]
    (never,) = LINES.conduct(status(west=replica(BEGINNING, holds=True)))
    assert never.startswith("west holds what is final from the beginning; ")


def test_holes_and_late_rows_of_each_replica_are_told():
    assert LINES.conduct(status(east=replica(holes=3, filled=5), west=replica(late=7))) == [
        "east lacked 3 events that others had, and was first with 5 that others lacked",
        "7 rows of west came when what they say was final",
    ]


def test_there_is_nothing_to_tell_where_all_is_well():
    assert LINES.conduct(status(east=replica(), west=replica())) == []


def test_the_summary_counts_what_was_dropped_and_changes_of_every_kind():
    totals = Totals()
    for _ in range(2):
        totals.add(status({"insert": 1, "update": 2, "delete": 3, "upsert": 4, "stable": 9}))
    summary = LINES.summary(totals)
    assert (summary["in"], summary["out"], summary["quarantined"], summary["dropped"]) == (20, 10, 2, 1040)
    assert "520 dropped" in LINES.line(totals.last, 0.1)


def test_who_decides_is_said_in_words():
    def vouching(name="rows", **more):
        columns = dict.fromkeys(("who", "kind", "op", "id"), "string") | {"at": "int64"}
        return vouching_of([source(name, columns, start="at", **more).node])

    (lossy,) = vouching(replica="who", disorder=1, lossy=True)
    assert lossy.startswith("what only one replica has stays (lossy)")
    complete = ["the replica that is furthest decides what is there (complete)"]
    assert (
        vouching(replica="who", disorder=1, lossy=False) == vouching(replica="who", kind="kind") == complete
    )
    (some,) = vouching(replica="who", disorder=1, lossy=["west"])
    assert some.startswith("of all replicas but west, ")
    assert vouching(disorder=1) == []
    assert vouching(replica="who", key="id", op="op") == complete


def test_of_several_sources_those_of_replicas_are_told_by_name():
    columns = {"who": "string", "at": "int64"}
    alone = source("alone", columns, start="at", disorder=1)
    several = source("several", columns, start="at", disorder=1, replica="who", lossy=False)
    (told,) = vouching_of([alone.node, several.node])
    assert told.startswith("several: the replica that is furthest")
