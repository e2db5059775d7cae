"""What a parcel carries comes out as it went in."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from engines.spark.spark_rows import random_rows, same_rows
from quick import cases

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Stable
from anabranch.engines.spark.transport.packing import split
from anabranch.engines.spark.transport.parcel import (
    MARK,
    NO_PAYLOAD,
    Parcel,
    ParcelError,
    from_bytes,
    joined,
    to_bytes,
)
from anabranch.model.batch import Batch
from anabranch.model.identity import identities
from anabranch.model.rows import rows_without_columns
from anabranch.progress.channel_rows import Stretch

COLUMNS = ("stretch", "row", "kind", "start", "end", "old_end", "place")


def random_parcel(random: Random, *, columns: int | None = None, most: int = 8) -> Parcel:
    """Elements of every kind at odd times, with payloads that several share."""
    count = random.randint(0, most)
    stretches = tuple(
        Stretch(random.choice(("a", "b", "")), str(n), random.randint(0, 2**60), n != 1, 2**61)
        for n in range(random.randint(1, 3))
    )
    payload = random_rows(random, random.randint(1, 5) if count else 0, columns=columns)
    kind = np.array([random.randrange(5) for _ in range(count)], np.int8)
    times = [[random.choice((BEGINNING, FOREVER, 0, n)) for n in range(count)] for _ in range(3)]
    times[1] = [0 if kind[n] > 1 else end for n, end in enumerate(times[1])]
    place = np.array([random.randrange(payload.num_rows) for _ in range(count)], np.int32)
    return Parcel(
        stretches,
        np.sort(np.array([random.randrange(len(stretches)) for _ in range(count)], np.int32)),
        np.array([random.choice((n, 5 * n, 2**40 + n)) for n in range(count)], np.int64),
        kind,
        *(np.array(column, np.int64) for column in times),
        np.where(kind > 1, NO_PAYLOAD, place).astype(np.int32),
        payload,
        identities(payload) if random.random() < 0.5 else None,
    )


def assert_same(one: Parcel, other: Parcel) -> None:
    assert one.stretches == other.stretches
    for name in COLUMNS:
        ours, theirs = getattr(one, name), getattr(other, name)
        assert ours.tolist() == theirs.tolist(), name
        assert ours.dtype == theirs.dtype, name
    assert same_rows(one.payload, other.payload)
    assert (one.identities is None) == (other.identities is None)
    assert one.identities is None or one.identities.tolist() == other.identities.tolist()


def elements_of(parcel: Parcel) -> list[object]:
    batch = parcel.batch(slice(None))
    return [batch.element(row) for row in range(len(batch))]


@pytest.mark.parametrize("chunk", range(cases(4)))
def test_any_parcel_comes_back_from_its_bytes(chunk):
    for seed in range(100 * chunk, 100 * (chunk + 1)):
        parcel = random_parcel(Random(seed))
        assert_same(from_bytes(to_bytes(parcel)), parcel)


def test_a_parcel_comes_back_from_a_view_of_bytes():
    parcel = random_parcel(Random(3))
    assert_same(from_bytes(memoryview(b"xx" + to_bytes(parcel))[2:]), parcel)


@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_batch_comes_back_from_a_parcel_of_one_voice(columns, count):
    payload = random_rows(Random(7), count, columns=columns)
    nothing = np.zeros(count, np.int64)
    batch = Batch(nothing.astype(np.int8), nothing, nothing + 5, nothing, payload)
    parcel = from_bytes(to_bytes(Parcel.of(Stretch("a"), batch)))
    assert len(parcel) == count
    assert same_rows(parcel.batch(slice(None)).payload, payload)


def test_columns_that_say_nothing_take_no_bytes():
    batch = Batch.of([Insert({"v": n}, n, n + 1) for n in range(1000)])
    bare = to_bytes(Parcel.of(Stretch("a"), batch))
    assert len(bare) < 1000 * (8 + 2) + 2000
    adjusted = Batch.of([Adjust({"v": n}, n, n + 2 ** (n % 40), n + 2) for n in range(1000)])
    assert len(to_bytes(Parcel.of(Stretch("a"), adjusted))) > len(bare) + 7000


def test_a_voice_of_one_batch_ends_with_its_last_row():
    batch = Batch.of([Stable(1), Stable(2), Stable(3)])
    assert Parcel.of(Stretch("a", "x", 10), batch).stretches == (Stretch("a", "x", 10, True, 12),)
    assert Parcel.of(Stretch("a", "x", 10), batch, np.array([0, 4, 9])).stretches[0].last == 19


def test_what_is_no_event_has_no_payload():
    elements = [Insert({"v": 1}, 1, 5), Stable(3), Attach(4), Detach(), Insert({"v": 1}, 6, 7)]
    parcel = Parcel.of(Stretch("a"), Batch.of(elements))
    (_, part), *_ = split(parcel, None, 1)
    assert part.payload.num_rows == 1
    assert part.place.tolist() == [0, NO_PAYLOAD, NO_PAYLOAD, NO_PAYLOAD, 0]
    assert part.batch(slice(None)).payload.to_pylist() == [{"v": 1}, *[{"v": None}] * 3, {"v": 1}]
    assert elements_of(part) == elements


def test_stables_alone_have_rows_without_columns():
    (_, part), *_ = split(Parcel.of(Stretch("a"), Batch.of([Stable(3), Stable(4)])), None, 1)
    again = from_bytes(to_bytes(part))
    assert elements_of(again) == [Stable(3), Stable(4)]
    assert again.payload.num_rows == 0


@pytest.mark.parametrize("chunk", range(cases(2)))
def test_some_of_the_elements_have_their_payloads_and_no_others(chunk):
    for seed in range(100 * chunk, 100 * (chunk + 1)):
        random = Random(seed)
        parcel = random_parcel(random)
        rows = np.array(sorted(random.sample(range(len(parcel)), random.randint(0, len(parcel)))), np.int64)
        part = parcel.take(rows)
        assert elements_of(part) == [elements_of(parcel)[row] for row in rows]
        assert part.payload.num_rows == len(set(parcel.place[rows].tolist()) - {NO_PAYLOAD})
        if part.identities is not None:
            assert part.identities.tolist() == identities(part.payload).tolist()


def test_parcels_that_are_joined_say_what_they_said():
    for seed in range(100):
        random = Random(seed)
        whole = random_parcel(random, columns=2)
        cut = random.randint(0, len(whole))
        parts = [whole.take(np.arange(cut)), whole.take(np.arange(cut, len(whole)))]
        together = joined(parts)
        assert elements_of(together) == elements_of(parts[0]) + elements_of(parts[1])
        names = [[part.stretches[code] for code in part.stretch] for part in (*parts, together)]
        assert names[0] + names[1] == names[2]


def test_bytes_of_another_version_are_refused_by_name():
    data = to_bytes(random_parcel(Random(1)))
    with pytest.raises(ParcelError, match=r"begins with b'anabranch-parcel-2\\n'") as error:
        from_bytes(b"anabranch-parcel-9\n" + data[len(MARK) :])
    assert "checkpoint" in error.value.__notes__[0]
    with pytest.raises(ParcelError):
        from_bytes(b"")


def test_rows_that_hold_nothing_are_counted():
    batch = Batch.of([Insert({}, 1, 5), Insert({}, 2, 6)])
    again = from_bytes(to_bytes(Parcel.of(Stretch("a"), batch)))
    assert again.payload.num_columns == 0
    assert elements_of(again) == [Insert({}, 1, 5), Insert({}, 2, 6)]
    assert rows_without_columns(2).num_rows == again.payload.num_rows == 2


def test_identities_are_those_of_the_payloads_however_they_are_chosen():
    payload = pa.RecordBatch.from_pylist([{"v": 1}, {"v": 2}])
    parcel = Parcel(
        (Stretch("a"),),
        np.zeros(3, np.int32),
        np.arange(3),
        np.zeros(3, np.int8),
        np.arange(3),
        np.arange(3) + 5,
        np.zeros(3, np.int64),
        np.array([1, 0, 1], np.int32),
        payload,
        identities(payload),
    )
    assert parcel.batch(slice(None)).identities.tolist() == identities(payload)[[1, 0, 1]].tolist()
    assert parcel.batch(np.array([2, 1])).identities.tolist() == identities(payload)[[1, 0]].tolist()
