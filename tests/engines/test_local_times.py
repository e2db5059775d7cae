"""A time that names no zone is one instant through every door: a local time of the zone of its column."""

import io
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch as ab
from anabranch import Insert, Stable
from anabranch.connectors.kafka.formats import Arrow, Avro

LOCAL = [datetime(2026, 3, 1, 10), datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30)]
MEANT = [datetime(2026, 3, 1, 9), datetime(2026, 3, 29, 1, 30), datetime(2026, 10, 25, 0, 30)]
MICROS = [int(one.replace(tzinfo=UTC).timestamp()) * 10**6 for one in MEANT]
"""In Berlin; clocks leave out the second, and show the third twice."""
COLUMNS = {"at": "timestamp[us, tz=Europe/Berlin]", "seen": "list<timestamp[us, tz=Europe/Berlin]>"}
TABLE = pa.table(
    {"at": pa.array(LOCAL, pa.timestamp("us")), "seen": pa.array([[one] for one in LOCAL])},
)
SOURCE = ab.source("s", COLUMNS, start="at", disorder="1 day")


def read(stream, given):
    """The start and the moments in the payload of each event."""
    return sorted(
        (one.start, int(one.payload["seen"][0].timestamp()) * 10**6)
        for batch in ab.run(stream, {"s": given})
        for one in batch.elements()
        if isinstance(one, Insert)
    )


DOORS = {
    "rows": lambda _: TABLE.to_pylist(),
    "a table": lambda _: TABLE,
    "milliseconds": lambda _: TABLE.set_column(0, "at", TABLE["at"].cast(pa.timestamp("ms"))),
    "batches": lambda _: TABLE.to_batches(),
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "Parquet": lambda path: pq.write_table(TABLE, path / "in.parquet") or path / "in.parquet",
    "a folder": lambda path: pq.write_table(TABLE, path / "in.parquet") or path,
    "Arrow": lambda path: arrow(path / "in.arrow"),
    "JSON lines": lambda path: lines(path / "in.jsonl"),
}


def arrow(path):
    with pa.ipc.new_file(path, TABLE.schema) as file:
        file.write_table(TABLE)
    return path


def lines(path):
    texts = [one.isoformat() for one in LOCAL]
    path.write_text("".join(f'{{"at": "{one}", "seen": ["{one}"]}}\n' for one in texts))
    return path


@pytest.mark.parametrize("door", DOORS)
def test_a_local_time_is_in_the_zone_of_its_column_through_every_door(door, tmp_path):
    given = DOORS[door](tmp_path)
    assert read(SOURCE, given) == sorted(zip(MICROS, MICROS, strict=True))


@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_a_list_of_moments_in_a_row_is_of_the_zone_in_any_form(form):
    rows = [{"at": one, "seen": form([one])} for one in LOCAL]
    assert read(SOURCE, rows) == sorted(zip(MICROS, MICROS, strict=True))


def test_a_row_may_have_moments_with_a_zone_and_without():
    rows = [{"at": at, "seen": [LOCAL[0]]} for at in (LOCAL[0], MEANT[0].replace(tzinfo=UTC))]
    assert read(SOURCE, rows) == [(MICROS[0], MICROS[0])] * 2


def test_elements_have_local_times_in_the_zones_of_their_columns(tmp_path):
    stream = ab.source("s", {"seen": COLUMNS["seen"]})
    elements = [Insert({"seen": [one]}, n, n + 1) for n, one in enumerate(LOCAL)]
    as_table = pa.table(
        {
            "kind": ["insert"] * 3,
            "start": pa.array([0, 1, 2]),
            "end": pa.array([1, 2, 3]),
            "seen": TABLE["seen"],
        }
    )
    pq.write_table(as_table, tmp_path / "in.parquet")
    for given in ([*elements, Stable(9)], as_table, tmp_path / "in.parquet"):
        assert [micros for _, micros in read(stream, given)] == MICROS


def test_elements_of_one_column_may_name_a_zone_or_none():
    stream = ab.source("s", {"seen": COLUMNS["seen"]})
    both = [Insert({"seen": [LOCAL[0]]}, 1, 2), Insert({"seen": [MEANT[0].replace(tzinfo=UTC)]}, 2, 3)]
    assert [micros for _, micros in read(stream, both)] == [MICROS[0]] * 2


@pytest.mark.parametrize("as_elements", [False, True])
def test_times_of_96_bits_are_instants_of_utc(as_elements, tmp_path):
    table, stream = TABLE, SOURCE
    if as_elements:
        table = pa.table({"kind": ["insert"] * 3, "start": [1, 2, 3], "end": [9] * 3, "seen": TABLE["seen"]})
        stream = ab.source("s", {"seen": COLUMNS["seen"]})
    pq.write_table(table, tmp_path / "in.parquet", use_deprecated_int96_timestamps=True)
    plain = [int(one.replace(tzinfo=UTC).timestamp()) * 10**6 for one in LOCAL]
    assert [micros for _, micros in read(stream, tmp_path / "in.parquet")] == plain


def test_two_names_of_utc_are_one_clock():
    one, other = (
        ab.source(name, {"at": f"timestamp[us, tz={zone}]", "n": "int64"}, start="at", disorder="1 minute")
        for name, zone in (("s", "UTC"), ("t", "Utc"))
    )
    rows = [{"at": MEANT[0], "n": 1}]
    for stream in (ab.union(one, other), one.join(other, on="n", within=0)):
        assert sum(map(len, ab.run(stream, {"s": rows, "t": rows}))) > 1


def test_columns_that_are_taken_from_local_times_are_in_the_zone_that_is_given():
    assert ab.columns(TABLE.select(["at"]), zone="Europe/Berlin").types == [
        pa.timestamp("us", "Europe/Berlin")
    ]
    declared = ab.columns(TABLE, schema=COLUMNS)
    assert read(ab.source("s", declared, start="at", disorder="1 day"), TABLE)[0] == (MICROS[0], MICROS[0])


def test_local_times_in_records_are_in_the_zone_of_their_column():
    import fastavro

    columns = SOURCE.node.columns
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as stream:
        stream.write_table(TABLE)
    moment = {"type": "long", "logicalType": "local-timestamp-micros"}
    fields = [{"name": "at", "type": moment}, {"name": "seen", "type": {"type": "array", "items": moment}}]
    schema = {"type": "record", "name": "r", "fields": fields}
    values = []
    for row in TABLE.to_pylist():
        data = io.BytesIO()
        fastavro.schemaless_writer(data, schema, row)
        values.append(data.getvalue())
    import json

    for found in (Arrow().read([sink.getvalue()], columns), Avro(json.dumps(schema)).read(values, columns)):
        assert found.refused == []
        assert found.rows.column("at").cast(pa.int64()).to_pylist() == MICROS
        assert found.rows.column("seen").flatten().cast(pa.int64()).to_pylist() == MICROS


def test_pandas_exports_its_index_beside_local_times():
    frame = pd.DataFrame({"at": LOCAL, "seen": [[one] for one in LOCAL]}, index=[3, 1, 2])
    assert read(SOURCE, frame) == sorted(zip(MICROS, MICROS, strict=True))


def test_local_times_that_a_function_gives_are_in_the_zone_of_their_column():
    nothing = ab.source("s", {"n": "int64"})
    moved = [
        nothing.apply(rows=lambda _: {"seen": [LOCAL[0]]}, schema={"seen": COLUMNS["seen"]}),
        nothing.apply(
            lambda rows: TABLE.select(["seen"]).to_batches()[0][: len(rows)], {"seen": COLUMNS["seen"]}
        ),
    ]
    for stream in moved:
        assert read(stream, [Insert({"n": 1}, 0, 1), Stable(9)]) == [(0, MICROS[0])]
