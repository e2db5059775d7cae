"""Windows say what the oracle says of the events there are, at every push, whatever is taken back."""

from collections import Counter
from math import isnan
from random import Random

import pytest
from kernels.windows import CALLED, LIMITS, SCHEMA, drawn_elements
from quick import cases

import anabranch as ab
from anabranch import Insert, Stable, col
from anabranch.kernels.aggregate.aggregation import Aggregation
from anabranch.kernels.aggregate.floats import FloatSums
from anabranch.kernels.aggregate.running import Running
from anabranch.kernels.aggregate.window_times import WindowTimes
from anabranch.kernels.window import Window
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule
from anabranch.oracle.window import frontier, window


def payload_of(names):
    """What the oracle says of a group, or None where a sum does not fit."""

    def made(group, rows, start, end):
        said = [("k", group)]
        for name in names:
            _, means, column = CALLED[name]
            pairs = [(begin, dict(p)[column]) for p, begin, _ in rows if column in dict(p)]
            value = means(pairs)
            low, high = LIMITS.get(name, (None, None))
            if low is not None and value is not None and not low <= value < high:
                return None
            said.append((name, value))
        return tuple((name, plain(value)) for name, value in said)

    return made


def plain(value):
    return "nan" if isinstance(value, float) and isnan(value) else value


def rows_of(elements):
    """The events that are there, with payloads as pairs."""
    found = Counter()
    for one in elements:
        if isinstance(one, Stable):
            continue
        key = tuple(sorted(one.payload.items(), key=lambda pair: pair[0]))
        if isinstance(one, Insert):
            found[repr(key), key, one.start, one.end] += 1
        else:
            found[repr(key), key, one.start, one.old_end] -= 1
            if one.end != one.start:
                found[repr(key), key, one.start, one.end] += 1
    return [(key, start, end) for (_, key, start, end), n in found.items() for _ in range(n)]


def out_of(elements, names):
    found = Counter()
    for one in elements:
        if isinstance(one, Stable):
            continue
        key = tuple((name, plain(one.payload.get(name))) for name in ("k", *names))
        if isinstance(one, Insert):
            found[key, one.start, one.end] += 1
        else:
            assert found[key, one.start, one.old_end] == 1, "what is removed was said"
            found[key, one.start, one.old_end] -= 1
    return +found


def check(seed):
    random = Random(seed)
    names = sorted(random.sample(list(CALLED), random.randint(1, 6)))
    every = random.randint(1, 9)
    size = random.choice([every, 3 * every, random.randint(1, 20)])
    slide, early, removals = (random.random() < 0.5 for _ in range(3))
    facts = [] if removals else ["insert only"]
    stream = ab.source("s", SCHEMA, properties=facts)
    windows = stream.window(size, every, lifetime="slide" if slide else "window").group_by("k")
    stream = windows.agg(early=early, **{name: CALLED[name][0] for name in names})
    elements = drawn_elements(random, 40, removals=removals)
    failures = []
    job = stream.open(on_invalid=ab.Quarantine(failures.append))
    said, out = [], []
    while len(said) < len(elements):
        piece = elements[len(said) : len(said) + random.choice([1, 3, 10])]
        said += piece
        got = job.push("s", piece)
        out += got
        stable = max((one.time for one in said if isinstance(one, Stable)), default=BEGINNING)
        told = [one.time for one in out if isinstance(one, Stable)]
        assert max(told, default=BEGINNING) == frontier(stable, size, every, slide=slide)
        meant = window(
            rows_of(said),
            lambda payload: dict(payload).get("k"),
            payload_of(names),
            size=size,
            every=every,
            slide=slide,
            until=FOREVER if early else stable,
        )
        assert out_of(out, names) == Counter(meant), f"{names}, {size} every {every}, early {early}"
        if random.random() < 0.2:
            job = stream.open(job.dump(), on_invalid=ab.Quarantine(failures.append))
    assert job.status().live == 0
    assert all(one.rule is Rule.FAILED for one in failures)
    return failures


def check_all(seeds):
    failures = []
    for seed in seeds:
        try:
            failures += check(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    return failures


@pytest.mark.parametrize("block", range(cases(4)))
def test_windows_are_what_the_oracle_says(block):
    failures = check_all(range(60 * block, 60 * block + 60))
    assert any("does not fit" in one.message for one in failures)
    assert {"k"} >= {name for one in failures for name in one.element.payload}


def _rounds_at_once(self, slots, values, sign):
    for slot, value in zip(slots.tolist(), values.tolist(), strict=True):
        self.first[slot] += sign * value


def _late(self, time):
    return WindowTimes.reached(self.times, time) if time == FOREVER else time


def _nothing_taken_back(batch, inserts):
    return inserts & False


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (FloatSums, "_add", _rounds_at_once),
        (WindowTimes, "reached", lambda self, time: time),
        (WindowTimes, "last_closed", lambda self, time: time // self.every),
        ("anabranch.kernels.window._removals", None, _nothing_taken_back),
        (Window, "_release", lambda self, done, extra: None),
        (Running, "_become_older", lambda self: None),
        (Running, "leave", lambda self, begin: None),
    ],
    ids=[
        "sums rounded",
        "promise of the input",
        "closed at their start",
        "removals lost",
        "panes kept",
        "always newer",
        "never left",
    ],
)
def test_a_wrong_variant_is_noticed(monkeypatch, owner, name, wrong):
    if name is None:
        monkeypatch.setattr(owner, wrong)
    else:
        monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        check_all(range(60))


def test_a_group_whose_sum_does_not_fit_is_refused_and_nothing_else():
    stream = ab.source("s", {"k": "string", "n": "int64"}).window(10).group_by("k").agg(col("n").sum())
    failures = []
    job = stream.open(on_invalid=ab.Quarantine(failures.append))
    rows = [("a", 2**63 - 1), ("a", 1), ("b", 4), ("b", 5)]
    out = job.push("s", [Insert({"k": k, "n": n}, 3, 4) for k, n in rows] + [Stable(10)])
    assert out == [Insert({"k": "b", "n": 9}, 0, 10), Stable(10)]
    assert "n.sum() does not fit int64" in failures[0].message
    assert failures[0].element == Insert({"k": "a"}, 0, 10)


def test_what_is_added_and_taken_back_leaves_nothing_of_it():
    stream = ab.source("s", {"x": "float64"}).window(10).agg(col("x").sum())
    job = stream.open()
    large = Insert({"x": 1e16}, 1, 2)
    job.push("s", [large, Insert({"x": 1.0}, 2, 3)])
    out = job.push("s", [ab.Adjust(large.payload, 1, 2, 1), Stable(10)])
    assert out[0] == Insert({"x": 1.0}, 0, 10)


def test_an_early_push_copies_the_groups_it_touches_and_finishes_them_once(monkeypatch):
    work = []
    for name in ("merge", "said"):
        usual = getattr(Aggregation, name)
        monkeypatch.setattr(
            Aggregation,
            name,
            lambda self, *slots, u=usual, n=name: work.append((n, len(slots[-1]))) or u(self, *slots),
        )
    stream = ab.source("s", {"k": "string", "n": "int64"}).window(10).group_by("k")
    job = stream.agg(col("n").sum(), early=True).open()
    out = job.push("s", [Insert({"k": "a", "n": 1}, 3, 4)])
    out += job.push("s", [Insert({"k": "a", "n": 4}, 3, 4)])
    one, both = {"k": "a", "n": 1}, {"k": "a", "n": 5}
    assert out == [Insert(one, 0, 10), ab.Adjust(one, 0, 10, 0), Insert(both, 0, 10)]
    assert work == [("merge", 1), ("said", 2)] * 2
