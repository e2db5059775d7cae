"""The demo: a scene whose truth is known, three ways to read it, a picture, and a real query on Spark."""

import json
import re
import signal
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from cli.spark_commands import are_gone, descendants, run, start

from anabranch import BEGINNING, FOREVER, Adjust, Insert, Merger, Relation, Stable, difference
from anabranch.cli.demo import feed, rivals
from anabranch.cli.demo.command import MARKER, Talk
from anabranch.cli.demo.merging import MicroBatch
from anabranch.cli.demo.picture import WIDTH, Result, drawn, text_width
from anabranch.cli.demo.readings import LENGTH, SENSORS, Reading, readings
from anabranch.cli.demo.replicas import DIES, GUARANTEE, RETURNS, Row, east, west
from anabranch.cli.demo.verdict import judge
from anabranch.cli.main import main

SEEDS = range(12)


def scene(seed):
    random = Random(seed)
    truth = readings(random)
    return truth, {"east": east(random, truth), "west": west(random, truth)}


def element(row: Row):
    payload = {"sensor": row.sensor, "value": row.value}
    match row.kind:
        case "insert":
            return Insert(payload, row.start, row.end)
        case "adjust":
            return Adjust(payload, row.start, row.old_end, row.end)
    return Stable(row.start)


def relation(elements) -> Relation:
    found = Relation()
    found.apply(list(elements))
    return found


def events(truth):
    return relation(Insert({"sensor": r.sensor, "value": r.value}, r.start, r.end) for r in truth)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reading_holds_until_the_next_one_of_its_sensor(seed):
    truth, _ = scene(seed)
    for sensor in SENSORS:
        own = [one for one in truth if one.sensor == sensor]
        assert all(one.end == after.start for one, after in pairwise(own))
        assert own[-1].end == LENGTH


@pytest.mark.parametrize("seed", SEEDS)
def test_west_and_each_life_of_east_are_valid_streams(seed):
    truth, said = scene(seed)
    assert difference(relation(map(element, said["west"])), events(truth)) is None
    relation(element(row) for row in said["east"] if row.said < DIES)
    back = [row for row in said["east"] if row.said >= RETURNS]
    assert [row.start for row in back if row.kind == "attach"] == [GUARANTEE]
    shown = relation(element(row) for row in back if row.kind not in ("detach", "attach"))
    whole = {(e.payload["sensor"], e.start, e.end) for e in shown.events()}
    assert whole >= {(one.sensor, one.start, one.end) for one in truth if one.end >= GUARANTEE}
    missed = {(one.sensor, one.start, one.end) for one in truth if DIES < one.end < GUARANTEE} - whole
    assert missed
    assert all(rows[-1] == Row(rows[-1].said, "stable", FOREVER) for rows in said.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_replicas_revise_in_different_ways_and_mean_the_same(seed):
    truth, said = scene(seed)
    merger = Merger()
    merged = Relation()
    for replica in said:
        merger.attach(replica, properties="keyed")
    arrivals = [(row, replica) for replica, rows in said.items() for row in rows]
    for row, name in sorted(arrivals, key=lambda one: one[0].said):
        if row.kind == "detach":
            merged.apply(merger.detach(name))
        elif row.kind == "attach":
            merged.apply(merger.attach(name, row.start, "keyed"))
        else:
            merged.apply(merger.push(name, [element(row)]))
    assert difference(merged, events(truth)) is None
    assert merger.status().case == "R3"
    corrections = [{row for row in rows if row.kind == "adjust"} for rows in said.values()]
    assert corrections[0].isdisjoint(corrections[1])


@pytest.mark.parametrize("seed", SEEDS)
def test_leader_election_loses_repeats_and_leaves_stale_what_the_merge_does_not(seed):
    truth, said = scene(seed)
    followed = rivals.leader_election(said)
    counts = judge(truth, rivals.table(followed)).counts()
    assert all(counts[what] > 0 for what in ("missing", "repeated", "stale"))
    assert counts["spurious"] == 0


def test_a_replica_that_never_dies_is_followed_to_the_end():
    truth, said = scene(0)
    alone = rivals.leader_election({"west": said["west"]})
    assert judge(truth, rivals.table(alone)).exact


def test_a_line_of_the_demo_shows_a_merge_that_is_stable_nowhere_yet(capsys):
    talk = Talk(quiet=False)
    for frontier in (BEGINNING, feed.moment(60), FOREVER):
        talk.hear(MicroBatch(120, 0, "east", frontier, 8, 0, 0, 0, 0))
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r"\s{2,}", line.strip())[3] for line in lines] == ["nothing yet", "12:01:00", "the end"]
    assert [one.get("frontier", "none") for one in talk.micro_batches] == ["none", feed.moment(60), None]


def test_a_verdict_tells_missing_repeated_stale_and_spurious_apart():
    a, b, c, d = (Reading(n, "hall", float(n), n + 5) for n in range(4))
    stale, ghost = Reading(2, "hall", 2.0, 99), Reading(7, "hall", 7.0, 9)
    verdict = judge([a, b, c, d], [a, b, b, stale, ghost])
    assert (verdict.missing, verdict.repeated, verdict.stale, verdict.spurious) == (
        [d],
        [b],
        [(c, 99)],
        [ghost],
    )
    assert not verdict.exact
    assert judge([a, b], [b, a]).exact


@pytest.fixture(scope="module")
def picture():
    truth, said = scene(6)
    followed = judge(truth, rivals.table(rivals.leader_election(said)))
    late = sorted((row for rows in said.values() for row in rows), key=lambda row: row.said)
    everything = judge(truth, rivals.table(late))
    results = [
        Result("logical merge", judge(truth, truth)),
        Result("leader election", followed),
        Result("de-duplication", everything),
    ]
    return ElementTree.fromstring(drawn(truth, said, results))


def texts(picture):
    """Every text with the box it is about to fill."""
    sizes = {"title": 17, "name": 13, "value": 9}
    for text in picture.iter("{http://www.w3.org/2000/svg}text"):
        kinds = text.get("class", "").split()
        size = next((sizes[kind] for kind in kinds if kind in sizes), 11)
        wide = text_width(text.text or "", size)
        x, y = float(text.get("x")), float(text.get("y"))
        left = x - wide if "right" in kinds else x - wide / 2 if {"middle", "value"} & {*kinds} else x
        yield text.text, left, y - size * 0.8, left + wide, y + size * 0.2


def test_the_texts_of_the_picture_are_inside_it_and_do_not_overlap(picture):
    height = float(picture.get("height"))
    boxes = list(texts(picture))
    assert len(boxes) > 100
    for words, left, top, right, bottom in boxes:
        assert left >= 0, words
        assert right <= WIDTH, words
        assert top >= 0, words
        assert bottom <= height, words
    boxes.sort(key=lambda box: box[1])
    for n, (words, left, top, right, bottom) in enumerate(boxes):
        for other, left_, top_, _, bottom_ in boxes[n + 1 :]:
            if left_ >= right:
                break
            assert top_ >= bottom or bottom_ <= top, (words, other, left)


def test_bars_and_lines_are_inside_the_picture_and_wrong_ones_say_what_is_wrong(picture):
    name = "{http://www.w3.org/2000/svg}"
    for bar in picture.iter(f"{name}rect"):
        if bar.get("class") != "ground":
            assert 0 <= float(bar.get("x")) < float(bar.get("x")) + float(bar.get("width")) <= WIDTH
    for line in picture.iter(f"{name}line"):
        assert 0 <= float(line.get("x1")) <= float(line.get("x2")) <= WIDTH
    wrong = {
        kind: [
            group.find(f"{name}title").text
            for group in picture.iter(f"{name}g")
            if group.find(f"{name}rect").get("class") == kind
        ]
        for kind in ("missing", "repeated", "stale")
    }
    assert all(words.endswith("missing") for words in wrong["missing"])
    assert all("times" in words for words in wrong["repeated"])
    assert all(wrong.values())
    assert "prefers-color-scheme: dark" in picture.find(f"{name}style").text


def test_a_folder_that_the_demo_did_not_make_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("irreplaceable")
    assert main(["demo", "--out", str(tmp_path / "mine")]) == 2
    assert "--out FOLDER" in capsys.readouterr().err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "irreplaceable"


def test_without_java_the_message_says_what_to_install(tmp_path):
    done = run("demo", cwd=tmp_path, PATH=str(tmp_path), JAVA_HOME="")
    assert done.returncode == 2
    assert "Java 17 or newer" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_demo_merges_on_spark_through_death_and_restart_and_says_nothing_else(tmp_path):
    (tmp_path / "anabranch-demo").mkdir()
    (tmp_path / "anabranch-demo" / MARKER).touch()
    (tmp_path / "anabranch-demo" / "old").touch()
    done = run("demo", "--json", "--seed", "3", cwd=tmp_path)
    assert done.stderr == ""
    figures = json.loads(done.stdout)
    assert done.returncode == 0
    assert figures["exact"]
    assert set(figures["merge"].values()) == {0}
    assert figures["leader_election"]["missing"] > 0
    assert figures["deduplication"]["repeated"] > 0
    assert figures["deduplication"]["stale"] > 0
    assert figures["restarts"][0]["halfway"]
    assert [one["batch"] for one in figures["micro_batches"]] == list(range(len(figures["micro_batches"])))
    assert sum(one["heard"] for one in figures["micro_batches"]) == sum(figures["rows"].values())
    leaders = [one["leader"] for one in figures["micro_batches"]]
    assert leaders[0] == leaders[-1] == "east"
    assert "west" in leaders
    assert figures["micro_batches"][-1]["frontier"] is None
    ElementTree.parse(figures["picture"])
    assert Path(figures["folder"]) == tmp_path / "anabranch-demo"
    assert not (tmp_path / "anabranch-demo" / "old").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["anabranch-demo"]
    truth, _ = scene(3)
    merged = relation(
        element
        for batch in feed.written(tmp_path / "anabranch-demo" / "merged")
        for element in batch.elements()
    )
    assert difference(merged, feed.relation(truth)) is None


@pytest.mark.slow
def test_an_interrupted_demo_leaves_no_spark_behind(tmp_path):
    with start("demo", cwd=tmp_path) as process:
        for line in process.stdout:
            if "micro-batch:" in line:
                break
        spark = descendants(process.pid)
        assert spark
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == ""
    assert are_gone(spark)
