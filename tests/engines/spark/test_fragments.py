"""Several fragments in one query: the key changes, and a stable waits for every shard before it."""

import pyarrow as pa
import pyarrow.parquet as pq
from element_rows import element_rows, meant_by, relation_of

from anabranch import Insert, Stable, difference
from anabranch import spark as ab
from anabranch.engines.spark.fragment import Fragment
from anabranch.engines.spark.merge import spark_schema
from anabranch.engines.spark.stages import packed, repacked, run, run_last
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.shards import shard_ids
from anabranch.engines.spark.transport.unpacking import Unpacking
from anabranch.model.output_policy import FinalOnly, FirstThenFinal
from anabranch.rows.layout import Layout


def test_a_fragment_follows_another_whose_shards_are_its_channels(spark, tmp_path):
    """The first lets out what is final, each shard at its pace; the second tells apart by a column."""
    random_rows = [Insert({"value": f"v{n % 17}"}, n, n + 3 + n % 11) for n in range(200)]
    stream = [*random_rows[:120], Stable(100), *random_rows[120:], Stable(2**63 - 1)]
    (tmp_path / "in").mkdir()
    for number, (begin, end) in enumerate(((0, 60), (60, 150), (150, len(stream)))):
        part = stream[begin:end]
        table = pa.concat_tables([element_rows(part, name) for name in ("a", "b")])
        table = table.append_column("n", pa.array([*range(begin, end)] * 2))
        pq.write_table(
            table.append_column("room", pa.array(["r"] * len(table))), tmp_path / "in" / f"{number}.parquet"
        )
    schema = (
        "kind string, start long, end long, old_end long, value string, replica string, n long, room string"
    )
    rows = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    layout = Layout("start", "end", "old_end", None, "kind", "replica", None, "n", ("value", "room"))
    ids = shard_ids(2)
    first = run(
        packed(rows, Packing(layout, 2, 50, ordered=True), ids), Fragment(policy=FinalOnly()), ids, "first"
    )
    again = repacked(first, ("value",), ids)
    unpacking = Unpacking(pa.schema([("value", pa.string()), ("room", pa.string())]), pa.int64(), True, 1)
    columns = spark_schema(rows.schema, unpacking, "start", ["value", "room"], FirstThenFinal())
    second = Fragment(identity=("value",), channels=2)
    out = run_last(again, second, ids, "second", unpacking, columns)
    query = ab.write_folder(out, tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True)
    ab.wait(query)
    meant = [
        Insert({**dict(e.payload), "room": "r"}, e.start, e.end) if isinstance(e, Insert) else e
        for e in stream
    ]
    assert difference(relation_of(tmp_path / "out"), meant_by(meant)) is None
    assert not list((tmp_path / "out").glob("_quarantine/*"))
    assert set(query.lastProgress["observedMetrics"]) == {"first", "second"}
