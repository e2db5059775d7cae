"""What shards say about a micro-batch, and what they say together."""

import pyarrow as pa
from engines.spark import driving
from engines.spark.driving import Query, Said, parcels
from engines.spark.merges import Merging

from anabranch import BEGINNING, Adjust, Attach, Detach, Drop, Insert, Quarantine, Stable, ticks
from anabranch.engines.spark.query.status import EVENTS, nothing, together
from anabranch.engines.spark.transport.packing import Packing
from anabranch.model.op import Op

HERE, THERE = {"value": "d"}, {"value": "a"}
"""Payloads that belong to the first and the second of two shards."""


def statuses(query: Query, *elements, who="a", first=0):
    said = [Said(who, element, sequence=first + n) for n, element in enumerate(elements)]
    packing = Packing(driving.ORDERED, len(query.ids), ordered=True)
    answers = query.receive(parcels([said], packing, query.ids))
    return [answer.status for answer in answers.values()]


def test_a_shard_counts_what_it_heard_and_said():
    first, second = statuses(Query(Merging(), 2), Attach(), Insert(HERE, 1, 5), Insert(HERE, 3, 5), Stable(2))
    assert first.received == {"attach": 1, "insert": 2, "stable": 1}
    assert second.received == {"attach": 1, "stable": 1}
    assert (first.emitted, second.emitted) == ({"insert": 2, "adjust": 0}, {"insert": 0, "adjust": 0})
    assert (first.frontier, first.advanced, first.live, first.case) == (2, True, 2, "R4")
    assert first.state_bytes > 0


def test_a_shard_counts_what_it_drops_and_what_it_tells_apart():
    late = Insert(HERE, 1, 2), Insert(HERE, 6, 6)
    for answer, counts in ((Drop(), (0, 2)), (Quarantine(), (2, 0))):
        query = Query(Merging(on_invalid=answer))
        statuses(query, Stable(5))
        (status,) = statuses(query, *late, first=1)
        assert (status.quarantined, status.dropped) == counts


def test_what_a_lossy_replica_says_too_late_is_dropped_or_told():
    for answer, counts in ((Drop(), (0, 1)), (Quarantine(), (1, 0))):
        query = Query(Merging(lossy=True, on_late=answer), 2)
        statuses(query, Stable(5))
        whole = together(0, statuses(query, Insert(HERE, 1, 9), who="b"))
        assert (whole.quarantined, whole.dropped) == counts
        assert whole.replicas["b"].late == 1


def test_together_they_say_what_was_removed_and_who_holds_what_is_final():
    query = Query(Merging(), 2)
    statuses(query, Insert(HERE, 1, 5), Insert(THERE, 1, 5))
    whole = together(0, statuses(query, Stable(3), who="b"))
    assert (whole.replicas["a"].removed, whole.replicas["a"].complete) == (2, True)
    query = Query(Merging(lossy=True, replicas=("a", "b")), 2)
    whole = together(0, statuses(query, Stable(3), who="b"))
    assert [name for name, one in whole.replicas.items() if one.holds] == ["a"]


def test_every_op_of_a_change_is_counted_as_an_event():
    assert {op.name.lower() for op in Op} <= set(EVENTS)


def test_a_frontier_that_stays_has_not_advanced():
    query = Query(Merging())
    statuses(query, Stable(5))
    (again,) = statuses(query, Stable(5), first=1)
    assert (again.frontier, again.advanced) == (5, False)


def test_together_they_count_events_once_and_what_all_are_told_once():
    query = Query(Merging(), 2)
    said = Insert(HERE, 1, 5), Insert(THERE, 1, 5), Adjust(THERE, 1, 5, 7), Insert(HERE, 6, 6), Stable(2)
    shards = statuses(query, *said)
    whole = together(3, shards)
    assert whole.received == {"insert": 3, "adjust": 1, "stable": 1}
    assert whole.emitted == {"insert": 2, "adjust": 0, "stable": 1} | {
        "adjust": sum(one.emitted["adjust"] for one in shards)
    }
    assert (whole.batch, whole.frontier, whole.live, whole.quarantined) == (3, 2, 2, 1)
    assert whole.replicas["a"].refused == 1
    assert whole.replicas["a"].elements == sum(one.replicas["a"].elements for one in shards)
    assert whole.state_bytes == sum(one.state_bytes for one in shards)
    assert whole.as_dict()["replicas"]["a"]["frontier"] == 2


def test_a_replica_that_is_behind_has_a_lag():
    query = Query(Merging(), 2)
    statuses(query, Stable(9), who="a")
    whole = together(0, statuses(query, Insert(HERE, 3, 5), Stable(4), who="b"))
    assert (whole.replicas["a"].lag, whole.replicas["b"].lag) == (0, 5)


def test_who_waits_for_what_nobody_shows_is_told():
    (stuck,) = statuses(Query(Merging()), Attach(7), Stable(9))
    assert "force_join" in stuck.stuck
    assert together(0, [stuck]).stuck == stuck.stuck


def test_a_query_that_has_said_nothing_has_a_status_of_the_same_form():
    (one,) = statuses(Query(Merging()), Insert(HERE, 1, 5), Stable(3))
    nobody, somebody = nothing(), together(0, [one])
    assert nobody.as_dict().keys() == somebody.as_dict().keys()
    assert nobody.emitted.keys() == somebody.emitted.keys()
    assert somebody.received.keys() <= nobody.received.keys()
    assert (nobody.batch, nobody.frontier, nobody.replicas) == (-1, BEGINNING, {})
    assert {*nobody.received.values(), *nobody.emitted.values(), nobody.live, nobody.quarantined} == {0}


NOON = ticks("2026-03-01T12:00:00Z")
MINUTE = 60_000_000


def test_a_status_is_printed_with_times_as_times():
    query = Query(Merging(clock=pa.timestamp("us", "Europe/Berlin")), 2)
    statuses(query, Insert(HERE, NOON, NOON + 1), Stable(NOON + 7 * MINUTE), who="a")
    whole = together(4, statuses(query, Insert(HERE, NOON, NOON + 1), Stable(NOON + 2 * MINUTE), who="b"))
    head, _, _, first, second = str(whole).splitlines()
    assert head == "micro-batch 4: R4, stable until 2026-03-01 12:07:00"
    assert first.startswith("a        2026-03-01 12:07:00  0 seconds")
    assert "2026-03-01 12:02:00  5 minutes" in second
    assert str(NOON) not in str(whole)
    assert whole.as_dict()["frontier"] == NOON + 7 * MINUTE


def test_a_status_of_ticks_is_printed_in_ticks():
    (one,) = statuses(Query(Merging()), Insert(HERE, 1, 5), Stable(3000))
    assert "stable until 3000" in str(together(0, [one]))
    assert str(nothing()).startswith("micro-batch -1: nothing yet, stable until -∞")


def test_who_left_or_has_not_joined_is_said_beside_its_name():
    query = Query(Merging())
    statuses(query, Insert(HERE, 1, 5), Stable(3), Detach(), who="a")
    (one,) = statuses(query, Attach(7), Stable(2), who="b")
    first, second = str(together(0, [one])).splitlines()[3:5]
    assert first.startswith("a ")
    assert first.endswith(" left")
    assert second.startswith("b ")
    assert second.endswith(" not joined")
