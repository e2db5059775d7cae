"""Arguments of a merge that cannot be meant are refused before a query runs, with the way out."""

from pathlib import Path

import pytest
from element_rows import put

from anabranch import Insert
from anabranch import spark as ab
from anabranch.model.schema import SchemaError

COLUMNS = "who string, at timestamp, until timestamp, v string"


@pytest.fixture
def feed(spark, tmp_path):
    return spark.readStream.schema(COLUMNS).json(str(tmp_path))


def refused(error, match, call, *arguments, **named):
    with pytest.raises(error, match=match) as caught:
        call(*arguments, **named)
    return " ".join(caught.value.__notes__)


@pytest.mark.parametrize("what", ["in", Path("in")])
def test_a_path_is_no_frame_and_the_error_says_what_reads_one(what):
    for call, named in ((ab.merge, {"start": "at"}), (ab.merge_changes, {"key": "id", "time": "at"})):
        assert "ab.folder(spark, 'in')" in refused(TypeError, "is read from a DataFrame", call, what, **named)


def test_a_list_is_no_frame():
    assert "createDataFrame" in refused(TypeError, r"\[1, 2\] is neither", ab.merge, [1, 2], start="at")


def test_a_stream_that_would_never_be_stable_is_refused(spark, tmp_path, feed):
    note = refused(ValueError, "nothing would ever become stable", ab.merge, feed, start="at", replica="who")
    assert "disorder='10 minutes'" in note
    put(tmp_path, "east", 0, [Insert({"value": "x"}, 5, 9)])
    folder = ab.folder(spark, tmp_path)
    refused(ValueError, "nothing would ever become stable", ab.merge, folder, start="start")
    ab.merge(feed, start="at", replica="who", disorder="1 minute", lossy=False)
    ab.merge(spark.createDataFrame([], COLUMNS), start="at", replica="who", lossy=False)


def test_who_sent_a_row_is_not_a_part_of_it_unless_that_is_said(spark, tmp_path):
    put(tmp_path, "east", 0, [Insert({"value": "x"}, 5, 9)])
    folder, named = ab.folder(spark, tmp_path), {"start": "start", "disorder": 1, "lossy": True}
    note = refused(ValueError, "'replica' says who sent a row, and", ab.merge, folder, **named)
    assert "Give replica='replica'" in note
    assert "payload" in note
    for meant in ({"replica": "replica"}, {"payload": "value"}, {"identity": ["replica", "value"]}):
        ab.merge(folder, **named, **meant)


def test_roles_and_kinds_are_checked(feed):
    refused(ValueError, "'at' is start and end", ab.merge, feed, start="at", end="at", disorder=1)
    assert "attach, detach" in refused(
        SchemaError, "kind is a word, and column 'until'", ab.merge, feed, start="at", kind="until"
    )


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        ({"pace": "fastest"}, "pace=Pace.FASTEST, after: from anabranch import Pace"),
        ({"on_broken": "generalise"}, "on_broken=Generalise()"),
        ({"on_late": "drop"}, "on_late=Drop()"),
        ({"on_late": "generalise"}, "one of Raise(), Drop(), Quarantine(),"),
    ],
)
def test_the_value_that_a_word_stands_for_is_told(feed, given, way_out):
    [(name, word)] = given.items()
    match = f"{name} (is|takes) .*not '{word}'"
    assert way_out in refused(TypeError, match, ab.merge, feed, start="at", disorder="1 minute", **given)


@pytest.mark.parametrize("schema", ["sensor strin", "string"])
def test_a_schema_that_spark_does_not_read_is_refused_with_one_it_does(spark, tmp_path, schema):
    (tmp_path / "east").mkdir()
    for read in (
        lambda: ab.folder(spark, tmp_path, schema=schema),
        lambda: ab.kafka(spark, "t", servers="nowhere:1", schema=schema),
    ):
        note = refused(ValueError, f"columns and their types, and .*'{schema}'", read)
        assert "'sensor string, at timestamp'" in note


SINKS = {
    "folder": lambda rows, place: ab.write_folder(rows, place / "out", checkpoint=place / "cp"),
    "table": lambda rows, place: ab.write_table(rows, place / "out", kind="history", checkpoint=place / "cp"),
    "topic": lambda rows, place: ab.write_kafka(rows, "t", servers="nowhere:1", checkpoint=place / "cp"),
}


@pytest.mark.parametrize("sink", SINKS)
def test_a_sink_takes_what_a_merge_of_a_stream_gives(spark, tmp_path, feed, sink):
    written = SINKS[sink]
    note = refused(ValueError, "element rows, and these have no column 'kind'", written, feed, tmp_path)
    assert "ab.merge" in note
    static = ab.merge(spark.createDataFrame([], COLUMNS), start="at")
    note = refused(ValueError, "a frame that is not streaming", written, static, tmp_path)
    assert "rows.write" in note
    assert "spark.readStream" in note
    assert not list(tmp_path.iterdir())


def test_a_replica_that_is_lossy_is_one_of_those_that_are_named(feed):
    named = {"start": "at", "disorder": "1 minute"}
    note = refused(
        ValueError,
        "'wset' is none of 'east', 'west'",
        ab.merge,
        feed,
        **named,
        replica="who",
        replicas=["east", "west"],
        lossy=["wset"],
    )
    assert "Spell it as its rows do" in note
    refused(ValueError, "no column says whose a row is", ab.merge, feed, **named, lossy="west")
    refused(ValueError, "no column says whose a row is", ab.merge, feed, **named, replicas=["east"])
    ab.merge(feed, **named, replica="who", lossy=["wset"])
    ab.merge(feed, **named, replica="who", replicas=["east", "west"], lossy=["west"])


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("interval '1-2' year to month", "interval year to month"),
        ("array(make_interval(1, 2))", "array<interval>"),
    ],
)
def test_columns_that_python_is_not_given_are_named(spark, sql, kind):
    rows = spark.sql(f"select 5L as at, {sql} as span")
    note = refused(
        SchemaError, f"column 'span' holds {kind}, which Spark does not hand", ab.merge, rows, start="at"
    )
    assert "Cast it" in note


def test_variants_do_not_tell_events_apart_and_travel_beside_what_does(spark):
    variant = "array(named_struct('x', map('k', parse_json('1'))))"
    rows = spark.sql(f"select 5L as at, 1 as id, {variant} as v")
    note = refused(SchemaError, "has one form for each value, column 'v'", ab.merge, rows, start="at")
    assert "to_json()" in note
    merged = ab.table(ab.merge(rows, start="at", identity="id").where("kind = 'insert'"))
    shown = ("id", "to_json(struct(v)) as v")
    assert merged.selectExpr(*shown).collect() == rows.selectExpr(*shown).collect()


def test_whether_replicas_may_lose_rows_is_asked_where_no_row_can_say_it(spark, feed):
    static = spark.createDataFrame([], COLUMNS)
    whose = {"start": "at", "replica": "who"}
    for rows, given in ((feed, {"disorder": "1 minute"}), (static, {"disorder": "1 minute"}), (static, {})):
        note = refused(ValueError, "none of them vouches", ab.merge, rows, **whose, **given)
        assert "lossy=True if a replica may lose rows" in note
        assert "lossy=False if each has every row" in note
        for answer in (True, False, ["west"]):
            ab.merge(rows, **whose, **given, lossy=answer)
    ab.merge(feed, start="at", disorder="1 minute")
    ab.merge(static, start="at")
    ab.merge(feed, start="at", replica="who", kind="v")
    ab.merge_changes(feed, key="v", time="at", op="v", replica="who", payload="v", disorder="1 minute")
