"""The table of channels says how far each has come, and of each replica the least."""

from random import Random

import pytest
from quick import cases

from anabranch.model.time import BEGINNING
from anabranch.progress.channels import Channels


@pytest.mark.parametrize("needed", [1, 3])
@pytest.mark.parametrize("seed", range(cases(40)))
def test_it_is_what_a_dict_of_dicts_says_after_every_change(seed, needed):
    random, channels = Random(seed), Channels(needed)
    known, whole = dict[str, dict[str, int]](), dict[str, int]()
    for _ in range(150):
        replica, channel = random.choice("abc"), random.choice("vwxyz")
        before = {name: stable(known, whole, name, needed) for name in known}
        if replica not in known:
            channels.enter(replica)
            known[replica], whole[replica] = {}, BEGINNING
        elif random.random() < 0.1:
            time = random.randint(0, 60)
            channels.reach(channels.whole[replica], time)
            whole[replica] = max(time, whole[replica])
        elif random.random() < 0.03:
            channels.leave(replica)
            del known[replica]
        elif random.random() < 0.1 and len(known[replica]) > 1:
            channels.forget(replica, channel)
            known[replica].pop(channel, None)
        else:
            time = random.randint(0, 99)
            channels.reach(channels.number(replica, channel), time)
            known[replica][channel] = max(time, known[replica].get(channel, BEGINNING))
        assert channels.saved() == {name: (whole[name], own) for name, own in known.items()}
        now = {name: stable(known, whole, name, needed) for name in known}
        assert {name: channels.stable(name) for name in known} == now
        reached = max(known.get(replica, {}).get(channel, BEGINNING), whole.get(replica, BEGINNING))
        assert channels.reached(replica, channel) == (reached if replica in known else BEGINNING)
        moved = channels.moves()
        rose = {name for name, time in before.items() if name in known and now[name] != time}
        assert rose <= set(moved) <= set(known)
        if random.random() < 0.1:
            channels = Channels.load(channels.saved(), needed)


def stable(known: dict[str, dict[str, int]], whole: dict[str, int], replica: str, needed: int) -> int:
    least = min(known[replica].values(), default=BEGINNING)
    return max(whole[replica], least if len(known[replica]) >= needed else BEGINNING)


def test_a_number_that_is_used_anew_begins_anew():
    channels = Channels()
    channels.enter("a")
    number = channels.number("a", "x")
    channels.reach(number, 9)
    channels.leave("a")
    channels.enter("b")
    assert {channels.number("b", "y"), channels.whole["b"]} >= {number}
    assert channels.reached("b", "y") == BEGINNING == channels.stable("b")
