"""Real queries into tables: what they show is what the replicas mean, through restarts."""

import datetime as dt
from collections import Counter
from decimal import Decimal
from random import Random

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from test_tables import Rows, latest, rows_of

from anabranch import Adjust, Insert, Stable
from anabranch import spark as ab
from anabranch.connectors.tables.sink import view_of, write_table
from anabranch.connectors.tables.table_error import TableError
from anabranch.connectors.tables.views import plain_columns
from anabranch.oracle.relation import denoted
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape

ELEMENTS = {"kind": "kind", "start": "start", "end": "end", "old_end": "old_end", "replica": "replica"}


def copies_of(random, count=2):
    """Replicas with revisions, removals, ties and true duplicates."""

    def payload(element):
        number = ord(element.payload["value"]) - ord("a")
        return {"sensor": number % 4, "level": f"level {number}"}

    def renamed(element):
        match element:
            case Insert(_, start, end):
                return Insert(payload(element), start, end)
            case Adjust(_, start, old_end, end):
                return Adjust(payload(element), start, old_end, end)
        return element

    _, made = replicas(random, count, shape=Shape(events=60, payloads=12, horizon=40))
    return {name: [renamed(element) for element in copy] for name, copy in zip("abc", made, strict=False)}


def put(folder, random, copies, parts):
    """The copies as files of a folder, each cut into so many; a function that lets the next ones appear."""
    cut = {}
    for name, copy in copies.items():
        cuts = sorted(random.randrange(len(copy) + 1) for _ in range(parts - 1))
        cut[name] = [copy[a:b] for a, b in zip([0, *cuts], [*cuts, len(copy)], strict=True)]

    def appear(number):
        for name, pieces in cut.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(rows_of(pieces[number]), folder / name / f"{number:04}.parquet")

    return appear


def shown(path, kind):
    table = Rows(
        view_of(
            kind,
            plain_columns(rows_of([]).schema),
            ("sensor",) if kind == "current" else (),
            open_only=False,
            final=False,
        )
    )
    for row in DeltaTable(path).to_pyarrow_table().to_pylist():
        table.rows[tuple(row[name] for name in table.view.by)] = row
    return table.events() if kind == "history" else table.values()


def is_latest(values, elements):
    expected = latest(elements)
    assert {key: start for key, (start, _) in values.items()} == {
        k: start for k, (start, _) in expected.items()
    }
    assert all(level in expected[key][1] for key, (_, level) in values.items())


def elements_in(path):
    """The elements of a table of elements; inserts first, as rows of a micro-batch have no order."""
    found = []
    for row in DeltaTable(path).to_pyarrow_table().sort_by([("kind", "descending")]).to_pylist():
        payload = {"sensor": row["sensor"], "level": row["level"]}
        end, old_end = (2**63 - 1 if row[name] is None else row[name] for name in ("end", "old_end"))
        match row["kind"]:
            case "insert":
                found.append(Insert(payload, row["start"], end))
            case "adjust":
                found.append(Adjust(payload, row["start"], old_end, end))
    return found


def net_of(elements):
    """The bag that elements make, in whatever order they are."""
    bag = Counter()
    for element in elements:
        if not isinstance(element, Stable):
            key = (str(sorted(element.payload.items())), element.start)
            bag[*key, element.end] += element.end > element.start
            if isinstance(element, Adjust):
                bag[*key, element.old_end] -= 1
    return +bag


def test_a_merge_of_replicas_that_is_restarted_keeps_each_kind_of_table(spark, tmp_path):
    random = Random(7)
    copies = copies_of(random)
    appear = put(tmp_path / "in", random, copies, 2)
    for number in range(2):
        appear(number)
        for kind in ("elements", "history", "current"):
            merged = ab.merge(ab.folder(spark, tmp_path / "in", files_per_trigger=2), case="R4", **ELEMENTS)
            query = write_table(
                merged,
                tmp_path / kind,
                kind=kind,
                key=("sensor",) if kind == "current" else (),
                checkpoint=tmp_path / f"{kind}-checkpoint",
                available_now=True,
                compact_every=2,
                name=f"{kind}-{number}",
            )
            assert ab.wait(query)
            assert ab.status(query).quarantined == 0
        said = net_of(elements_in(tmp_path / "elements"))
        history = DeltaTable(tmp_path / "history").to_pyarrow_table().to_pylist()
        assert said == Counter(
            (
                str(sorted({"sensor": row["sensor"], "level": row["level"]}.items())),
                row["valid_from"],
                2**63 - 1 if row["valid_to"] is None else row["valid_to"],
            )
            for row in history
        )
        tops = {
            s: max(r["valid_from"] for r in history if r["sensor"] == s)
            for s in {r["sensor"] for r in history}
        }
        assert {key: start for key, (start, _) in shown(tmp_path / "current", "current").items()} == tops
    assert shown(tmp_path / "history", "history") == denoted(copies["a"]).bag()
    is_latest(shown(tmp_path / "current", "current"), copies["a"])


def test_tables_are_read_by_spark_duckdb_and_polars(spark, tmp_path):
    copies = copies_of(Random(2), 1)
    put(tmp_path / "in", Random(1), copies, 1)(0)
    merged = ab.merge(ab.folder(spark, tmp_path / "in"), **ELEMENTS)
    ab.wait(
        write_table(merged, tmp_path / "t", kind="history", checkpoint=tmp_path / "c", available_now=True)
    )
    table = DeltaTable(tmp_path / "t")
    events = len(denoted(copies["a"]).rows)
    frame = spark.createDataFrame(table.to_pyarrow_table())
    assert frame.count() == events
    assert frame.schema["valid_to"].dataType.simpleString() == "bigint"
    arrow = table.to_pyarrow_table()
    assert (
        duckdb.sql("select count(*), count(distinct level) from arrow where sensor >= 0").fetchall()[0][0]
        == events
    )
    assert pl.scan_delta(str(tmp_path / "t")).filter(pl.col("level") != "").collect().height == events
    del arrow


TYPED = (
    "replica string, at timestamp, id int, `dot.ted name` string, price decimal(20,4), day date, "
    "local timestamp_ntz, raw binary, tags array<struct<n:int,t:timestamp>>, "
    "more map<string,array<double>>, flag boolean, tiny tinyint"
)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_types_survive_from_spark_to_the_table_and_back(spark, tmp_path, zone):
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        at = dt.datetime(2026, 3, 8, 7, 30, tzinfo=dt.UTC)
        full = {
            "replica": "a",
            "at": at,
            "id": 1,
            "dot.ted name": "x",
            "price": Decimal("1234567890123456.7891"),
            "day": dt.date(1960, 2, 29),
            "local": dt.datetime(2026, 3, 7, 2, 30),
            "raw": b"\x00\xff",
            "tags": [{"n": 1, "t": at}, None],
            "more": [("k", [1.5, None])],
            "flag": True,
            "tiny": -7,
        }
        stamp = pa.timestamp("us", "UTC")
        schema = pa.schema(
            [
                ("replica", pa.string()),
                ("at", stamp),
                ("id", pa.int32()),
                ("dot.ted name", pa.string()),
                ("price", pa.decimal128(20, 4)),
                ("day", pa.date32()),
                ("local", pa.timestamp("us")),
                ("raw", pa.binary()),
                ("tags", pa.list_(pa.struct([("n", pa.int32()), ("t", stamp)]))),
                ("more", pa.map_(pa.string(), pa.list_(pa.float64()))),
                ("flag", pa.bool_()),
                ("tiny", pa.int8()),
            ]
        )
        (tmp_path / "in").mkdir()
        empty = {"replica": "a", "at": at + dt.timedelta(minutes=1), "id": 2}
        pq.write_table(pa.Table.from_pylist([full, empty], schema), tmp_path / "in" / "1.parquet")
        rows = spark.readStream.schema(TYPED).parquet(str(tmp_path / "in"))
        merged = ab.merge(
            rows, replica="replica", start="at", duration="1 hour", disorder="1 hour", lossy=False
        )
        for kind in ("history", "current"):
            query = write_table(
                merged,
                tmp_path / kind,
                kind=kind,
                key="id" if kind == "current" else (),
                checkpoint=tmp_path / f"{kind}-checkpoint",
                available_now=True,
            )
            ab.wait(query)
            names = [name for name in schema.names if name not in ("replica", "at")]
            got = DeltaTable(tmp_path / kind).to_pyarrow_table().sort_by("id")
            assert got.select(names).cast(pa.schema([schema.field(name) for name in names])).to_pylist() == [
                {name: full[name] for name in names},
                {name: empty.get(name) for name in names},
            ]
            assert got.column("valid_from").to_pylist() == [full["at"], empty["at"]]
            assert got.schema.field("valid_from").type == stamp
            frame = spark.createDataFrame(got)
            assert frame.select("`dot.ted name`", "price").first().asDict()["price"] == full["price"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_deleted_rows_of_a_table_are_not_current(spark, tmp_path):
    lines = [("i", 1, "a", 1), ("i", 2, "b", 1), ("u", 1, "c", 3), ("d", 2, "b", 4), ("i", 3, "z", 90)]
    schema = pa.schema([("op", pa.string()), ("id", pa.int64()), ("v", pa.string()), ("at", pa.int64())])
    (tmp_path / "in").mkdir()
    pq.write_table(
        pa.Table.from_pylist([dict(zip(schema.names, line, strict=True)) for line in lines], schema),
        tmp_path / "in" / "1.parquet",
    )
    rows = spark.readStream.schema("op string, id long, v string, at long").parquet(str(tmp_path / "in"))
    merged = ab.merge_changes(rows, key="id", time="at", disorder=10)
    query = write_table(
        merged,
        tmp_path / "t",
        kind="current",
        key="id",
        open_only=True,
        checkpoint=tmp_path / "c",
        available_now=True,
    )
    ab.wait(query)
    rows = DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["v"], row["valid_from"]) for row in rows] == [(1, "c", 3), (3, "z", 90)]


def test_rows_that_are_refused_are_set_aside(spark, tmp_path):
    (tmp_path / "in").mkdir()
    rows = [{"at": 1, "v": "a"}, {"at": None, "v": "b"}]
    pq.write_table(
        pa.Table.from_pylist(rows, pa.schema([("at", pa.int64()), ("v", pa.string())])),
        tmp_path / "in" / "1.parquet",
    )
    feed = spark.readStream.schema("at long, v string").parquet(str(tmp_path / "in"))
    merged = ab.merge(feed, start="at", disorder=1)
    query = write_table(
        merged,
        tmp_path / "t",
        kind="history",
        checkpoint=tmp_path / "c",
        quarantine=tmp_path / "no",
        available_now=True,
    )
    ab.wait(query)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().column("v").to_pylist() == ["a"]
    [file] = (tmp_path / "no").iterdir()
    assert "column 'at' is null" in file.read_text()


def test_what_is_wrong_with_a_table_is_told_as_it_was_found(spark, tmp_path):
    folder = tmp_path / "in" / "a"
    folder.mkdir(parents=True)
    low = {"sensor": 1, "level": "low"}

    def run():
        merged = ab.merge(ab.folder(spark, tmp_path / "in"), **ELEMENTS)
        return write_table(
            merged, tmp_path / "t", kind="history", checkpoint=tmp_path / "c", available_now=True
        )

    pq.write_table(rows_of([Insert(low, 1, 5)]), folder / "1.parquet")
    ab.wait(run())
    DeltaTable(tmp_path / "t").delete()
    pq.write_table(rows_of([Adjust(low, 1, 5, 9), Stable(20)]), folder / "2.parquet")
    query = run()
    with pytest.raises(TableError, match="the table does not have it") as caught:
        ab.wait(query)
    assert "Restore the last version" in caught.value.__notes__[0]


def test_what_cannot_be_a_table_is_refused_before_the_query_starts(spark, tmp_path):
    feed = spark.readStream.schema("kind string, at timestamp, v int").parquet(str(tmp_path))
    with pytest.raises(TableError, match="these have no column 'start'"):
        write_table(feed, tmp_path / "t", kind="history", checkpoint=tmp_path / "c")
    merged = ab.merge(
        feed.selectExpr("at", "at - timestamp'2026-01-01 00:00:00' as span"), start="at", disorder="1 day"
    )
    with pytest.raises(TableError, match="column 'span' is duration"):
        write_table(merged, tmp_path / "t", kind="history", checkpoint=tmp_path / "c")
    fine = ab.merge(feed.drop("kind"), start="at", disorder="1 day")
    for wrong, what in (
        ({"kind": "table"}, "a kind of table is one of elements, current, history, 'table' is none"),
        ({"kind": "history", "key": "v"}, "are of tables of kind 'current'"),
        ({"kind": "current", "key": "w"}, "'w' is none"),
        ({"kind": "history", "available_now": True, "trigger": "1 second"}, "not both"),
        ({"kind": "history", "compact_every": 0}, "compact_every is 1 or more"),
        ({"kind": "history", "keep": 3}, "keep is a length of time"),
    ):
        with pytest.raises(ValueError, match=what):
            write_table(fine, tmp_path / "t", checkpoint=tmp_path / "c", **wrong)
    places = {"path": tmp_path / "t", "checkpoint": tmp_path / "c", "quarantine": tmp_path / "q"}
    for place in places:
        with pytest.raises(ValueError, match="'s3://lake/t' is an address of s3"):
            write_table(fine, kind="history", **places | {place: "s3://lake/t"})
        with pytest.raises(ValueError, match="'s3://lake/t' is an address of s3"):
            ab.write_folder(fine, **places | {place: "s3://lake/t"})
    (tmp_path / "old" / "offsets").mkdir(parents=True)
    (tmp_path / "old" / "offsets" / "0").touch()
    with pytest.raises(TableError, match="has written to something else than a table"):
        write_table(fine, tmp_path / "t", kind="history", checkpoint=tmp_path / "old")
    assert not (tmp_path / "t").exists()
