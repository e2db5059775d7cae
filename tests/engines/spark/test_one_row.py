"""A merge of changes shows at most one open row of each key, and what may show more is refused."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from engines.spark.changing import MERGING, ORDERED, Query
from laws.table_histories import Said, cut, history
from quick import cases

from anabranch import (
    FOREVER,
    EveryChange,
    FinalOnly,
    FirstThenFinal,
    FollowLeader,
    HalfFrozen,
    Quorum,
)
from anabranch.connectors.tables.sink import view_of
from anabranch.engines.spark.one_row import check_one_row
from anabranch.jobs.ends import SinkSection, TableSinkSection, check_table
from anabranch.jobs.merge_sections import ChangesSection
from anabranch.model.properties import Case, Properties
from anabranch.plan.one_row import policy_of_changes, several_open_rows

KEYED = Properties.of("keyed")


def said_by(random: Random, name: str, log: list[Said], position: int) -> list[Said]:
    """What a replica says that begins with a snapshot after so many changes."""
    there: dict[tuple, Said] = {}
    for one in log[:position]:
        there.pop((one.site, one.id), None)
        if one.op != "delete":
            there[one.site, one.id] = one
    said = [replace(one, replica=name, op="snapshot", at=log[position - 1].at) for one in there.values()]
    for n, one in enumerate(log[position:], position + 1):
        said.append(replace(one, replica=name))
        if random.random() < 0.3:
            said.append(Said(name, "stable", log[n].at if n < len(log) else one.at))
    return [replace(one, number=n) for n, one in enumerate(said)]


@pytest.mark.parametrize("properties", [None, KEYED], ids=["bag", "keyed"])
@pytest.mark.parametrize("policy", [None, HalfFrozen(), FinalOnly(), FollowLeader()], ids=str)
@pytest.mark.parametrize("seed", range(cases(12)))
def test_after_every_micro_batch_a_key_has_one_open_row_at_most(seed, policy, properties):
    random = Random(seed)
    log = history(random, 40, step=random.choice((0, 2)))
    positions = [0, random.choice((0, random.randrange(1, 40)))]
    copies = [said_by(random, name, log, n) for name, n in zip("ab", positions, strict=True)]
    policy = policy or policy_of_changes(None, properties)
    merging = replace(MERGING, policy=policy, properties=properties, replicas=("a", "b"))
    query = Query(ORDERED, merging, random.choice((1, 2)), rows=1000)
    batches = [[] for _ in range(8)]
    for copy in copies:
        parts = cut(random, copy)
        for part, place in zip(parts, sorted(random.choices(range(8), k=len(parts))), strict=True):
            batches[place] += part
    assert several_open_rows(policy, None, properties) is None
    for batch in batches:
        query.receive(batch)
        events = [event for event in query.output.events() if event.end == FOREVER]
        rows = Counter((event.payload["site"], event.payload["id"]) for event in events)
        assert set(rows.values()) <= {1}


@pytest.mark.parametrize(
    ("policy", "case", "properties", "says"),
    [
        (FirstThenFinal(), None, None, "FirstThenFinal shows the row after a change before it ends"),
        (Quorum(fraction=1.0), None, None, "Quorum shows the row after a change"),
        (EveryChange(), None, KEYED, "EveryChange opens a row again that a slower replica has not ended"),
        (EveryChange(), Case.R3, None, "EveryChange opens a row again"),
    ],
)
def test_a_policy_that_shows_several_open_rows_is_refused_with_the_reason(policy, case, properties, says):
    with pytest.raises(ValueError, match=says) as caught:
        check_one_row(several_open_rows(policy, case, properties))
    assert "Leave policy out" in caught.value.__notes__[0]


def test_without_a_policy_changes_are_followed_as_soon_as_one_row_is_kept():
    assert policy_of_changes(None, None) == EveryChange()
    assert policy_of_changes(None, KEYED) == policy_of_changes(Case.R3, None) == FollowLeader()


def test_who_leads_by_what_it_shows_may_take_the_lead_between_an_end_and_the_row_after_it():
    assert "brings it the lead" in several_open_rows(FollowLeader(by="latest"), None, KEYED)


def test_a_job_whose_table_would_have_several_open_rows_is_refused_before_it_runs():
    sink = SinkSection(table=TableSinkSection(path="t", kind="history"))
    check_table(ChangesSection(key="id", time="at"), sink)
    check_table(ChangesSection(key="id", time="at", properties="keyed"), sink)
    with pytest.raises(ValueError, match="one open row for each key, and FirstThenFinal"):
        check_table(ChangesSection(key="id", time="at", policy="first"), sink)
    check_table(ChangesSection(key="id", time="at", policy="first"), replace_kind(sink, "elements"))


def replace_kind(sink: SinkSection, kind: str) -> SinkSection:
    return SinkSection(table=TableSinkSection(path=sink.table.path, kind=kind))


@pytest.mark.parametrize("word", ["scd2", "SCD-2", "slowly changing", "type_2"])
def test_who_asks_for_a_slowly_changing_dimension_is_told_what_it_is_called(word):
    with pytest.raises(ValueError, match="is none") as caught:
        view_of(word, None, (), open_only=False, final=False)
    assert "SCD2" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="is none") as caught:
        TableSinkSection(path="t", kind=word).check()
    assert "kind 'history'" in caught.value.__notes__[-1]
