"""A plan over live inputs: each is read by a thread of its own, and what arrives first is pushed first.

An input that ends leaves the merges behind it: its end promises nothing. One that raises, or says what is
refused, has failed: it is at its end too, and the others go on.

Memory: what the plan holds, and ``waiting`` pieces of each input.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from anabranch.engines.embedded.inbox import Ended, Inbox
from anabranch.engines.embedded.job import Job
from anabranch.engines.embedded.run import check_inputs
from anabranch.model.batch import Batch
from anabranch.model.validity import InvalidElementError

WAITING = 4
"""Pieces of an input that are read ahead, at most."""


def live(
    job: Job,
    inputs: Mapping[str, Iterable[Any]],
    *,
    waiting: int = WAITING,
    on_failure: Callable[[str, BaseException], object] | None = None,
) -> Generator[dict[str, Batch], None, None]:
    """What comes out of a job, by output, as its sources speak.

    ``on_failure`` is told the source that failed and the error as soon as that happens; without it the first
    error is raised when all others have ended. Closing the generator closes the inputs; the job stays as it
    is after the last piece, and all that came of it has been given out.
    """
    if waiting < 1:
        raise ValueError(f"an input is read at least 1 piece ahead, not {waiting}")
    check_inputs(job, inputs)
    return _live(job, inputs, waiting, on_failure)


def _live(
    job: Job,
    inputs: Mapping[str, Iterable[Any]],
    waiting: int,
    on_failure: Callable[[str, BaseException], object] | None,
) -> Generator[dict[str, Batch], None, None]:
    failures: dict[str, BaseException] = {}
    speaking = set(inputs)
    inbox = Inbox(inputs, waiting)
    try:
        inbox.open()
        while speaking:
            name, said = inbox.take()
            if name not in speaking:
                continue
            output, error = _taken(job, name, said)
            yield from _some(output)
            if error is None and not isinstance(said, Ended):
                continue
            speaking.remove(name)
            inbox.dismiss(name)
            if error is not None and on_failure is None:
                failures[name] = error
            elif error is not None and on_failure is not None:
                on_failure(name, error)
            yield from _some(job.end(name, closes=False))
    finally:
        inbox.close()
    if failures:
        raise _first(failures)


def _taken(job: Job, name: str, said: Any) -> tuple[dict[str, Batch], BaseException | None]:
    """What comes out, and why the input has failed if it has."""
    if isinstance(said, Ended):
        return {}, said.error
    try:
        return job.take(name, said), None
    except InvalidElementError as refused:
        return refused.output or {}, refused
    except (ValueError, TypeError, OverflowError) as refused:
        return {}, refused


def _some(output: Mapping[str, Batch]) -> Generator[dict[str, Batch], None, None]:
    if any(len(batch) for batch in output.values()):
        yield dict(output)


def _first(failures: Mapping[str, BaseException]) -> BaseException:
    (name, error), *others = failures.items()
    error.add_note(f"Source {name!r} failed and was taken for ended; the others went on.")
    for other, too in others:
        error.add_note(f"Source {other!r} failed too: {too!r}")
    return error
