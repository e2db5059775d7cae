"""Attendance refuses what its oracle, which looks at all that ever happened, refuses."""

from random import Random

import pytest
from quick import cases

from anabranch import Attach, Detach, Rule
from anabranch.model.attendance import Attendance, Change, Presence
from anabranch.oracle.attendance import Happening, rule_broken


@pytest.mark.parametrize("seed", range(cases(100)))
def test_it_refuses_what_its_oracle_refuses(seed):
    random, past = Random(seed), list[Happening]()
    awaited = random.sample("abc", random.randint(0, 2))
    attendance = Attendance(awaited)
    for name in awaited:
        assert attendance.expect(name) is Change.ENTERS
    for _ in range(40):
        now = Happening(random.choice("abc"), random.choice([None, None, Attach(), Attach(5), Detach()]))
        expected = rule_broken(past, now, awaited)
        was_here = attendance.is_here(now.name)
        match now.what:
            case None:
                found = attendance.send(now.name)
            case Attach(guarantee):
                found = attendance.attach(now.name, guarantee=guarantee == 5)
            case Detach():
                found = attendance.detach(now.name)
        assert (found if isinstance(found, Rule) else None) == expected, (past, now)
        if found is Change.ENTERS:
            assert not was_here
        if found is Change.LEAVES:
            assert was_here
        past.append(now)
        here = [name for name in "abc" if attendance.is_here(name)]
        assert here == [
            name
            for name in "abc"
            if rule_broken(past, Happening(name, None)) is None
            and (name in awaited or any(one.name == name for one in past))
        ]
        if random.random() < 0.1:
            saved = attendance.saved()
            attendance = Attendance(awaited)
            attendance.resume(saved)


def test_one_that_is_expected_begins_anew_where_its_attach_has_a_guarantee():
    attendance = Attendance()
    attendance.expect("a")
    assert attendance.attach("a", guarantee=True) is Change.BEGINS_ANEW
    attendance.expect("b")
    assert attendance.attach("b") is Change.NONE
    assert attendance.known == {"a": Presence.ATTACHED, "b": Presence.ATTACHED}


def test_one_that_is_idle_is_idle_until_it_sends():
    attendance = Attendance()
    attendance.send("a")
    attendance.idle.add("a")
    attendance.send("b")
    assert attendance.idle == {"a"}
    attendance.send("a")
    assert attendance.idle == set()


def test_only_those_that_sent_something_or_left_have_been_met():
    attendance = Attendance()
    attendance.expect("a")
    attendance.send("b")
    attendance.send("c")
    attendance.leave("c")
    assert attendance.met() == {"b", "c"}
