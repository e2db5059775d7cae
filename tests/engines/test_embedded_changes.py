"""A plan that merges replicas of changes, in this process: replicas come, go, fall silent and begin anew."""

from collections import Counter

import pytest
from laws.replicas_of_changes import table

import anabranch as ab
from anabranch import BEGINNING, FOREVER, Adjust, Insert, Stable
from anabranch.model.relation import Relation


def row(who, op, at, key=None, v=None, number=0):
    return {"replica": who, "op": op, "at": at, "site": key and "x", "id": key, "v": v, "number": number}


def value(key, v):
    return {"site": "x", "id": key, "v": v}


def said(job, *rows):
    return list(job.passes.push("table", list(rows))[""].elements())


def test_a_snapshot_that_nobody_knows_better_is_out_at_once_and_taken_back_for_one_who_does():
    job = table(ab.EveryChange()).open()
    assert said(job, row("b", "snapshot", 9, 1, "p")) == [Insert(value(1, "p"), 9, FOREVER)]
    job = table(ab.EveryChange()).open(job.dump())
    assert said(job, row("a", "insert", 3, 1, "p")) == [
        Adjust(value(1, "p"), 9, FOREVER, 9),
        Insert(value(1, "p"), 3, FOREVER),
    ]


def test_the_earliest_row_of_a_push_is_the_time_of_its_snapshot():
    job = table(ab.EveryChange()).open()
    assert said(
        job,
        row("b", "snapshot", 9, 1, "p"),
        row("b", "snapshot", 7, 2, "q", 1),
        row("b", "stable", 12, number=2),
    ) == [Insert(value(1, "p"), 7, FOREVER), Insert(value(2, "q"), 7, FOREVER), Stable(12)]


def test_nothing_is_final_while_one_is_awaited_that_may_vouch_until_it_is_idle_or_leaves():
    for leave in (ab.Job.idle, ab.Job.detach):
        job = table(ab.EveryChange(), ("a", "b")).open()
        job.push("table", [row("b", "snapshot", 9, 1, "p"), row("b", "stable", 12, number=1)])
        assert job.status().outputs[""] == BEGINNING
        leave(job, "table", "a")
        assert job.status().outputs[""] == 12


def test_a_replica_that_is_attached_again_begins_with_an_empty_table():
    job = table(ab.EveryChange(), ("a", "b")).open()
    job.push("table", [row(who, "insert", 3, 1, "p") for who in "ab"])
    job.detach("table", "b")
    job.attach("table", "b", 3)
    assert said(job, row("b", "insert", 3, 1, "p", 1)) == []
    assert said(job, row("a", "delete", 5, 1, number=1), row("a", "stable", 9, number=2)) == [
        Adjust(value(1, "p"), 3, FOREVER, 5),
        Stable(9),
    ]


def test_a_plan_that_is_closed_before_a_replica_has_said_a_word_ends_with_the_rows_of_the_others():
    job = table(ab.EveryChange(), ("a", "b")).open()
    relation = Relation()
    relation.apply(job.passes.push("table", [row("b", "snapshot", 9, 1, "p")])[""])
    relation.apply(job.passes.close()[""])
    assert [(one.start, one.end) for one in relation.events()] == [(9, FOREVER)]
    assert relation.frontier == FOREVER
    assert table(None, ("a", "b")).open().close()[-1] == Stable(FOREVER)


def test_a_change_that_does_not_fit_is_refused_under_the_name_of_its_replica():
    refused = []
    job = table().open(on_invalid=ab.Quarantine(refused.append))
    said(job, row("a", "update", 3, 1, "p"), row("b", "insert", 3, 1, "p"))
    assert [(one.rule, one.input) for one in refused] == [(ab.Rule.NO_SUCH_ROW, "a")]
    with pytest.raises(ab.InvalidElementError, match="changes a row that is not there"):
        said(table().open(), row("a", "update", 3, 1, "p"))


def test_rows_of_a_snapshot_say_nothing_of_how_far_the_log_is():
    job = table(ab.EveryChange(), disorder=2).open()
    rows = [row("b", "snapshot", 10, 1, "p"), row("b", "snapshot", 90, 2, "q", 1)]
    said(job, *rows)
    assert Stable(13) in said(job, row("b", "update", 12, 2, "r", 2), row("b", "delete", 15, 1, number=3))


def test_files_of_replicas_are_read_side_by_side_and_a_snapshot_takes_its_starts_from_the_log(tmp_path):
    columns = {
        name: str(kind)
        for name, kind in (("op", "string"), ("at", "int64"), ("id", "int64"), ("v", "string"))
    }
    source = ab.source(
        "table", columns | {"who": "string"}, start="at", op="op", key="id", replica="who", disorder=0
    )
    logs = {
        "home": ["insert 1 1 p", "insert 2 2 q", "update 6 1 r", "delete 9 2 q"],
        "mirror": ["snapshot 4 1 p", "snapshot 4 2 q", "update 6 1 r", "delete 9 2 q"],
    }
    for who, log in logs.items():
        (tmp_path / who).mkdir()
        parts = [one.split() for one in log]
        lines = [f'{{"op": "{op}", "at": {at}, "id": {key}, "v": "{v}"}}\n' for op, at, key, v in parts]
        (tmp_path / who / "1.jsonl").write_text("".join(lines))
    relation = Relation()
    for batch in ab.run(source.merge(), {"table": str(tmp_path)}):
        relation.apply(batch)
    assert Counter((one.payload["v"], one.start, one.end) for one in relation.events()) == Counter(
        {("p", 1, 6): 1, ("r", 6, FOREVER): 1, ("q", 2, 9): 1}
    )
