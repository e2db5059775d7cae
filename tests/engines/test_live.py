"""Plans over inputs that are read as they arrive, each by a thread; nothing here waits for a clock."""

import gc
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import (
    FOREVER,
    Batch,
    Insert,
    InvalidElementError,
    Relation,
    Stable,
    difference,
)
from anabranch.engines.embedded.live import live
from anabranch.testing.workload import Workload


def readings(*starts: int) -> list[Insert]:
    return [Insert({"reading": start}, start, start + 1) for start in starts]


def relation_of(batches) -> Relation:
    relation = Relation()
    for batch in batches:
        relation.apply(batch)
    return relation


def starts_of(batches) -> list[int]:
    return [e.start for batch in batches for e in batch.elements() if isinstance(e, Insert)]


def job_of(names, **more):
    return ab.merge({name: ab.source(name, **more) for name in names}).open()


def merge(inputs, job=None, **settings):
    """What comes of a merge of inputs as they arrive."""
    running = live((job or job_of(inputs)).passes, inputs, **settings)
    return (output[""] for output in running)


class Feed:
    """An input whose items come when the test says so, and that says how far it has been read."""

    def __init__(self, *items):
        self.items = list(items)
        self.handed = threading.Semaphore(0)
        self.asked = threading.Semaphore(0)
        self.reads = 0
        self.closed = threading.Event()

    def __iter__(self):
        return self

    def __next__(self):
        self.reads += 1
        self.asked.release()
        self.handed.acquire()
        if not self.items:
            raise StopIteration
        item = self.items.pop(0)
        if isinstance(item, Exception):
            raise item
        return item

    def close(self):
        self.closed.set()


def open_feed(*items) -> Feed:
    feed = Feed(*items)
    feed.handed.release(len(items) + 1)
    return feed


def test_replicas_that_are_read_at_once_give_the_relation_of_each():
    workload = Workload(events=3000, seed=2, active=100, revisions=0.2)
    replicas = {str(n): list(workload.replica(n)) for n in range(3)}
    output = list(merge({name: iter(batches) for name, batches in replicas.items()}))
    assert all(len(batch) for batch in output)
    assert difference(relation_of(output), relation_of(replicas["0"])) is None


def test_batches_are_merged_in_the_order_in_which_they_arrive():
    east, west = Feed(readings(1), readings(4)), Feed(readings(2), readings(3))
    merged = merge({"east": east, "west": west})
    for feed, start in ((east, 1), (west, 2), (west, 3), (east, 4)):
        feed.handed.release()
        assert starts_of([next(merged)]) == [start]
    merged.close()


def test_output_does_not_wait_for_inputs_that_say_nothing():
    silent, east = Feed(), open_feed(readings(1))
    merged = merge({"silent": silent, "east": east})
    assert starts_of([next(merged)]) == [1]
    merged.close()


def test_an_input_is_read_no_further_ahead_than_may_wait():
    fast = open_feed(*(readings(start) for start in range(10)))
    slow = Feed()
    merged = merge({"fast": fast, "slow": slow}, waiting=3)
    assert starts_of([next(merged)]) == [0]
    for _ in range(4):  # the one that was taken, and as many as may wait
        fast.asked.acquire()
    assert starts_of([next(merged)]) == [1]
    fast.asked.acquire()
    merged.close()
    assert fast.closed.wait()
    assert fast.reads == 5


def test_leaving_the_loop_closes_every_input_that_waits_for_room():
    closed = threading.Event()

    def endless():
        try:
            start = 0
            while True:
                yield readings(start)
                start += 1
        finally:
            closed.set()

    merged = merge({"east": endless()}, waiting=1)
    next(merged)
    merged.close()
    assert closed.wait()
    assert next(merged, None) is None


def test_an_input_that_blocks_is_closed_when_it_returns():
    blocked, east = Feed(readings(9)), open_feed(readings(1))
    job = job_of(["blocked", "east"])
    merged = merge({"blocked": blocked, "east": east}, job)
    next(merged)
    blocked.asked.acquire()
    merged.close()
    assert not blocked.closed.is_set()
    blocked.handed.release()
    assert blocked.closed.wait()
    assert blocked.reads == 1
    assert job.status().sources["blocked"].received == 0


def test_a_merge_that_is_forgotten_closes_its_inputs():
    feed = open_feed(*(readings(start) for start in range(10)))
    merged = merge({"east": feed}, waiting=1)
    next(merged)
    del merged
    gc.collect()
    assert feed.closed.wait()


def test_an_error_in_the_loop_closes_the_inputs():
    feed = open_feed(*(readings(start) for start in range(10)))

    def failing_loop():
        for _ in merge({"east": feed}, waiting=1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failing_loop()
    gc.collect()
    assert feed.closed.wait()


def test_a_blocked_input_does_not_keep_the_process_alive():
    code = (
        "import threading\nimport anabranch as ab\nfrom anabranch.engines.embedded.live import live\n"
        "def blocked():\n    threading.Event().wait()\n    yield []\n"
        "inputs = {'blocked': blocked(), 'east': [[ab.Insert({'a': 1}, 1, 2)]]}\n"
        "job = ab.merge({name: ab.source(name) for name in inputs}).open()\n"
        "print(len(next(live(job.passes, inputs))['']))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert (result.stdout, result.returncode) == ("1\n", 0), result.stderr


def test_a_merge_goes_on_after_the_elements_that_its_status_counts():
    workload = Workload(events=500, seed=4, active=50, revisions=0.3)
    whole = {str(n): Batch.from_arrow(_table(workload.replica(n))) for n in range(2)}
    job = job_of(whole)
    output = []
    for step in range(1, 50):
        rest = {name: batch[job.passes.received[name] :] for name, batch in whole.items()}
        merged = merge({name: slices(batch, 7) for name, batch in rest.items()}, job, waiting=2)
        for taken, batch in enumerate(merged):
            output.append(batch)
            if taken == step:
                break
        else:
            break
        merged.close()
    else:
        pytest.fail("the merge never came to its end")
    assert difference(relation_of(output), relation_of(workload.replica(0))) is None
    assert job.passes.received == {name: len(batch) for name, batch in whole.items()}


def _table(batches) -> pa.Table:
    return pa.Table.from_batches([batch.to_arrow() for batch in batches])


def slices(batch: Batch, rows: int):
    for begin in range(0, len(batch), rows):
        yield batch[begin : begin + rows]


def test_an_input_that_raises_is_detached_and_its_error_comes_when_the_others_have_ended():
    whole = [[*readings(1, 2), Stable(2)], [*readings(3), Stable(FOREVER)]]
    output = []
    job = job_of(["east", "west"])

    def broken():
        yield readings(1)
        raise OSError("the line is dead")

    with pytest.raises(OSError, match="the line is dead") as raised:
        output.extend(merge({"east": broken(), "west": whole}, job))
    assert sorted(starts_of(output)) == [1, 2, 3]
    assert "'east' failed" in raised.value.__notes__[0]
    assert job.status().outputs[""] == FOREVER


def test_of_several_failures_the_first_is_raised_and_names_the_others():
    east, west = Feed(OSError("first")), Feed(OSError("second"))
    found = []

    def run():
        try:
            list(merge({"east": east, "west": west}))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    east.handed.release()
    assert east.closed.wait()
    west.handed.release()
    thread.join()
    assert len(found) == 1
    assert {"first", "second"} <= {*found[0].args, *_words(found[0].__notes__)}


def _words(notes: list[str]) -> list[str]:
    return [word for note in notes for word in note.replace("'", " ").replace("(", " ").split()]


def test_whoever_asks_to_be_told_of_failures_is_told_and_nothing_is_raised():
    told = []
    inputs = {"east": [readings(1), ValueError], "west": [[*readings(1), Stable(FOREVER)]]}
    output = list(merge(inputs, on_failure=lambda name, error: told.append((name, type(error)))))
    assert starts_of(output) == [1]
    assert told == [("east", TypeError)]


def test_an_input_that_says_what_is_refused_has_failed_and_its_other_elements_are_out():
    job = job_of(["east"], properties=["insert only", "strictly increasing"])
    told = {}
    east = open_feed([*readings(5), *readings(4), *readings(6)], readings(7))
    output = list(merge({"east": east}, job, on_failure=told.__setitem__))
    assert starts_of(output) == [5, 6]
    assert isinstance(told["east"], InvalidElementError)
    assert job.status().refused == {"broken-property": 1}
    assert east.closed.wait()


@pytest.mark.parametrize("form", ["lists", "batches", "record batches", "reader", "table", "batch"])
def test_inputs_come_in_every_form_that_holds_elements(form):
    elements = [*readings(1, 2), Stable(FOREVER)]
    batch = Batch.of(elements)
    table = pa.Table.from_batches([batch.to_arrow()])
    source = {
        "lists": [elements[:1], elements[1:]],
        "batches": [batch],
        "record batches": [batch.to_arrow()],
        "reader": table.to_reader(),
        "table": table,
        "batch": batch,
    }[form]
    output = list(merge({"east": source, "west": [elements]}))
    assert all(isinstance(one, Batch) for one in output)
    assert sorted(starts_of(output)) == [1, 2]


def test_holes_are_counted_for_an_input_that_has_promised_everything_and_ended_first():
    job = job_of(["short", "long"], lossy=True)
    long = Feed(readings(1, 2), [Stable(FOREVER)])
    merged = merge({"short": [[*readings(1), Stable(FOREVER)]], "long": long}, job)
    assert starts_of([next(merged)]) == [1]
    long.handed.release(3)
    assert starts_of(merged) == [2]
    (kernel,) = (kernel for _, _, kernel in job.passes.flow.kernels())
    assert kernel.status().inputs["short"].holes == 1


def test_an_input_is_read_at_least_one_batch_ahead():
    with pytest.raises(ValueError, match="at least 1 piece ahead, not 0"):
        merge({"east": []}, waiting=0)
