"""A few damages of a checkpoint, each survived in the way that is meant; `./run damages` draws hundreds."""

import shutil
from random import Random

import pytest
from survival.damages import (
    BEFORE,
    CHECKPOINT,
    NAMED,
    RIGHT,
    SETTINGS,
    Bench,
    Subject,
    damage,
    unhelpful,
)

from anabranch.engines.spark.query.check import check_sound
from anabranch.engines.spark.query.checkpoint import CheckpointError, query_id
from anabranch.engines.spark.query.failure import QueryError
from anabranch.engines.spark.query.seal import FILE as SEAL
from anabranch.kernels.store.saved import StateFormatError

FOLDER = Subject("native", "folder")
LAST = BEFORE - 1


@pytest.fixture(scope="module")
def kept(spark, tmp_path_factory):
    """A query that has run up to its point, for damages that are seen before it goes on."""
    return Bench(spark, tmp_path_factory.mktemp("kept"), (FOLDER,), snapshots=False)


@pytest.fixture(scope="module")
def bench(spark, tmp_path_factory):
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield Bench(spark, tmp_path_factory.mktemp("damages"), (FOLDER,))
    for key, value in before.items():
        spark.conf.set(key, value) if value is not None else spark.conf.unset(key)


def gone(place, *names):
    for name in names:
        (place / name).unlink()
        (place / name).with_name(f".{(place / name).name}.crc").unlink(missing_ok=True)


def swapped(one, other):
    for a, b in ((one, other), (one.with_name(f".{one.name}.crc"), other.with_name(f".{other.name}.crc"))):
        if a.exists():
            shutil.move(a, f"{a}.aside")
            shutil.move(b, a)
            shutil.move(f"{a}.aside", b)


def offsets_and_commits_of_the_last_two(place):
    gone(place, SEAL, *(f"{log}/{n}" for log in ("offsets", "commits") for n in (LAST - 1, LAST)))


def last_offsets(place):
    gone(place, f"offsets/{LAST}")


def offsets_that_changed_places(place):
    swapped(place / "offsets" / f"{LAST}", place / "offsets" / f"{LAST - 1}")


def states_that_changed_places(place):
    """Each shard finds the whole and sound state of the other."""
    swapped(place / "state" / "0" / "0", place / "state" / "0" / "1")
    (place / SEAL).unlink()


def changes_that_changed_places(place):
    """Each is read without complaint: both are sums beside their files."""
    for part in ("0", "1"):
        folder = place / "state" / "0" / part
        swapped(folder / f"{LAST + 1}.changelog", folder / f"{LAST}.changelog")
        for file in folder.glob("*.zip"):
            if int(file.stem) >= LAST:
                gone(folder, file.name)
    (place / SEAL).unlink()


def a_bit_of_a_state(place):
    file = place / "state" / "0" / "1" / f"{LAST + 1}.changelog"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            offsets_and_commits_of_the_last_two,
            rf"{LAST - 2} was begun last, and there is state of micro-batch {LAST}",
        ),
        (last_offsets, rf"offsets/{LAST} is gone"),
        (offsets_that_changed_places, rf"offsets/{LAST - 1} is not what it was"),
        (a_bit_of_a_state, rf"{LAST + 1}\.changelog is not what it was"),
    ],
)
def test_a_damage_that_would_give_a_wrong_answer_is_named_before_anything_is_begun(kept, how, words):
    place = kept.restored(FOLDER)
    how(place / CHECKPOINT)
    with pytest.raises(CheckpointError, match=words) as caught:
        kept.finished(FOLDER)
    assert unhelpful(caught.value, place) is None


@pytest.mark.slow
@pytest.mark.parametrize("how", [states_that_changed_places, changes_that_changed_places])
def test_a_damage_of_states_is_named_by_the_shards_and_nothing_is_lost(bench, how):
    place = bench.restored(FOLDER)
    how(place / CHECKPOINT)
    with pytest.raises(StateFormatError, match=rf"from the state of {LAST}, and of shard") as caught:
        bench.finished(FOLDER)
    assert unhelpful(caught.value, place) is None
    bench.put_back(FOLDER)
    assert bench.finished(FOLDER) == bench.meant[FOLDER.name]


@pytest.mark.slow
def test_a_checkpoint_from_an_older_copy_does_not_write_anything_twice(bench):
    """All in it belongs together; only the sink knows more."""
    bench.restored(FOLDER)
    bench.finished(FOLDER)
    place = bench.put_back(FOLDER)
    with pytest.raises(CheckpointError, match=f"has files of micro-batch {LAST + 1}") as caught:
        bench.finished(FOLDER)
    assert "move the files" in caught.value.__notes__[-1]
    for file in (place / "out").glob(f"*-{LAST + 1:09}-*"):
        file.unlink()
    assert bench.finished(FOLDER) == bench.meant[FOLDER.name]


def test_a_micro_batch_that_runs_again_may_have_written_its_state_again(kept):
    """It was written and not complete, ran again, and was cut short again: all as it should be."""
    place = kept.restored(FOLDER) / CHECKPOINT
    changes = place / "state" / "0" / "0" / f"{LAST + 1}.changelog"
    gone(place, str(changes.relative_to(place)))
    changes.write_bytes(b"another stamp")
    with pytest.raises(CheckpointError, match=rf"{LAST + 1}\.changelog is not what it was"):
        check_sound(place)
    gone(place, f"commits/{LAST}")
    check_sound(place)


def test_a_seal_that_is_damaged_is_named_and_may_be_removed(kept):
    place = kept.restored(FOLDER) / CHECKPOINT
    (place / SEAL).write_bytes((place / SEAL).read_bytes()[1:])
    with pytest.raises(CheckpointError, match=SEAL) as caught:
        check_sound(place)
    assert "remove it" in caught.value.__notes__[0]
    (place / SEAL).unlink()
    check_sound(place)


def test_the_name_of_a_query_is_not_made_anew_or_believed_unseen(kept):
    place = kept.restored(FOLDER) / CHECKPOINT
    name = query_id(place)
    (place / "anabranch-query").write_text((place / "anabranch-query").read_text().replace(name[0], "x"))
    with pytest.raises(CheckpointError, match="the name of a query and its CRC-32"):
        query_id(place)
    (place / "anabranch-query").unlink()
    with pytest.raises(CheckpointError, match=f"is gone, and the checkpoint has come to micro-batch {LAST}"):
        query_id(place)
    (place / "anabranch-query").write_text(name)
    assert query_id(place) == name


@pytest.mark.slow
def test_a_damage_that_is_drawn_is_survived(bench):
    what, verdict, why = bench.verdict(8)
    assert verdict in (RIGHT, NAMED), (what, why)


def test_a_damage_is_drawn_from_its_seed_alone(kept):
    said = []
    for _ in range(2):
        place = kept.restored(FOLDER)
        said.append([damage(Random(seed), place / CHECKPOINT) for seed in range(5)])
    assert said[0] == said[1]


def test_an_error_that_helps_nobody_is_not_let_pass(tmp_path):
    helpful = ValueError("the checkpoint is not whole")
    helpful.add_note("Mend it.")
    assert unhelpful(helpful, tmp_path) is None
    assert "not ours" in unhelpful(QueryError("java.lang.Exception"), tmp_path)
    assert "no way out" in unhelpful(ValueError("the checkpoint is not whole"), tmp_path)
    elsewhere = ValueError("it does not work")
    elsewhere.add_note("Mend it.")
    assert "where" in unhelpful(elsewhere, tmp_path)
