"""Errors of workers reach the driver as text inside other text, and are made again from it."""

import pytest

from anabranch import Insert
from anabranch.engines.spark.query.checkpoint import CheckpointError
from anabranch.engines.spark.query.failure import BEGIN, QueryError, WorkerError, errors_to_driver, failure
from anabranch.engines.spark.transport.parcel import ParcelError, from_bytes
from anabranch.kernels.store.saved import StateFormatError
from anabranch.model.identity import UnsupportedTypeError
from anabranch.model.schema import SchemaError
from anabranch.model.validity import BrokenPropertyError, InvalidElementError, Rule, Violation

JAVA = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage
failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 (127.0.0.1):
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
{error}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:6)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Driver stacktrace: SQLSTATE: XXKST"""


def through_spark(error: BaseException) -> BaseException:
    """What the driver makes of an error that a worker raised."""
    with pytest.raises(WorkerError) as told, errors_to_driver():
        raise error
    text = JAVA.format(error=f"anabranch.engines.spark.query.failure.WorkerError: {told.value}")
    return failure(RuntimeError(text))


VIOLATION = Violation(Rule.INSERT_BEHIND_STABLE, 7, Insert({"v": "é ⟧"}, 1, 5), 9, "east")


@pytest.mark.parametrize(
    "error",
    [
        ParcelError("a parcel begins with b'x'"),
        StateFormatError("the state has version 2"),
        SchemaError("two columns\nare called 'v'"),
        UnsupportedTypeError("column 'v'"),
        InvalidElementError(VIOLATION),
        BrokenPropertyError(VIOLATION),
        ValueError("plain"),
        TypeError("plain"),
        OverflowError("too far"),
        FileNotFoundError("nowhere"),
        KeyError("k"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_ours_is_made_again_with_its_notes(error):
    error.add_note("Do this: ⟦anabranch⟧.")
    made = through_spark(error)
    assert type(made) is type(error)
    assert made.args == (str(error),)
    assert made.__notes__ == error.__notes__


def test_an_error_of_ours_can_be_caught_as_what_it_is():
    with pytest.raises(ParcelError, match="begins with"):
        raise through_spark(_raised(lambda: from_bytes(b"nonsense")))


def _raised(action) -> BaseException:
    with pytest.raises(ValueError) as found:  # noqa: PT011
        action()
    return found.value


def test_an_error_of_another_library_keeps_its_words():
    class LibraryError(ValueError):
        pass

    made = through_spark(LibraryError("disk on fire"))
    assert isinstance(made, QueryError)
    assert str(made) == "disk on fire"


def test_what_people_read_in_the_log_comes_before_the_marks():
    text = str(WorkerError(ValueError("element at 7 is behind the frontier 12")))
    assert text.startswith("element at 7 is behind the frontier 12\n" + BEGIN)


def test_what_is_no_error_of_ours_passes_through():
    with pytest.raises(ZeroDivisionError), errors_to_driver():
        _ = 1 // 0


def test_what_a_worker_raised_is_the_cause():
    cause = ValueError("x")
    with pytest.raises(WorkerError) as told, errors_to_driver():
        raise cause
    assert told.value.__cause__ is cause


def test_of_other_errors_the_innermost_cause_is_told():
    text = """Query terminated with exception
org.apache.spark.SparkException: Job aborted
Caused by: java.io.IOException: cannot commit
Caused by: java.nio.file.NoSuchFileException: /somewhere/1.jar
\tat org.apache.spark.sql.execution.streaming.state.RocksDB.load(RocksDB.scala:92)"""
    made = failure(RuntimeError(text))
    assert isinstance(made, QueryError)
    assert str(made) == "/somewhere/1.jar"


@pytest.mark.parametrize(
    ("words", "kind", "told"),
    [
        (
            "java.io.FileNotFoundException: File file:/c/state/0/0/1.zip is gone",
            CheckpointError,
            "/c/state/0/0/1",
        ),
        ("IllegalStateException: Incomplete log file", CheckpointError, "Incomplete log file"),
        (
            "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.",
            CheckpointError,
            "one query at a time",
        ),
        (
            "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator",
            CheckpointError,
            "works in another way",
        ),
        ("java.io.IOException: No space left on device", OSError, "is full: No space left on device"),
        (
            "[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing",
            OSError,
            "not be written to: [CANNOT",
        ),
    ],
)
def test_errors_of_spark_that_one_can_do_something_about_are_ours(words, kind, told):
    made = failure(
        RuntimeError(f"[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {words}")
    )
    assert type(made) is kind
    assert told in str(made)
    assert made.__notes__


def test_a_full_disk_is_found_in_the_causes_that_spark_keeps_apart():
    error = RuntimeError("[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files")
    error._stackTrace = "org.apache.spark.SparkException\n\tat a.b\nCaused by: No space left on device"
    assert "is full: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT]" in str(failure(error))


def test_text_without_a_cause_is_told_by_its_first_line():
    assert str(failure(RuntimeError("the query was stopped\nat once"))) == "the query was stopped"
    assert str(failure(RuntimeError(""))) == ""
