"""The set-up is one in which Spark runs: Java, PySpark and the Python of its workers fit together."""


def test_a_python_worker_of_spark_sees_the_identities_we_see(spark):
    import pyarrow as pa

    from anabranch.model.identity import identities

    def with_identity(batches):
        for batch in batches:
            low = pa.array(identities(batch)[:, 0].view("int64"))
            yield pa.RecordBatch.from_arrays([low], names=["low"])

    rows = [(i, f"reading {i}") for i in range(5)]
    frame = spark.createDataFrame(rows, "id long, text string")
    seen = [row.low for row in frame.mapInArrow(with_identity, "low long").collect()]
    here = pa.RecordBatch.from_pylist([{"text": text, "id": number} for number, text in rows])
    assert sorted(seen) == sorted(identities(here)[:, 0].view("int64").tolist())
