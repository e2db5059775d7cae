"""What Spark logs of every query though nothing is wrong is not logged, and all else is."""

import pytest

LEFT_OUT = [
    "spark.sql.adaptive.enabled is not supported in streaming DataFrames/Datasets and will be disabled.",
    "Disabling AQE since AQE is not supported in stateful workloads.",
    "Value state head doesn't contain a value.",
    "No more data to read from the socket",
]
KEPT = ["Value state head cannot be read", "Lost task 0.0 in stage 1.0", "spark.sql.adaptive.enabled is off"]


@pytest.fixture
def is_logged(spark):
    """Whether a session logs a message at a level."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j
    spark.sparkContext.setLogLevel("WARN")
    logger = log4j.LogManager.getLogger("org.apache.spark.Something")
    yield lambda level, message: logger.isEnabled(getattr(log4j.Level, level), None, message)
    spark.sparkContext.setLogLevel("OFF")


def test_a_session_leaves_out_the_lines_of_every_query_and_logs_all_others(is_logged):
    assert not any(is_logged("WARN", message) for message in LEFT_OUT)
    assert all(is_logged(level, message) for message in KEPT for level in ("WARN", "ERROR"))


def test_another_session_of_the_process_leaves_out_the_same_lines_once(spark):
    from anabranch import spark as ab

    context = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager.getContext(False)
    before = context.getConfiguration().getFilter().toString()
    ab.session("local[2]", shards=2)
    assert context.getConfiguration().getFilter().toString() == before
