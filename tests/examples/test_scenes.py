"""The scenes of the documentation: what each way to read replicas makes of them, and what the pages say."""

import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from random import Random
from textwrap import indent

import pytest

import failover_on_kafka
import the_hole
import true_repeat
from anabranch.testing.leader_election import leader_election
from scene.readings import Reading, clock
from scene.topics import records
from scene.verdict import OURS, Result, Verdict, judge, outcome

ROOT = Path(__file__).parents[2]
SCENES = {"failover_on_kafka": failover_on_kafka, "the_hole": the_hole, "true_repeat": true_repeat}
EXACT = Verdict(0, 0, 0)
ROW, KEY = "dropDuplicates, the whole row", "dropDuplicates, sensor and time"
LEADER, SOON = "leader election, 30 s", "dropDuplicatesWithinWatermark, 1 minute"
READINGS = [Reading(at, "s", at / 10) for at in range(25)]


def page(name: str) -> str:
    return (ROOT / "docs" / "scenes" / f"{name}.md").read_text(encoding="utf-8")


def as_on_the_page(name: str, printed: str) -> str:
    """What a page shows when an example prints this."""
    return indent(f"$ .venv/bin/python examples/{name}.py\n{printed}\n", "    ")


@pytest.mark.slow
def test_a_failover_on_kafka_has_no_gap_and_no_repeat(spark, broker, tmp_path):
    found = failover_on_kafka.scene(spark, broker, tmp_path)
    assert found.verdicts[OURS] == EXACT
    assert found.verdicts[LEADER].missing > 0
    assert found.verdicts[LEADER].repeated > 0
    assert found.verdicts[SOON].missing > 0
    assert found.verdicts[ROW] == found.verdicts[KEY] == EXACT
    assert found.kept[ROW] == found.kept[KEY] == found.count > 5 * found.kept[OURS]
    assert as_on_the_page("failover_on_kafka", found.text()) in page("failover_on_kafka"), found.text()


def test_a_collector_that_is_killed_loses_what_it_has_in_hand_and_sends_its_spool_again(
    broker, tmp_path, monkeypatch
):
    monkeypatch.setitem(failover_on_kafka.TOPICS, "north", "readings-north")
    broker.make_topic("readings-north", config={"retention.ms": "-1"})

    def sent():
        return [value["value"] for _, value in records(broker.servers, "readings-north")]

    first = failover_on_kafka.Collector(broker.servers, "north", tmp_path, 0)
    for one in READINGS:
        first.hear(one.at, one)
    first.kill()
    assert first.process.returncode == -9
    assert first.in_hand == 5
    assert sent() == [one.value for one in READINGS[:20]]
    second = failover_on_kafka.Collector(broker.servers, "north", tmp_path, 40)
    second.hear(61, Reading(60, "s", 6.0))
    second.close()
    assert sent()[20:] == [*(one.value for one in READINGS), 6.0]


@pytest.mark.slow
def test_replicas_with_holes_are_complete_together_and_their_holes_are_counted(spark, tmp_path):
    found = the_hole.scene(spark, tmp_path)
    assert found.verdicts[OURS] == EXACT
    assert found.verdicts[f"{OURS}, without lossy=True"].missing > 0
    assert found.verdicts[LEADER].missing > 0
    assert found.verdicts[ROW].repeated > 0
    assert found.verdicts[KEY] == found.verdicts[SOON] == EXACT
    assert as_on_the_page("the_hole", found.text()) in page("the_hole"), found.text()
    truth, said = the_hole.told()
    [told] = re.findall(r"before (\S+): east (\d+), west (\d+)", found.sentence)
    past = {one for one in truth if clock(one.at) < told[0]}
    has = {name: {one.reading for one in said if one.replica == name} for name in ("east", "west")}
    assert [len(past - has[name]) for name in ("east", "west")] == [int(told[1]), int(told[2])]


def test_equal_readings_are_as_many_as_there_were(spark, tmp_path):
    found = true_repeat.scene(spark, tmp_path)
    twice = sum(count - 1 for count in Counter(true_repeat.tips(Random(8))).values())
    assert twice > 50
    assert found.verdicts[OURS] == EXACT
    assert found.verdicts[LEADER].missing > 0
    assert {found.verdicts[name] for name in (ROW, KEY, SOON)} == {Verdict(twice, 0, 0)}
    assert as_on_the_page("true_repeat", found.text()) in page("true_repeat"), found.text()


@pytest.mark.parametrize("name", SCENES)
def test_the_code_on_a_page_is_that_of_its_example(name):
    [code] = re.findall(r"^```python\n(.*?)^```$", page(name), re.DOTALL | re.MULTILINE)
    source = Path(SCENES[name].__file__).read_text(encoding="utf-8")
    assert code in source or indent(code, "    ") in source


@pytest.mark.parametrize("name", SCENES)
def test_an_example_whose_merge_is_wrong_says_so_and_fails(name, monkeypatch, capsys):
    results = {OURS: Result(READINGS[1:])}
    wrong = outcome(READINGS, results, before="", sentence="all is well")
    example = SCENES[name]
    monkeypatch.setattr(example, "scene", lambda *_: wrong)
    monkeypatch.setattr(example, "local_spark", nullcontext)
    monkeypatch.setattr(example, "Broker", nullcontext, raising=False)
    assert example.main() == 1
    said = capsys.readouterr().out
    assert "NOT what was measured" in said
    assert "all is well" not in said


def test_a_verdict_counts_equal_readings():
    one, two, other = READINGS[:3]
    assert judge([one, one, two], [two, one, one]) == EXACT
    assert judge([one, one, two], [one, two, two, other, other]) == Verdict(1, 1, 2)


def test_a_leader_is_followed_until_it_has_been_silent_for_longer_than_the_timeout():
    said = {"a": [(0, "a0"), (40, "a40")], "b": [(1, "b1"), (30, "b30"), (31, "b31"), (70, "b70")]}
    assert leader_election(said) == ["a0", "b31", "b70"]
    assert leader_election(said, timeout=40) == ["a0", "a40"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_an_example_prints_what_its_page_shows_and_leaves_nothing_behind(name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert as_on_the_page(name, done.stdout.rstrip("\n")) in page(name)
    assert not list(tmp_path.iterdir())
