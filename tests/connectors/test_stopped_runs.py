"""Live runs that are stopped, timed and closed, by any thread."""

import json
import signal
import threading
from datetime import timedelta

import pytest

import anabranch as ab
from anabranch import Insert

ROOMS = {"room": "string", "at": "int64"}
WAIT = 60.0


def plan() -> ab.Stream:
    return ab.source("levels", ROOMS, start="at")


def lines(path, *starts):
    with path.open("a") as file:
        file.writelines(json.dumps({"room": "A", "at": at}) + "\n" for at in starts)


def starts_of(batch):
    return [one.start for one in batch.elements() if isinstance(one, Insert)]


class Silent:
    """An iterable that gives what it has, then nothing until it is released."""

    def __init__(self, *items):
        self.items = iter(items)
        self.asked, self.released = threading.Event(), threading.Event()

    def __iter__(self):
        return self

    def __next__(self):
        for item in self.items:
            return item
        self.asked.set()
        self.released.wait(WAIT)
        raise StopIteration


def readers():
    return [one for one in threading.enumerate() if one.name.startswith("anabranch reads")]


def in_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_a_run_that_waits_for_rows_is_stopped_by_another_thread_and_its_threads_end(tmp_path):
    lines(tmp_path / "1.jsonl", 1)
    others = readers()
    run = ab.run(plan(), {"levels": tmp_path}, live=True)
    assert starts_of(next(run)) == [1]
    mine = [thread for thread in readers() if thread not in others]
    assert len(mine) == 1
    stopper = in_thread(run.stop)
    assert next(run, None) is None
    run.stop()
    assert next(run, None) is None
    for thread in [stopper, *mine]:
        thread.join(WAIT)
        assert not thread.is_alive()


def test_a_run_may_be_closed_by_another_thread_while_it_waits():
    silent = Silent([{"room": "A", "at": 1}])
    run = ab.run(plan(), {"levels": silent}, live=True)
    assert starts_of(next(run)) == [1]
    over = []
    reader = in_thread(lambda: over.append(next(run, None)))
    assert silent.asked.wait(WAIT)
    run.close()
    reader.join(WAIT)
    assert over == [None]
    assert next(run, None) is None
    run.close()
    silent.released.set()


def test_what_an_iterable_has_given_before_a_stop_is_used():
    silent = Silent(*([{"room": "A", "at": at}] for at in range(3)))
    run = ab.run(plan(), {"levels": silent}, live=True)
    assert starts_of(next(run)) == [0]
    assert silent.asked.wait(WAIT)
    run.stop()
    assert [starts_of(batch) for batch in run] == [[1], [2]]
    assert run.status().sources["levels"].received == 3
    silent.released.set()


def test_leaving_a_with_closes_the_run():
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield [{"room": "A", "at": 1}]
        finally:
            closed.set()

    with ab.run(plan(), {"levels": endless()}, live=True) as run:
        next(run)
    assert closed.wait(WAIT)
    assert next(run, None) is None


def test_the_handler_of_a_signal_may_stop_a_run(tmp_path):
    lines(tmp_path / "1.jsonl", 1)
    run = ab.run(plan(), {"levels": tmp_path}, live=True)
    before = signal.signal(signal.SIGUSR1, lambda *_: run.stop())
    try:
        assert starts_of(next(run)) == [1]
        in_thread(lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)).join()
        assert next(run, None) is None
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("timeout", [0.01, timedelta(milliseconds=10), "10 ms"])
def test_a_live_run_ends_after_its_timeout(timeout):
    silent = Silent()
    assert list(ab.run(plan(), {"levels": silent}, live=True, timeout=timeout)) == []
    silent.released.set()


def test_a_run_that_is_not_live_is_stopped_between_two_pieces_and_its_sources_are_not_over():
    run = ab.run(plan(), {"levels": [[{"room": "A", "at": at}] for at in range(3)]})
    assert starts_of(next(run)) == [0]
    run.stop()
    assert next(run, None) is None
    assert run.job.push("levels", {"room": "A", "at": 9})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"timeout": 5}, "timed where it is live"),
        ({"timeout": 0, "live": True}, "a timeout is a positive duration, not 0"),
        ({"timeout": "soon", "live": True}, "timeout"),
    ],
)
def test_a_timeout_that_means_nothing_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ab.run(plan(), {"levels": []}, **settings)


def test_rows_that_a_live_iterable_gives_one_by_one_are_gathered():
    silent = Silent(*({"room": "A", "at": at} for at in range(10_000)))
    run = ab.run(plan(), {"levels": silent}, live=True)
    found = []
    while sum(map(len, found)) < 10_000:
        found.append(starts_of(next(run)))
    assert [start for part in found for start in part] == list(range(10_000))
    assert max(map(len, found)) <= 4_096
    assert len(found) < 100
    run.close()
    silent.released.set()
