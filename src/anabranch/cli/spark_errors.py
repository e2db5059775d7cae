"""What Spark raises, as errors of this command line: what is wrong in a line, and where the rest is."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def told_as_ours(log: Path | None = None) -> Iterator[None]:
    """Errors of Spark inside become errors that `main` shows; ``log`` is where Spark says more."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from anabranch.engines.spark.failure import QueryError, failure

    _hush()
    try:
        yield
    except (PySparkException, Py4JError, QueryError) as error:
        ours = error if isinstance(error, QueryError) else failure(error)
        if not isinstance(ours, QueryError):
            raise ours from None
        words = ValueError(f"Spark could not do this: {ours}")
        for note in getattr(ours, "__notes__", []):
            words.add_note(note)
        if log is not None:
            words.add_note(f"What Spark said is in {log}.")
        raise words from None


def _hush() -> None:
    """Keep PySpark from printing what it also raises: a traceback at Ctrl-C, an error as a page of JSON."""
    from pyspark.logger import PySparkLogger

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)  # which logs interrupted calls as the root
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname
