"""Random plans mean what their operators mean, however they are pushed to; the laws would notice if not."""

from random import Random

import pytest
from laws.operators import OPERATORS
from laws.plans import check, drawn_plan
from quick import cases

from anabranch.engines.flow import Flow
from anabranch.kernels.alter_lifetime import AlterLifetime
from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.distinct import Distinct
from anabranch.kernels.filter import Filter
from anabranch.kernels.join.join import Join
from anabranch.kernels.kernel import Result
from anabranch.kernels.merge.merge import Merge
from anabranch.kernels.rows import Rows
from anabranch.kernels.session import Session
from anabranch.kernels.sort import Sort
from anabranch.kernels.union import Union
from anabranch.kernels.window import Window
from anabranch.model.batch import Kind
from anabranch.model.time import BEGINNING, FOREVER

EACH = 150
ALONE = 800
"""Seeds of single operators, for all of them together."""
KERNELS = (Cleanse, Distinct, Join, Merge, Rows, Session, Sort, Union, Window)


def check_all(seeds):
    for seed in seeds:
        try:
            check(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("block", range(cases(8)))
def test_a_plan_gives_what_it_means(block):
    check_all(range(block * EACH, (block + 1) * EACH))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_operator_alone_gives_what_it_means(operator):
    for seed in range(cases(ALONE) // len(OPERATORS)):
        check(seed, [operator])


def _greatest(self):
    return max(self.frontiers.values())


def _as_far_as_the_input(self, time):
    return time


def _inserts_only(self, batch):
    result = _map(self, batch)
    return Result(result.events.take(result.events.kind != Kind.ADJUST), result.refused)


def _forgets_how_far(cls, state):
    return _load(replace_frontiers(state))


_map = Filter.map
_load = Union.load


def replace_frontiers(state):
    return state._replace(values={"frontiers": dict.fromkeys(state.values["frontiers"], FOREVER)})


def _keeps_what_is_out(self, name, time):
    result = _advance(self, name, time)
    return Result(result.events.take(result.events.start < time - 1), result.refused)


_advance = Sort.advance


def _promises_first(self, stage):
    stage.events, stage.promises = (
        [],
        [(name, time) for name, time in stage.promises],
    )
    return _run(self, stage)


_run = Flow._run


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (Union, "frontier", property(_greatest)),
        (AlterLifetime, "reached", _as_far_as_the_input),
        (Filter, "map", _inserts_only),
        (Union, "load", classmethod(_forgets_how_far)),
        (Sort, "advance", _keeps_what_is_out),
        (Flow, "_run", _promises_first),
    ],
    ids=[
        "strongest promise",
        "promise unmoved",
        "adjusts lost",
        "frontier forgotten",
        "rows kept",
        "events lost",
    ],
)
def test_a_wrong_variant_is_noticed(monkeypatch, owner, name, wrong):
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        check_all(range(400))


def silent(time):
    return time if time == FOREVER else BEGINNING


def too_late(time):
    return time if time in (BEGINNING, FOREVER) else time - 1


def too_early(time):
    return time if time in (BEGINNING, FOREVER) else time + 1


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("wrong", [silent, too_late, too_early])
def test_a_wrong_promise_of_a_kernel_is_noticed(monkeypatch, kernel, wrong):
    reached = Flow._reached

    def promised(self, one):
        time = reached(self, one)
        return wrong(time) if isinstance(one, kernel) else time

    monkeypatch.setattr(Flow, "_reached", promised)
    with pytest.raises(AssertionError):
        check_all(range(400))


def forgets(push):
    """Events that start at one time are lost."""
    return lambda self, name, batch: push(self, name, batch.take(batch.start != 5))


def waits_for_the_end(advance):
    """No stable counts before the last."""
    return lambda self, name, time: advance(self, name, silent(time))


def takes_later_stables(advance):
    """What is closed one tick too early."""
    return lambda self, name, time: advance(self, name, too_early(time))


def never_forgets(report):
    """One more is held than before the end."""
    return lambda self: report(self)._replace(live=max(report(self).live, 1))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("push", forgets),
        ("advance", waits_for_the_end),
        ("advance", takes_later_stables),
        ("report", never_forgets),
    ],
    ids=["forgets", "waits for the end", "too early", "never forgets"],
)
def test_a_wrong_kernel_is_noticed(monkeypatch, kernel, method, wrong):
    monkeypatch.setattr(kernel, method, wrong(getattr(kernel, method)))
    with pytest.raises(AssertionError):
        check_all(range(400))


def test_plans_are_of_every_operator_and_depth():
    drawn = [drawn_plan(Random(seed)).text for seed in range(300)]
    assert all(any(operator.name in text for text in drawn) for operator in OPERATORS)
    assert {text.count("(") for text in drawn} >= {1, 2, 3, 4}
