"""What a merge on Spark must do, with no Spark: shards behind `TwsTester`, many random cases.

Each case is judged by the laws of `laws.merge` after every micro-batch, shard by shard beside the oracle, in
the end beside the embedded engine, and once more with workers that fail, repeat and are behind.
"""

from dataclasses import replace
from random import Random

import msgspec
import pandas as pd
import pyarrow as pa
import pytest
from engines.spark import driving
from engines.spark.driving import Query, Said, parcels
from engines.spark.merges import Merging
from engines.spark.micro_batches import Drawn, failures
from laws.merge import FAULTS, LOSSES, POLICIES, Scenario, merges
from laws.trial import ORDERED
from pyspark.sql.streaming import TwsTester
from quick import cases

from anabranch import BEGINNING, FOREVER, Attach, Case, Detach, Insert, Stable, text
from anabranch.engines.flow import Flow
from anabranch.engines.spark import journal
from anabranch.engines.spark.processor import ShardProcessor
from anabranch.engines.spark.query.status import ShardStatus
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.unpacking import Unpacking
from anabranch.kernels.merge.merge import Merge
from anabranch.model.output_policy import FinalOnly, FirstThenFinal, FollowLeader, Quorum
from anabranch.model.validity import Quarantine
from anabranch.rows import refusal

CHUNK = 50
COMBINATIONS = [
    (case, fault)
    for case in Case
    for fault in (FAULTS if case in ORDERED else FAULTS + LOSSES)
    if (case, fault) != (Case.R1, "gap")  # a gap breaks the one order of ties that R1 relies on
]


@pytest.mark.parametrize("number", range(cases(42)))
def test_shards_give_what_the_replicas_mean_however_they_are_run(number):
    found = failures(range(number * CHUNK, (number + 1) * CHUNK))
    assert not found, (
        f"seed {found[0][0]}: {found[0][1]}\n{text(Drawn.of(found[0][0]).trial.scenario.recording)}"
    )


class OneByOne:
    """A query that is given one element in each micro-batch."""

    def __init__(self, scenario: Scenario, shards: int) -> None:
        attaches = range(10)  # each attach has a name of its own
        self.merging = Merging(
            Case.R4 if scenario.lossy else scenario.case,
            scenario.policy,
            lossy=frozenset(f"{name}{n}" for name in scenario.lossy for n in attaches),
        )
        self.query = Query(self.merging, shards)
        self.packing = Packing(driving.UNORDERED, shards)
        self.stable = BEGINNING

    def attach(self, name, guarantee=BEGINNING, *, complete=True):
        assert complete == (name not in self.merging.lossy)
        return self.push(name, Attach(guarantee))

    def detach(self, name):
        return self.push(name, Detach())

    def push(self, name, element):
        answers = self.query.receive(parcels([[Said(name, element)]], self.packing, self.query.ids))
        out = [e for answer in answers.values() for e in answer.elements()]
        stable = min(answer.status.frontier for answer in answers.values())
        if stable > self.stable:
            self.stable = stable
            out.append(Stable(stable))
        return out


@pytest.mark.parametrize(("case", "fault"), COMBINATIONS, ids=lambda value: getattr(value, "name", value))
def test_elements_that_come_one_by_one_are_merged_after_each(case, fault):
    random = Random(f"{case.name} {fault}")
    shards = random.randint(1, 3)
    policies = [p for p in POLICIES if not (isinstance(p, FollowLeader) and p.needs_all)]
    policies = [p for p in policies if not (case in ORDERED and isinstance(p, Quorum | FollowLeader))]
    scenario = Scenario.drawn(random, case, fault, random.choice(policies))
    merges(lambda scenario: OneByOne(scenario, shards), scenario)


def test_the_last_level_says_in_rows_what_others_say_in_parcels():
    """Frames of pandas in and out, as Spark has them, beside rows."""
    unpacking = Unpacking(pa.schema([("value", pa.string())]), pa.int64(), refusals=True, shards=1)
    said = 0
    for seed in range(60):
        drawn = Drawn.of(seed)
        query = Query(replace(drawn.merging, on_invalid=Quarantine()), drawn.shards, "parcels")
        last = TwsTester(ShardProcessor(query.assignment, query.ids, "rows", unpacking))
        layout = driving.ORDERED if drawn.ordered else driving.UNORDERED
        packing = Packing(layout, drawn.shards, drawn.rows, ordered=drawn.ordered)
        for batch in drawn.batches:
            rows = list(parcels(batch, packing, query.ids))
            for number, answer in query.receive(rows).items():
                key = query.ids[number]
                frame = last.testInPandas(
                    key, pd.DataFrame([row.asDict() for row in rows if row.shard == key])
                )
                assert rows_of(frame) == rows_of_answer(unpacking, answer), seed
                said += len(frame)
    assert said > 500


def rows_of(frame):
    """The rows of a frame whose columns are Arrow's; the size of the state is not compared."""
    columns = [pa.array(frame[n].array).to_pylist() for n in frame.columns]
    rows = list(zip(*columns, strict=True))
    return [(*row, status and without_size(status)) for *row, status in rows]


def rows_of_answer(unpacking, answer):
    output = [parcel.from_bytes(body).batch(slice(None)) for body in answer.bodies]
    refused = [one for data in answer.refused for one in refusal.from_bytes(data)]
    batches = unpacking.rows_of(output, refused, answer.status)
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return [(*row, status and without_size(status)) for *row, status in rows]


def without_size(status):
    told = msgspec.json.decode(status, type=ShardStatus)
    return msgspec.structs.replace(told, state_bytes=0, operators={})


def test_a_case_is_drawn_from_its_seed_alone():
    assert Drawn.of(17) == Drawn.of(17)


def loses_an_event(self, stage, result, hand_on=Flow._hand_on):
    hand_on(self, stage, result._replace(events=result.events.take(result.events.start != 3)))


stays_behind = property(lambda self: BEGINNING)


def misses_what_was_heard(values):
    return iter(())


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (Flow, "_hand_on", loses_an_event),
        (Merge, "agreed", stays_behind),
        (journal, "_unframed", misses_what_was_heard),
    ],
)
def test_what_is_wrong_is_found(where, name, wrong, monkeypatch):
    """The judge's own test."""
    monkeypatch.setattr(where, name, wrong)
    assert failures(range(40))


EVENTS = {"shard 0": "d", "shard 1": "a"}
"""The values of events that belong to these of two shards."""


def heard(query, said, *, ordered=True, rows=1000):
    """What the shards say about one micro-batch that one task packs."""
    layout = driving.ORDERED if ordered else driving.UNORDERED
    packing = Packing(layout, len(query.ids), rows, ordered=ordered)
    return query.receive(parcels([said], packing, query.ids))


def insert(shard: int, start: int, end: int) -> Insert:
    return Insert({"value": EVENTS[f"shard {shard}"]}, start, end)


def frontiers(answers) -> list[int]:
    return [answer.status.frontier for answer in answers.values()]


class TestShardsAreAtOneFrontier:
    """However little of a micro-batch is told to a shard."""

    def test_the_events_of_these_tests_belong_to_the_shards_they_name(self):
        for shard in (0, 1):
            answers = heard(Query(Merging(), 2), [Said("a", insert(shard, 1, 5))])
            assert [len(answer.elements()) for answer in answers.values()] == [shard == 0, shard == 1]

    def test_a_lossy_replica_that_speaks_of_one_shard_alone_is_waited_for_in_all(self):
        query = Query(Merging(Case.R4, lossy=True), 2)
        said = [Said("a", Stable(9), sequence=1), Said("b", insert(1, 1, 5), sequence=1)]
        assert frontiers(heard(query, said)) == [BEGINNING, BEGINNING]
        assert set(heard(query, [Said("b", Stable(7), sequence=2)])[0].status.replicas) == {"a", "b"}

    def test_a_channel_that_speaks_to_one_shard_alone_is_waited_for_in_all(self):
        query = Query(Merging(), 2)
        said = [Said("a", Stable(9), "x", 1), Said("a", insert(1, 1, 5), "y", 1)]
        assert frontiers(heard(query, said)) == [BEGINNING, BEGINNING]
        assert frontiers(heard(query, [Said("a", Stable(4), "y", 2)])) == [4, 4]

    def test_a_shard_that_is_told_nothing_hears_who_spoke(self):
        query = Query(Merging(), 2)
        first, second = heard(query, [Said("a", insert(0, 1, 5))]).values()
        assert (first.status.received, second.status.received) == ({"insert": 1}, {})
        assert list(second.status.replicas) == ["a"]

    @pytest.mark.parametrize("case", [Case.R0, Case.R1, Case.R2, Case.R3, Case.R4])
    def test_a_late_input_leads_in_all_shards_or_in_none(self, case):
        """The first shard has an event beyond the guarantee; the second has none."""
        query = Query(Merging(case), 2)
        said = [Said("a", insert(0, 6, 7), sequence=1)]
        said += [Said("b", element, sequence=n) for n, element in enumerate([Attach(5), Stable(8)])]
        assert frontiers(heard(query, said)) == [BEGINNING, BEGINNING]
        assert frontiers(heard(query, [Said("a", Stable(5), sequence=2)])) == [8, 8]

    @pytest.mark.parametrize("rows", [1, 2, 1000])
    def test_rounds_are_the_same_in_all_shards(self, rows):
        """Whether a late input led before it left depends on who spoke first, so that may not differ."""
        query = Query(Merging(), 2)
        packing = Packing(driving.ORDERED, 2, rows, ordered=True)
        tasks = [
            [Said("a", insert(0, 6, 7), sequence=1)],
            [Said("a", Stable(6), sequence=2)],
            [Said("b", element, sequence=n) for n, element in enumerate([Attach(5), Stable(9), Detach()])],
        ]
        first, second = frontiers(query.receive(parcels(tasks, packing, query.ids)))
        assert first == second

    def test_a_lossy_replica_that_says_it_is_there_is_waited_for_meanwhile(self):
        """An attach of who was waited for is no restart: nobody goes on before it has spoken."""
        query = Query(Merging(Case.R4, lossy=True, replicas=("a", "b")), 2)
        said = [Said("a", Stable(9), sequence=1)]
        said += [Said("b", element, sequence=n) for n, element in enumerate([Attach(), insert(0, 1, 5)])]
        answers = heard(query, said)
        assert frontiers(answers) == [BEGINNING, BEGINNING]
        assert answers[0].elements() == [insert(0, 1, 5)]

    def test_a_replica_that_detaches_and_attaches_begins_anew(self):
        query = Query(Merging(Case.R4), 2)
        heard(query, [Said("a", insert(0, 1, 5), sequence=1), Said("a", Stable(3), sequence=2)])
        again = [Detach(), Attach(), insert(0, 1, 5), insert(0, 4, 6), Stable(5)]
        answers = heard(query, [Said("a", element, sequence=n) for n, element in enumerate(again, 3)])
        assert answers[0].elements() == [insert(0, 4, 6)]
        assert not answers[0].refused

    def test_shards_that_let_out_what_is_final_may_differ(self):
        query = Query(Merging(policy=FinalOnly()), 2)
        assert frontiers(heard(query, [Said("a", insert(0, 1, FOREVER)), Said("a", Stable(9))])) == [1, 9]

    def test_the_frontier_lags_in_all_shards(self):
        query = Query(Merging(Case.R1, FirstThenFinal(lag=3)), 2)
        assert frontiers(heard(query, [Said("a", insert(0, 1, 5)), Said("a", Stable(9))])) == [6, 6]
