"""The state of a shard in Spark's state store: what is written, when, and what is read again."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from engines.spark import driving
from engines.spark.driving import Query, Said, parcels
from engines.spark.merges import Merging, assignment_of
from pyspark.sql.streaming import TwsTester

from anabranch import BEGINNING, FOREVER, Adjust, Case, Insert, Raise, Stable
from anabranch.engines.spark import journal
from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.journal import Head, Journal, forget_all
from anabranch.engines.spark.processor import ShardProcessor
from anabranch.engines.spark.query.failure import WorkerError, failure
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.engines.spark.shard import Shard
from anabranch.engines.spark.transport.packing import Packing, split
from anabranch.engines.spark.transport.parcel import Parcel, to_bytes
from anabranch.kernels.store.saved import StateFormatError
from anabranch.model.batch import Batch
from anabranch.model.validity import InvalidElementError
from anabranch.progress.channel_rows import Stretch
from anabranch.rows.layout import Layout

LAYOUT = Layout("start", "end", "old_end", kind="kind", replica="replica", payload=("id",))
COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        *((name, pa.int64()) for name in ("start", "end", "old_end")),
        ("replica", pa.string()),
        ("id", pa.int64()),
    ]
)


def assigned(merging: Merging) -> Assignment:
    """A merge of rows that have a number, as a plan."""
    return assignment_of(LAYOUT, merging, COLUMNS, 1)


ASSIGNMENT = assigned(Merging(Case.R3))


def live(shard: Shard) -> int:
    """How many events a shard holds."""
    return sum(report.live for report in shard.flow.reports().values())


@dataclass
class Counted:
    """A state variable of Spark's whose calls and bytes are counted."""

    variable: Any
    read: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    removed: int = 0

    def get(self):
        return self._found(self.variable.get())

    def getValue(self, key):  # noqa: N802
        return self._found(self.variable.getValue(key))

    def _found(self, value):
        self.read.append(0 if value is None else len(value[0]))
        return value

    def update(self, value):
        self.written.append(len(value[0]))
        self.variable.update(value)

    def updateValue(self, key, value):  # noqa: N802
        self.written.append(len(value[0]))
        self.variable.updateValue(key, value)

    def removeKey(self, key):  # noqa: N802
        self.removed += 1
        self.variable.removeKey(key)

    def clear(self):
        self.read.clear()
        self.written.clear()
        self.removed = 0


class Store:
    """The state variables of one shard, counted."""

    def __init__(self, assignment: Assignment = ASSIGNMENT) -> None:
        self.assignment = assignment
        handle = TwsTester(ShardProcessor(assignment, (0,))).handle
        handle.setGroupingKey(0)
        self.head = Counted(handle.getValueState("head", "body binary"))
        self.snapshot = Counted(handle.getMapState("snapshot", "chunk int", "body binary"))
        self.heard = Counted(handle.getMapState("heard", "chunk int", "body binary"))
        self.variables = self.head, self.snapshot, self.heard
        forget_all()

    def step(self, *bodies: bytes, name: str = "here") -> int:
        """Hear a micro-batch as a worker does; the bytes that the state has then."""
        for variable in self.variables:
            variable.clear()
        kept = Journal(self.assignment, 1, *self.variables)
        head, shard = kept.recall(name, 0)
        shard.receive([journal.from_bytes(body) for body in bodies])
        return kept.record(name, head, shard, list(bodies))

    def recalled(self) -> Shard:
        """The shard as a new worker knows it."""
        forget_all()
        return Journal(self.assignment, 1, *self.variables).recall("here", 0)[1]

    def known(self) -> Head:
        return msgspec.msgpack.decode(self.head.variable.get()[0], type=Head)

    @property
    def written(self) -> int:
        return sum(sum(variable.written) for variable in self.variables)


def events(count: int, first: int = 0, start: int = 0) -> bytes:
    """A parcel of so many open events."""
    nothing = np.zeros(count, np.int64)
    payload = pa.RecordBatch.from_pydict({"id": np.arange(first, first + count)})
    batch = Batch(nothing.astype(np.int8), nothing + start, nothing + FOREVER, nothing, payload)
    return heard(first, batch)


def heard(first: int, batch: Batch) -> bytes:
    """What a replica says from one place in its order on, as a parcel."""
    ((_, part),) = split(replace(Parcel.of(Stretch("a", "", first), batch), edge=ROWS_SOURCE), None, 1)
    return to_bytes(part)


def test_a_large_state_is_written_once_and_small_changes_cost_what_they_are():
    """A million live events; a state that is rewritten would cost tens of megabytes at every step."""
    store = Store()
    store.step(events(1_000_000))
    whole = store.written
    assert live(store.recalled()) == 1_000_000
    assert whole > 5_000_000
    change = len(events(1_000, 1_000_000))
    for step in range(10):
        size = store.step(events(1_000, 1_000_000 + 1_000 * step))
        assert store.written < change + 2_000
        assert store.snapshot.written == []
        assert size < whole + (step + 1) * (change + 100)


def test_a_step_of_a_worker_that_has_the_shard_reads_the_head_alone():
    store = Store()
    store.step(events(100))
    for first in (100, 200, 300):
        store.step(events(100, first))
        assert len(store.head.read) == len(store.head.written) == len(store.heard.written) == 1
        assert store.snapshot.read == store.heard.read == []


def test_a_snapshot_is_written_when_more_has_been_heard_than_it_holds(monkeypatch):
    monkeypatch.setattr(journal, "LEAST", 0)
    store = Store()
    store.step(events(1_000))
    snapshots = []
    for step in range(1, 60):
        store.step(events(200, 1_000 * step))
        snapshots += [step] if store.snapshot.written else []
        head, shard = store.known(), journal._held["here"].shard
        assert sum(one.bytes for one in head.steps) < head.ratio * shard.nbytes, "a snapshot would be smaller"
    assert snapshots
    assert len(snapshots) < 10
    assert live(store.recalled()) == 1_000 + 59 * 200


def test_what_was_heard_before_a_snapshot_is_removed(monkeypatch):
    monkeypatch.setattr(journal, "STEPS", 3)
    store = Store()
    for first in range(0, 500, 100):
        store.step(events(100, first))
    assert store.heard.removed == 3
    assert dict(store.heard.variable.iterator()) == {}
    assert store.known().steps == []


def test_a_snapshot_that_is_smaller_than_the_last_leaves_nothing_of_it(monkeypatch):
    monkeypatch.setattr(journal, "STEPS", 0)
    monkeypatch.setattr(journal, "CHUNK", 1_000)
    store = Store(assigned(Merging(Case.R3, remember=0)))
    store.step(events(2_000))
    many = len(list(store.snapshot.variable.keys()))
    store.step(heard(10_000, Batch.of([Stable(FOREVER)])))
    few = len(list(store.snapshot.variable.keys()))
    assert few < many
    assert few == store.known().snapshot.chunks
    assert store.recalled().frontier == FOREVER


@pytest.mark.parametrize("chunk", [1, 100, 1_000_000])
def test_values_are_cut_into_chunks_and_put_together(chunk, monkeypatch):
    monkeypatch.setattr(journal, "CHUNK", chunk)
    store = Store()
    store.step(events(10))
    store.step(events(10, 10), events(10, 20), events(10, 30))
    longest = max(len(events(10, first)) for first in (10, 20, 30))
    assert all(size <= max(chunk, longest) + 8 + longest for size in store.heard.written)
    assert len(store.heard.written) == (3 if chunk < longest else 1)
    assert live(store.recalled()) == 40


@pytest.mark.parametrize("chunk", [9, 20, 33, 64])
def test_what_is_heard_fills_as_few_values_as_it_can_in_its_order(monkeypatch, chunk):
    """Each length comes with its part, in eight bytes; what fits exactly has no value of its own."""
    monkeypatch.setattr(journal, "CHUNK", chunk)
    for lengths in product(range(1, 28, 2), repeat=3):
        parts = [bytes([n]) * length for n, length in enumerate(lengths)]
        values = list(journal._framed(parts))
        held = [[bytes(part) for part in journal._unframed([value])] for value in values]
        assert [part for value in held for part in value] == parts
        assert all(len(value) <= chunk or len(some) == 1 for value, some in zip(values, held, strict=True))
        assert all(
            len(value) + 8 + len(after[0]) > chunk for value, after in zip(values, held[1:], strict=False)
        )


def test_a_process_holds_a_few_shards_and_forgets_the_one_used_longest_ago():
    stores = [Store() for _ in range(journal.HELD + 3)]
    forget_all()
    for number, store in enumerate(stores):
        store.step(events(10), name=f"shard {number}")
    assert list(journal._held) == [f"shard {n}" for n in range(3, journal.HELD + 3)]
    stores[0].step(events(10, 10), name="shard 0")
    assert stores[0].snapshot.read
    assert len(journal._held) == journal.HELD


class TestWorkers:
    """What a worker holds counts only if Spark's state says the same."""

    def test_a_shard_of_another_attempt_is_not_used(self):
        """The first attempt was not committed: its stamp is not in the state."""
        store = Store()
        store.step(events(10))
        head, heard = store.head.variable.get(), dict(store.heard.variable.iterator())
        store.step(events(10, 10))
        store.head.variable.update(head)
        store.heard.variable.state[0] = heard
        store.step(events(10, 20))
        assert store.snapshot.read
        assert live(store.recalled()) == 20

    def test_a_shard_of_a_query_with_other_settings_is_not_used(self):
        """One session may run a query again on its checkpoint with another meaning."""
        store = Store()
        store.step(events(10))
        store.assignment = assigned(Merging(Case.R3, identity=("id",)))
        with pytest.raises(StateFormatError, match="the checkpoint was begun with source rows: identity"):
            store.step(events(10, 10))

    def test_what_was_heard_is_heard_again_with_those_idle_that_were_then(self):
        store = Store(assigned(Merging(lossy=True, replicas=("a", "b"))))
        for time in (5, 7):
            store.step(heard(time, Batch.stable(time)))
        store.assignment = replace(store.assignment, idle=((ROWS_SOURCE, "b"),))
        assert store.recalled().frontier == BEGINNING
        assert store.recalled().receive([]).output == []
        store.step()
        assert store.recalled().frontier == 7

    def test_a_worker_that_is_behind_hears_only_what_it_missed(self):
        store = Store()
        store.step(events(10))
        store.step(events(10, 10))
        held = journal._held["here"]
        old = journal.Held(held.stamp, Shard.load(ASSIGNMENT, 0, held.shard.dump()))
        store.step(events(10, 20))
        store.step(events(10, 30))
        journal._held["here"] = old
        store.step(events(10, 40))
        assert store.snapshot.read == []
        assert len(store.heard.read) == 2
        assert live(store.recalled()) == 50

    def test_a_micro_batch_that_fails_changes_nothing(self):
        """Spark tries again, perhaps in the same worker, with what it kept."""
        merging = Merging(Case.R3, on_invalid=Raise())
        query, calm = Query(merging), Query(merging)
        packing = Packing(driving.ORDERED, 1, ordered=True)

        def rows(*said):
            return list(parcels([said], packing, query.ids))

        start = rows(Said("a", Insert({"value": "v"}, 1, 9), sequence=0), Said("a", Stable(2), sequence=1))
        bad = rows(
            Said("a", Insert({"value": "w"}, 3, 9), sequence=2),
            Said("a", Insert({"value": "x"}, 1, 9), sequence=3),
        )
        good = rows(Said("a", Adjust({"value": "v"}, 1, 9, 5), sequence=2), Said("a", Stable(6), sequence=3))
        query.receive(start)
        kept = query.kept()
        with pytest.raises(WorkerError) as error:
            query.receive(bad)
        assert isinstance(failure(error.value), InvalidElementError)
        assert query.kept() == kept
        after = query.receive(good)
        calm.receive(start)
        assert after[0].told() == calm.receive(good)[0].told()


class TestDamage:
    """What is not as it was written is refused by name."""

    @pytest.fixture
    def store(self):
        store = Store()
        store.step(events(100))
        store.step(events(100, 100))
        return store

    def test_state_of_another_version(self, store):
        head = msgspec.msgpack.decode(store.head.variable.get()[0])
        store.head.variable.update((msgspec.msgpack.encode(head | {"version": 9, "new": 1}),))
        with pytest.raises(StateFormatError, match="has version 9, this is 2") as error:
            store.step(events(1))
        assert "new checkpoint" in error.value.__notes__[0]

    def test_state_of_before_shards_knew_who_called_them(self, store):
        head = msgspec.msgpack.decode(store.head.variable.get()[0])
        del head["called"]
        store.head.variable.update((msgspec.msgpack.encode(head | {"version": 1}),))
        with pytest.raises(StateFormatError, match="has version 1, this is 2") as error:
            store.step(events(1))
        assert "Restart with the version that wrote it" in error.value.__notes__[0]

    @pytest.mark.parametrize(
        "data", [b"", b"nonsense", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"version": 2})]
    )
    def test_a_head_that_is_none(self, store, data):
        store.head.variable.update((data,))
        with pytest.raises(StateFormatError, match="is a record, this is none"):
            store.step(events(1))

    def test_state_of_another_number_of_shards(self, store):
        with pytest.raises(StateFormatError, match="written with 1 shards, and the query has 3") as error:
            Journal(ASSIGNMENT, 3, *store.variables).recall("here", 0)
        assert "shards=1" in error.value.__notes__[0]

    @pytest.mark.parametrize("place", [0, 20, 60, -1])
    def test_a_byte_that_changed(self, store, place):
        """Wherever it is: in the mark, the channels, the events."""
        for variable in (store.snapshot.variable, store.heard.variable):
            (data,) = whole = variable.getValue((0,))
            damaged = bytearray(data)
            damaged[place] ^= 1
            variable.updateValue((0,), (bytes(damaged),))
            with pytest.raises(StateFormatError, match="CRC-32"):
                store.recalled()
            variable.updateValue((0,), whole)
        assert live(store.recalled()) == 200

    def test_a_chunk_that_is_missing(self, store):
        store.snapshot.variable.removeKey((0,))
        with pytest.raises(StateFormatError, match="and 0 with") as error:
            store.recalled()
        assert "damaged" in error.value.__notes__[0]

    def test_state_of_something_else(self, store):
        head = store.known()
        data = b"not a shard"
        head.snapshot.check = journal.crc32(data)
        store.snapshot.variable.updateValue((0,), (data,))
        store.head.variable.update((msgspec.msgpack.encode(head),))
        with pytest.raises(StateFormatError, match="a state begins with"):
            store.recalled()

    def test_state_of_another_micro_batch(self, store):
        """Files of a state store that changed places are whole, and not what they should be."""
        books = Journal(ASSIGNMENT, 1, *store.variables)
        head, shard = books.recall("here", 0)
        books.record("here", head, shard, [], 5)
        for batch, words in ((5, "state of 4, and of shard 0 this is that of 5"), (3, "this is that of 5")):
            with pytest.raises(StateFormatError, match=words) as error:
                books.recall("here", 0, batch)
            assert "damaged" in error.value.__notes__[0]
        assert live(books.recall("here", 0, 6, always=True)[1]) == 200
        assert live(books.recall("here", 0, 9)[1]) == 200, "there were no rows meanwhile"
        with pytest.raises(StateFormatError, match="state of 8, and of shard 0 this is that of 5"):
            books.recall("here", 0, 9, always=True)

    def test_a_shard_without_state_where_every_shard_has_been_called(self):
        books = Journal(ASSIGNMENT, 1, *Store().variables)
        assert books.recall("here", 0, 0, always=True)[0] is None
        assert books.recall("here", 0, 3)[0] is None
        with pytest.raises(StateFormatError, match="state of 2, and of shard 0 there is none"):
            books.recall("here", 0, 3, always=True)
