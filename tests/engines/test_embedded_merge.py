"""Inputs merged as they arrive, each read by a thread; nothing here waits for a clock."""

import gc
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

from anabranch import (
    FOREVER,
    Batch,
    Case,
    Fact,
    Insert,
    InvalidElementError,
    Merger,
    Relation,
    Stable,
    difference,
    in_step,
    merge,
)
from anabranch.engines.embedded.in_step import merge_in_step
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


def test_nothing_is_read_before_the_caller_asks_and_all_inputs_are_attached_by_then():
    feed, merger = open_feed(readings(1)), Merger()
    merged = merge({"b": feed, "a": []}, merger)
    assert list(merger.inputs) == ["b", "a"]
    assert feed.reads == 0
    merged.close()


def test_inputs_that_are_attached_already_stay_as_they_are():
    merger = Merger()
    merger.attach("lossy", complete=False)
    merger.attach("late", 5, [Fact.KEYED])
    list(merge({"lossy": [readings(1)], "late": [readings(2)], "new": []}, merger))
    assert not merger.declared["lossy"].complete
    assert Fact.KEYED in merger.declared["late"].properties
    assert merger.declared["new"].complete


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
    merger = Merger()
    merged = merge({"blocked": blocked, "east": east}, merger)
    next(merged)
    blocked.asked.acquire()
    merged.close()
    assert not blocked.closed.is_set()
    blocked.handed.release()
    assert blocked.closed.wait()
    assert blocked.reads == 1
    assert merger.status().inputs["blocked"].elements == 0


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
        "import threading\nfrom anabranch import Insert, merge\n"
        "def blocked():\n    threading.Event().wait()\n    yield []\n"
        "merged = merge({'blocked': blocked(), 'east': [[Insert({'a': 1}, 1, 2)]]})\n"
        "print(len(next(merged)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert (result.stdout, result.returncode) == ("1\n", 0), result.stderr


def test_a_merge_goes_on_after_the_elements_that_its_status_counts():
    workload = Workload(events=500, seed=4, active=50, revisions=0.3)
    whole = {str(n): Batch.from_arrow(_table(workload.replica(n))) for n in range(2)}
    merger = Merger()
    output = []
    for step in range(1, 50):
        counts = merger.status().inputs
        rest = {
            name: batch[counts[name].elements + counts[name].refused if name in counts else 0 :]
            for name, batch in whole.items()
        }
        merged = merge({name: slices(batch, 7) for name, batch in rest.items()}, merger, waiting=2)
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
    assert {name: one.elements for name, one in merger.status().inputs.items()} == {
        name: len(batch) for name, batch in whole.items()
    }


def _table(batches) -> pa.Table:
    return pa.Table.from_batches([batch.to_arrow() for batch in batches])


def slices(batch: Batch, rows: int):
    for begin in range(0, len(batch), rows):
        yield batch[begin : begin + rows]


def test_an_input_that_raises_is_detached_and_its_error_comes_when_the_others_have_ended():
    whole = [[*readings(1, 2), Stable(2)], [*readings(3), Stable(FOREVER)]]
    output = []
    merger = Merger()

    def broken():
        yield readings(1)
        raise OSError("the line is dead")

    with pytest.raises(OSError, match="the line is dead") as raised:
        output.extend(merge({"east": broken(), "west": whole}, merger))
    assert sorted(starts_of(output)) == [1, 2, 3]
    assert "'east' failed after 1 elements" in raised.value.__notes__[0]
    assert merger.frontier == FOREVER
    assert not merger.inputs


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
    merger = Merger(Case.R0)
    told = {}
    east = open_feed([*readings(5), *readings(4), *readings(6)], readings(7))
    output = list(merge({"east": east}, merger, on_failure=told.__setitem__))
    assert starts_of(output) == [5, 6]
    assert isinstance(told["east"], InvalidElementError)
    assert merger.status().inputs["east"].refused == 1
    assert east.closed.wait()


def test_an_input_that_the_caller_detaches_is_read_no_further():
    merger = Merger()
    east, west = open_feed(*(readings(n) for n in range(9))), Feed([*readings(20), Stable(FOREVER)])
    merged = merge({"east": east, "west": west}, merger, waiting=1)
    next(merged)
    merger.detach("east")
    west.handed.release(2)
    assert starts_of(merged) == [20]
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
    merger = Merger()
    for name in ("short", "long"):
        merger.attach(name, complete=False)
    long = Feed(readings(1, 2), [Stable(FOREVER)])
    merged = merge({"short": [[*readings(1), Stable(FOREVER)]], "long": long}, merger)
    assert starts_of([next(merged)]) == [1]
    long.handed.release(3)
    assert starts_of(merged) == [2]
    assert merger.status().inputs["short"].holes == 1


def test_no_inputs_give_nothing():
    assert list(merge({})) == []


def test_an_input_is_read_at_least_one_batch_ahead():
    with pytest.raises(ValueError, match="at least 1 batch ahead, not 0"):
        merge({}, waiting=0)


def test_inputs_in_step_take_turns_by_their_last_stable():
    east = [*readings(1, 2), Stable(2), *readings(3, 4), Stable(4)]
    west = [*readings(1), Stable(1), *readings(2), Stable(3)]
    turns = [(name, len(batch)) for name, batch in in_step({"east": [east], "west": [west]}, rows=2)]
    assert turns == [
        ("east", 2),
        ("west", 2),
        ("east", 2),
        ("west", 2),
        ("east", 2),
        ("west", 0),
        ("east", 0),
    ]


def test_in_step_everything_is_said_before_the_end_of_time():
    closed = [*readings(1), Stable(FOREVER)]
    turns = [
        [name, *(type(e).__name__ for e in batch.elements())]
        for name, batch in in_step({"east": [closed], "west": [[], closed], "north": []})
    ]
    assert turns == [
        ["east", "Insert"],
        ["west", "Insert"],
        ["north"],
        ["east", "Stable"],
        ["west", "Stable"],
        ["east"],
        ["west"],
    ]


def test_inputs_in_step_give_the_same_stream_every_time():
    workload = Workload(events=3000, seed=5, active=100, revisions=0.2)
    runs = []
    for _ in range(2):
        inputs = {str(n): workload.replica(n) for n in range(3)}
        runs.append([e for batch in merge_in_step(inputs, rows=100) for e in batch.elements()])
    assert runs[0] == runs[1]
    assert difference(relation_of([Batch.of(runs[0])]), relation_of(workload.replica(0))) is None


def test_inputs_in_step_are_closed_with_the_merge():
    feed = open_feed(readings(1), readings(2))
    merged = merge_in_step({"east": feed}, rows=1)
    next(merged)
    merged.close()
    assert feed.closed.is_set()
