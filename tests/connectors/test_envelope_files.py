"""Envelopes of Debezium's in files: a line of JSON each, in folders of replicas."""

import json

import msgspec
import pyarrow as pa
import pytest
from connectors.folder_reader import reader

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.folder.reading import FileRange, by_folder, reads
from anabranch.jobs.ends import SourceSection, check_together
from anabranch.jobs.merge_sections import ChangesSection
from anabranch.model.op import Op
from anabranch.model.schema import SchemaError
from anabranch.rows.change_words import spellings
from anabranch.rows.layout import Layout

COLUMNS = pa.schema(
    [("id", pa.int64()), ("v", pa.string()), ("op", pa.string()), ("time", pa.timestamp("us", "UTC"))]
)
LAYOUT = Layout("time", kind="op", payload=("id", "v"), key=("id",), ops=spellings())


def envelope(op, before=None, after=None, **source):
    return json.dumps({"before": before, "after": after, "op": op, "source": {"ts_ms": 5, **source}})


def read(path):
    part = FileRange("east", str(path), 0, envelopes=Debezium())
    return [one for turn in reads([part], COLUMNS, LAYOUT, 100, 1 << 20) for one in turn]


def test_lines_that_are_envelopes_are_changes_and_others_are_refused_with_their_place(tmp_path):
    path = tmp_path / "1.jsonl"
    lines = [
        envelope("r", after={"id": 1, "v": "a"}, snapshot="first"),
        envelope("r", after={"id": 2, "v": "b"}, snapshot="incremental"),
        "",
        envelope("u", {"id": 1, "v": "a"}, {"id": 1, "v": "c"}),
        '{"ts_ms": 7}',
        '{"op": "x"}',
        envelope("d", {"id": 1}),
    ]
    path.write_text("\n".join(lines))
    [found] = read(path)
    assert found.batch.old_end.tolist() == [Op.SNAPSHOT, Op.INCREMENTAL, Op.UPDATE, Op.DELETE]
    assert found.batch.payload.column("v").to_pylist() == ["a", "b", "c", None]
    assert found.batch.start.tolist() == [5_000] * 4
    assert found.sequence.tolist() == [0, 1, 3, 6]
    [refused] = found.refused
    assert refused.place == f"{path}:6"
    assert "an op is one of" in refused.reason


def test_a_file_of_another_format_has_no_envelopes(tmp_path):
    path = tmp_path / "1.parquet"
    pa.parquet.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(SchemaError, match=r"envelopes are JSON lines, and .*1\.parquet is parquet") as caught:
        read(path)
    assert "without format='debezium'" in caught.value.__notes__[0]


def test_a_job_may_read_envelopes_from_a_folder():
    source = SourceSection(path="feeds", values="debezium", schema="id long")
    source.check()
    check_together(source, ChangesSection(key="id", time="time", disorder="1 second"))
    with pytest.raises(ValueError, match="never says how far it has come"):
        check_together(source, ChangesSection(key="id", time="time"))
    for wrong, says in [
        (SourceSection(path="feeds", values="avro", schema="id long"), "values is one of 1 words, 'avro'"),
        (SourceSection(format="json", values="debezium", schema="id long"), "values is for folders"),
        (SourceSection(path="feeds", values="debezium"), "no schema is given"),
    ]:
        with pytest.raises(ValueError, match=says):
            wrong.check()


def test_a_folder_says_that_its_lines_are_envelopes_where_tasks_read_them(tmp_path):
    (tmp_path / "east").mkdir()
    (tmp_path / "east" / "1.jsonl").write_text(envelope("c", after={"id": 1, "v": "a"}) + "\n")
    columns = COLUMNS.append(pa.field("replica", pa.string()))
    form = msgspec.json.encode(Debezium()).decode()
    source = reader(tmp_path, columns=by_folder(columns, added=True), envelopes=form)
    [files] = source.partitions({}, source.latestOffset({}, source.getDefaultReadLimit()))
    [[part]] = files.groups
    assert part.envelopes == Debezium()
