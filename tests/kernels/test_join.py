"""Joins on time beside their meaning, after every push; promises sound and exact; nothing kept in vain."""

from collections import Counter
from itertools import product
from random import Random

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import Insert, Quarantine, Stable
from anabranch.kernels.join.band import Band
from anabranch.kernels.join.join import Join
from anabranch.kernels.join.side import Side
from anabranch.kernels.join.terms import Terms
from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Adjust
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle import join as oracle
from anabranch.oracle.relation import World

LEFT = pa.schema({"k": pa.string(), "a": pa.int64()})
RIGHT = pa.schema({"k": pa.string(), "b": pa.int64()})
NAMES = (("b", "b"),)
BANDS = [(0, 0), (2, 3), (-1, 4), (3, -1), (0, 5), (-2, 2)]


def drawn(random, column, events, *, removals, spread=12, stables=0.3):
    """A stream of points, some of them twice, some removed, with a stable now and then."""
    said, alive, stable = [], [], -spread
    for n in range(events):
        at = stable + random.randint(0, spread)
        key = random.choice(["x", "x", "y", None])
        payload = {name: v for name, v in (("k", key), (column, random.randint(0, 2))) if v is not None}
        said.append(Insert(payload, at, at + random.choice([1, 1, 7])))
        alive.append(said[-1])
        if removals and random.random() < 0.3:
            gone = random.choice([e for e in alive if e.start >= stable])
            alive.remove(gone)
            said.append(Adjust(gone.payload, gone.start, gone.end, gone.start))
        if random.random() < stables or n == events - 1:
            stable = stable + random.randint(1, spread) if n < events - 1 else FOREVER
            alive = [e for e in alive if e.start >= stable]
            said.append(Stable(stable))
    return said


def at_both_ends(random, column):
    """A stream of points near the first and the last tick, some removed, with a stable now and then."""
    said, alive, stable = [], [], BEGINNING
    for base in (BEGINNING, FOREVER - 12):
        stable = max(stable, base)
        for _ in range(random.randint(1, 12)):
            at = min(stable + random.randint(0, 4), FOREVER - 1)
            payload = {"k": random.choice("xxy"), column: random.randint(0, 2)}
            said.append(Insert(payload, at, at + 1))
            alive.append(said[-1])
            if random.random() < 0.2:
                gone = alive.pop(random.randrange(len(alive)))
                said.append(Adjust(gone.payload, gone.start, gone.end, gone.start))
            if random.random() < 0.2 and stable < FOREVER - 2:
                stable += random.randint(1, 2)
                alive = [e for e in alive if e.start >= stable]
                said.append(Stable(stable))
        alive = []
        said.append(Stable(max(stable, FOREVER - 12)))
    return [*said, Stable(FOREVER)]


def rows(world):
    """The events of a world with plain payloads."""
    return [(tuple(sorted((n, v[1]) for n, v in key)), start, end) for key, start, end in world.rows]


class Judge:
    """A kernel beside the oracle."""

    def __init__(self, terms, meaning, removable=(True, True)):
        self.terms, self.meaning, self.removable = terms, meaning, removable
        self.kernel = Join(terms, removable)
        self.worlds, self.output = {"left": World(), "right": World()}, World()
        self.parted = False

    def push(self, name, elements):
        """Push and promise what is said, compare, and compare again after the promise."""
        schema = LEFT if name == "left" else RIGHT
        for element in elements:
            assert self.worlds[name].apply(element) is None
        events = [e for e in elements if not isinstance(e, Stable)]
        if events:
            self.say(self.kernel.push(name, Batch.of(events, schema=schema)))
        times = [e.time for e in elements if isinstance(e, Stable)]
        if times:
            self.say(self.kernel.advance(name, max(times)))
        self.parted |= bool(self.kernel.keys.stretches.any())
        self.output.apply(Stable(self.kernel.frontier))
        self.compare()

    def say(self, result):
        assert not result.refused
        for element in result.events:
            broken = self.output.apply(element)
            assert broken is None, f"{element} breaks {broken} at {self.output.stable}"

    def compare(self):
        left, right = self.worlds["left"], self.worlds["right"]
        meant = oracle.joined(rows(left), rows(right), self.meaning, right.stable)
        assert Counter(rows(self.output)) == Counter(meant)
        assert self.kernel.frontier == oracle.frontier(left.stable, right.stable, self.meaning)

    def restart(self):
        self.kernel = Join.load(self.kernel.saved(), self.terms, self.removable)


def judged(how, at, band, *, where=False, keyed=True, starts=(None, None), removable=(True, True)):
    """A kernel and the oracle on one set of terms."""
    on = (("k", "k"),) if keyed else ()
    names = NAMES if keyed else (("k", "k_right"), *NAMES)
    condition = (ab.col("a") <= ab.col("b")).tree if where else None
    if how in ("semi", "anti"):
        at, starts = "later", (None, None)
    terms = Terms(LEFT, RIGHT, on, Band(*band), how, at, condition, names, starts)
    called = {"k": "" if keyed else "k_right"}
    true = (lambda pair: pair["a"] <= pair["b"]) if where else oracle._always
    return Judge(terms, oracle.Terms(on, *band, how, at, true, called, starts), removable)


def play(judge, random, *, removals=(True, True), **shape):
    """Two streams that are drawn."""
    play_streams(
        judge,
        random,
        {
            name: drawn(random, column, removals=removed, **({"events": 25} | shape))
            for name, column, removed in zip(("left", "right"), "ab", removals, strict=True)
        },
    )


def play_streams(judge, random, left):
    """Two streams in pieces, in a random order, with restarts; nothing is kept at the end."""
    while any(left.values()):
        name = random.choice([name for name, rest in left.items() if rest])
        count = random.choice([1, 1, 2, 5, 30])
        piece, left[name] = left[name][:count], left[name][count:]
        judge.push(name, _stable_last(piece))
        if random.random() < 0.1:
            judge.restart()
    report = judge.kernel.report()
    assert (report.live, judge.kernel.keys.numbers.used) == (0, 0)
    assert judge.output.stable == FOREVER


def _stable_last(piece):
    """What is behind a stable in a piece is valid before it too."""
    return [e for e in piece if not isinstance(e, Stable)] + [e for e in piece if isinstance(e, Stable)]


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("band", BANDS)
def test_a_join_is_what_it_means_after_every_push_and_its_promise_is_exact(how, band):
    for seed in range(12):
        random = Random(seed)
        at = random.choice(["later", "earlier", "left", "right"])
        starts = random.choice([(None, None), ("l", "r"), (None, "r")])
        judge = judged(how, at, band, where=random.random() < 0.5, keyed=random.random() < 0.7, starts=starts)
        play(judge, random)


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_streams_of_which_nothing_is_removed_are_joined_without_identities(how):
    for seed in range(8):
        random = Random(seed)
        judge = judged(how, "later", (2, 2), removable=(False, False))
        play(judge, random, removals=(False, False))
        assert not len(judge.kernel.sides[0].nodes.words)


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_keys_with_many_events_are_joined_as_others(how):
    for seed in range(2):
        random = Random(seed)
        judge = judged(how, "earlier", random.choice(BANDS), keyed=random.random() < 0.5)
        play(judge, random, spread=100, events=150, stables=0.02)
        assert judge.parted


def test_a_key_with_many_events_is_kept_by_stretches_of_time():
    kernel = Join(judged("inner", "later", (1, 1)).terms)
    many = [Insert({"k": "x", "a": 1}, at, at + 1) for at in range(0, 20_000, 2)]
    kernel.push("left", Batch.of(many, schema=LEFT))
    assert kernel.keys.stretches.max() == 10_000
    before = kernel.report().counts["touched"]
    for at in range(0, 20_000, 500):
        found = kernel.push("right", Batch.of([Insert({"k": "x", "b": 1}, at, at + 1)], schema=RIGHT)).events
        assert [e.start for e in found] == [at]
    assert kernel.report().counts["touched"] - before <= 3 * 40
    for name in ("left", "right"):
        kernel.advance(name, FOREVER)
    assert (kernel.report().live, kernel.keys.numbers.used) == (0, 0)


def test_times_beyond_two_to_the_53_and_at_the_ends_of_time():
    kernel, far = Join(judged("inner", "left", (FOREVER - 1, FOREVER - 1)).terms), 2**53 + 1
    times = (BEGINNING, -far, far, far + 1, FOREVER - 2)
    kernel.push("left", Batch.of([Insert({"k": "x", "a": 1}, at, at + 1) for at in times], schema=LEFT))
    found = kernel.push("right", Batch.of([Insert({"k": "x", "b": 1}, far, far + 1)], schema=RIGHT)).events
    assert sorted(e.start for e in found) == [-far, far, far + 1, FOREVER - 2]
    near = Join(judged("inner", "later", (0, 0)).terms)
    near.push("left", Batch.of([Insert({"k": "x", "a": 1}, at, at + 1) for at in times], schema=LEFT))
    found = near.push("right", Batch.of([Insert({"k": "x", "b": 1}, far + 1, far + 2)], schema=RIGHT)).events
    assert [e.start for e in found] == [far + 1]


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("band", BANDS)
def test_a_join_at_both_ends_of_time_is_what_it_means_after_every_push(how, band):
    for seed in range(10):
        random = Random(seed)
        judge = judged(how, random.choice(["later", "earlier", "left", "right"]), band)
        streams = {"left": at_both_ends(random, "a"), "right": at_both_ends(random, "b")}
        play_streams(judge, random, streams)


def test_an_event_near_the_beginning_has_no_match_before_the_beginning():
    kernel = Join(judged("inner", "later", (3, -2)).terms)
    first = [Insert({"k": "x", "b": 1}, BEGINNING, BEGINNING + 1)]
    kernel.push("right", Batch.of(first, schema=RIGHT))
    later = [Insert({"k": "x", "a": at}, BEGINNING + at, BEGINNING + at + 1) for at in range(5)]
    pairs = kernel.push("left", Batch.of(later, schema=LEFT)).events.elements()
    assert [pair.payload["a"] for pair in pairs] == [2, 3]


# What the paper prints, and what is right (errata of OOP, section 4).


def test_the_band_is_by_the_ranges_of_the_other_side():
    """4.1: with the ranges as the text has them, an event is let go that one to come matches."""
    judge = judged("inner", "later", (0, 2))
    judge.push("right", [Stable(3)])
    judge.push("left", [Insert({"k": "x", "a": 1}, 2, 3)])
    judge.push("right", [Insert({"k": "x", "b": 1}, 4, 5)])
    assert [row[1] for row in judge.output.rows] == [4]


def test_an_event_is_kept_while_its_last_match_may_come():
    """4.1: the limits are included, so what is let go is strictly before them."""
    judge = judged("inner", "later", (0, 2))
    judge.push("left", [Insert({"k": "x", "a": 1}, 1, 2)])
    judge.push("right", [Stable(3), Insert({"k": "x", "b": 1}, 3, 4)])
    assert [row[1] for row in judge.output.rows] == [3]
    judge.push("right", [Stable(4)])
    judge.push("left", [Stable(4)])
    assert judge.kernel.report().live <= 2


def test_a_promise_never_falls_and_is_not_repeated():
    """4.2: a stable that says less than one before it changes nothing."""
    kernel = Join(judged("inner", "later", (2, 2)).terms)
    kernel.advance("left", 9)
    kernel.advance("right", 7)
    kernel.advance("right", 3)
    assert (kernel.pair, kernel.frontier) == ((9, 7), 7)


def test_of_the_later_time_the_promise_of_the_slower_side_holds():
    """4.3: for the later time the lesser of both stables is promised, and for the earlier one less."""
    for at, promised in (("later", 10), ("earlier", 7), ("left", 7), ("right", 10)):
        kernel = Join(judged("inner", at, (2, 3)).terms)
        kernel.advance("left", 12)
        kernel.advance("right", 10)
        assert kernel.frontier == promised


@pytest.mark.parametrize("band", [(1, 1), (2, 0), (-1, 2)])
def test_a_group_of_both_times_is_closed_when_both_have_passed_it_and_no_sooner(band):
    """4.4: a pair of starts may still come if and only if it is not before both promises."""
    for left, right, one, other in product(range(4), repeat=4):
        if not oracle.Terms((), *band).near(one, other):
            continue
        kernel = Join(judged("inner", "later", band).terms)
        early = [("left", LEFT, "a", one, left), ("right", RIGHT, "b", other, right)]
        for name, schema, column, at, stable in early:
            if at < stable:
                kernel.push(name, Batch.of([Insert({"k": "x", column: 1}, at, at + 1)], schema=schema))
        for name, _, _, _, stable in early:
            kernel.advance(name, stable)
        later = [
            element
            for name, schema, column, at, stable in early
            if at >= stable
            for element in kernel.push(
                name, Batch.of([Insert({"k": "x", column: 1}, at, at + 1)], schema=schema)
            ).events
        ]
        closed = one < kernel.pair[0] and other < kernel.pair[1]
        assert bool(later) != closed


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("at", ["later", "earlier", "left", "right"])
def test_something_may_still_come_at_the_very_time_of_the_promise(at, band):
    """The promise is exact: one tick more would be broken by some stream."""
    for left, right in product(range(10, 16), repeat=2):
        promised = Band(*band).frontier(at, left, right)
        terms = oracle.Terms((), *band, at=at)
        open_pairs = [
            terms.time(one, other)
            for one, other in product(range(30), repeat=2)
            if terms.near(one, other) and (one >= left or other >= right)
        ]
        assert min(open_pairs) == promised


def test_what_can_match_nothing_to_come_is_not_kept():
    kernel = Join(judged("inner", "later", (0, 2)).terms)
    kernel.advance("right", 10)
    kernel.push("left", Batch.of([Insert({"k": "x", "a": 1}, 7, 8)], schema=LEFT))
    assert kernel.report().live == 0
    kernel.push("left", Batch.of([Insert({"a": 1}, 20, 21)], schema=LEFT))
    assert kernel.report().live == 0
    kernel.push("left", Batch.of([Insert({"k": "x", "a": 1}, 8, 9)], schema=LEFT))
    assert kernel.report().live == 1


def test_what_is_over_is_let_go_as_rows_come():
    """Nobody asks for these keys again, and at most as much again as can match is kept, or a thousand."""
    kernel = Join(judged("inner", "later", (5, 5)).terms, (False, False))
    for at in range(0, 30_000, 10):
        for name, schema, column in (("left", LEFT, "a"), ("right", RIGHT, "b")):
            batch = [Insert({"k": f"{name} {at + n}", column: 1}, at + n, at + n + 1) for n in range(10)]
            kernel.push(name, Batch.of(batch, schema=schema))
            kernel.advance(name, at)
        assert kernel.report().live <= 2 * 1024 + 64
    assert kernel.report().nbytes < 4_000_000


def test_a_pair_for_which_the_condition_fails_is_refused_and_the_others_come():
    left, right = ab.source("l", {"k": "string", "a": "int64"}), ab.source("r", {"k": "string", "b": "int64"})
    aside = Quarantine()
    job = left.join(right, on="k", within=1, where=ab.col("a") // ab.col("b") > 0).open(on_invalid=aside)
    job.push("r", [Insert({"k": "x", "b": 0}, 1, 2), Insert({"k": "x", "b": 2}, 1, 2)])
    (pair,) = job.push("l", [Insert({"k": "x", "a": 4}, 1, 2)])
    assert pair.payload == {"k": "x", "a": 4, "b": 2}
    (violation,) = aside.violations
    assert "divide by zero" in violation.message
    assert len(job.push("l", [Adjust({"k": "x", "a": 4}, 1, 2, 1)])) == 1
    assert len(aside.violations) == 1


# The laws would notice.


def _noticed(monkeypatch, owner, name, wrong):
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        play_all(range(60))


def play_all(seeds):
    """Joins of all kinds."""
    for seed in seeds:
        random = Random(seed)
        how, band = random.choice(["inner", "left", "semi", "anti"]), random.choice(BANDS)
        play(judged(how, random.choice(["later", "left"]), band), random)


def _swapped(self, side, stable, limit=Band.limit):
    return limit(self, 1 - side, stable)


def _too_soon(self, side, stable, limit=Band.limit):
    return min(limit(self, side, stable) + 1, FOREVER)


def _greatest(self, at, left, right):
    return max(left, right)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("limit", _swapped), ("limit", _too_soon), ("frontier", _greatest)],
    ids=["ranges swapped", "let go a tick too soon", "either side suffices"],
)
def test_a_wrong_band_is_noticed(monkeypatch, name, wrong):
    _noticed(monkeypatch, Band, name, wrong)


def test_removals_that_do_nothing_are_noticed(monkeypatch):
    heard = Side.heard
    monkeypatch.setattr(Side, "heard", lambda self, batch: heard(self, batch.take(batch.kind == Kind.INSERT)))
    with pytest.raises(AssertionError):
        play_all(range(20))
