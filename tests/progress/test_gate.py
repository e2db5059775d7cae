"""One door: what `look` and `refused` foretell is what `admit` does, however many channels send at once."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from laws.gates import Noted, told
from quick import cases

from anabranch import Attach, Batch, Detach, Insert, Stable
from anabranch.model.time import BEGINNING
from anabranch.progress.admission import Admission
from anabranch.progress.channel_rows import ChannelRows, Stretch
from anabranch.progress.gate import Gate
from anabranch.progress.models.disorder import Disorder
from anabranch.progress.models.stated import Stated


def gate(progress) -> Gate:
    made = Gate(Admission(replicas=True, progress=progress), Noted())
    made.open()
    return made


def drawn(random: Random, now: int, *, controls: bool) -> list[tuple[str, str, list[object]]]:
    """What some channels send at about a time."""
    kinds = [lambda: Insert({"v": random.choice("xy")}, now + random.randint(-6, 6), now + 9)] * 5
    kinds.append(lambda: Stable(now + random.randint(-8, 0)))
    if controls:
        kinds += [Attach, Detach]
    pairs = random.sample([(who, channel) for who in "ab" for channel in "xyz"], random.randint(1, 5))
    return [(*pair, [random.choice(kinds)() for _ in range(random.randint(1, 4))]) for pair in sorted(pairs)]


def together(sent) -> ChannelRows:
    stretches = tuple(Stretch(who, channel) for who, channel, _ in sent)
    whose = np.repeat(np.arange(len(sent), dtype=np.int32), [len(elements) for *_, elements in sent])
    return ChannelRows(stretches, Batch.of([one for *_, elements in sent for one in elements]), whose)


@pytest.mark.parametrize("controls", [False, True])
@pytest.mark.parametrize("progress", [Stated(), Disorder(3)], ids=["stated", "disorder"])
@pytest.mark.parametrize("seed", range(cases(40)))
def test_rows_of_many_channels_together_are_rows_of_each_one_after_the_other(seed, progress, controls):
    random, one, many = Random(seed), gate(progress), gate(progress)
    for step in range(8):
        sent = drawn(random, 10 * step, controls=controls)
        for part in together(sent).each():
            one.admit(part)
        one.promise()
        rows = together(sent)
        before, look = many.entrance.refused.copy(), many.look(rows)
        foretold = Counter(row for group in many.refused(rows, look) for row in told(group))
        assert many.entrance.refused == before
        many.admit(rows, look)
        assert many.entrance.refused - before == foretold
        many.promise()
        assert vars(many.entrance) == vars(one.entrance)
        assert many.channels.saved() == one.channels.saved()
        if random.random() < 0.2:
            again = Gate(many.admission, many.entrance)
            again.resume(many.saved())
            many = again


def test_what_is_inferred_counts_when_the_pass_ends():
    made = gate(Disorder(2))
    made.admit(together([("a", "x", [Insert({"v": "x"}, 9, 10), Insert({"v": "y"}, 3, 4)])]))
    assert made.entrance.refused == Counter()
    made.promise()
    assert made.entrance.promises == [("a", 7)]
    made.admit(together([("a", "x", [Insert({"v": "x"}, 6, 7)])]))
    assert sum(made.entrance.refused.values()) == 1


def test_stables_of_a_channel_without_an_order_count_at_the_end_of_the_pass():
    made = gate(Stated())
    sent = [Stable(9), Insert({"v": "x"}, 3, 4)]
    made.admit(ChannelRows((Stretch("a", ordered=False),), Batch.of(sent)))
    made.promise()
    assert made.entrance.promises == []
    assert made.entrance.refused == Counter()
    made.settle()
    made.promise()
    assert made.entrance.promises == [("a", 9)]


def test_a_replica_is_stable_until_the_least_of_its_channels():
    made = gate(Stated())
    made.admit(together([("a", "x", [Stable(9)]), ("a", "y", [Stable(4)])]))
    made.promise()
    assert made.entrance.promises == [("a", 4)]
    made.forget("a", "y")
    assert made.entrance.promises == [("a", 4), ("a", 9)]
    assert made.stable("a") == 9 > BEGINNING


def test_a_channel_that_is_new_begins_where_its_replica_has_promised_to_be():
    made = gate(Disorder(0))
    made.admit(together([("a", "x", [Insert({"v": "x"}, 9, 10)])]))
    made.promise()
    made.admit(together([("a", "y", [Insert({"v": "y"}, 3, 4), Insert({"v": "y"}, 12, 13)])]))
    made.promise()
    assert sum(made.entrance.refused.values()) == 1
    assert made.entrance.promises == [("a", 9)]
    made.admit(together([("a", "x", [Insert({"v": "x"}, 11, 12)])]))
    made.promise()
    assert made.entrance.promises == [("a", 9), ("a", 11)]
