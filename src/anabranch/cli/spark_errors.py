"""What Spark raises, as errors of this command line: what is wrong in a line, and where the rest is."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def spark_errors_as_ours(log: Path | None = None) -> Iterator[None]:
    """Errors of Spark inside become errors that `main` shows; ``log`` is where Spark says more.

    Where it says why Java ended, that is told; a log in a temporary folder, which is gone with it, is not
    pointed to.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from anabranch.engines.spark.query.failure import QueryError, failure

    _hush()
    try:
        yield
    except OSError as error:
        if log is not None and any(str(log) in note for note in getattr(error, "__notes__", [])):
            raise _did_not_start(error, log) from None
        raise
    except (PySparkException, Py4JError, QueryError) as error:
        ours = error if isinstance(error, QueryError) else failure(error)
        if not isinstance(ours, QueryError):
            raise ours from None
        words = ValueError(f"Spark could not do this: {ours}")
        for note in getattr(ours, "__notes__", []):
            words.add_note(note)
        if log is not None and not _is_passing(log):
            words.add_note(f"What Spark said is in {log}.")
        raise words from None


def _did_not_start(error: OSError, log: Path) -> OSError:
    """The error with what the log gives as the cause."""
    causes = _CAUSES.findall(log.read_text(errors="replace")) if log.exists() else []
    told = OSError(str(error))
    if causes:
        told.add_note(f"It said: {''.join(causes[-1])}")
    for note in error.__notes__:
        if not _is_passing(log) or str(log) not in note:
            told.add_note(note)
    return told


_CAUSES = re.compile(r"^Exception in thread .*?: (.*)$|^(.*)\nError: Could not create the Java", re.MULTILINE)


def _is_passing(log: Path) -> bool:
    """A log is in a folder that `tempfile` made, and that nobody will see."""
    folder = log.parent
    return folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith(tempfile.gettempprefix())


def _hush() -> None:
    """Keep PySpark from printing what it also raises: a traceback at Ctrl-C, an error as a page of JSON."""
    from pyspark.logger import PySparkLogger

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)  # which logs interrupted calls as the root
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname
