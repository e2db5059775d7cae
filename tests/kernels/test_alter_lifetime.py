"""Altered lifetimes are those of the oracle after every push, and promise all that can be promised."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import cases

from anabranch import BEGINNING, FOREVER, Adjust, Batch, Insert, Relation, Stable, observe, parse, text
from anabranch.kernels.alter_lifetime import AlterLifetime
from anabranch.kernels.kernel import Step
from anabranch.model.elements import sync
from anabranch.model.lifetime import END, START, Length, Lifetime, UnsoundLifetimeError
from anabranch.model.origin import Origin
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.validity import Rule
from anabranch.oracle.alter_lifetime import altered, fails, frontier, image
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World
from anabranch.testing.presentations import Habits, present
from anabranch.testing.references import Shape, reference

randoms = st.randoms(use_true_random=False)
CHANGING = Habits(revisions=0.6, comebacks=0.3, spurious=0.6, stables=0.6)
OWN = END - START
FORMS = [
    Lifetime.of(),
    Lifetime.lasting(1),
    Lifetime.lasting(3),
    Lifetime.hop(4, 2),
    Lifetime.hop(6, 3),
    Lifetime.tumble(3),
    Lifetime.shift(2),
    Lifetime.shift(-3),
    Lifetime.extend(2),
    Lifetime.extend(-2),
    Lifetime.clip(1),
    Lifetime.clip(3),
    Lifetime.started(),
    Lifetime.ended(),
    Lifetime.of(END, 2),
    Lifetime.of(START.floor(3), OWN),
    Lifetime.of(START.floor(3) + 1, OWN + 1),
    Lifetime.of(START.floor(3), OWN + 4),
    Lifetime.of(START.floor(3), OWN - 2),
    *(Lifetime.of(START.floor(4), OWN.at_most(most)) for most in (1, 2, 3, 4, 6)),
    Lifetime.of(START.floor(2) - 1, OWN.at_most(3)),
    Lifetime.of(START - 2, OWN + 3),
    Lifetime.of(START + 2, OWN - 3),
    Lifetime.of(START + 1, OWN.at_most(2)),
    Lifetime.of(START.floor(2), FOREVER),
]
forms = pytest.mark.parametrize("lifetime", FORMS, ids=str)
any_form = st.sampled_from(FORMS)


def drawn(random: Random, case: Case = Case.R4, shape: Shape | None = None) -> list:
    return present(reference(random, case=case, shape=shape), random, case=case, habits=CHANGING)


def cut(stream: list, random: Random):
    while stream:
        length = random.choice([len(stream), 5, 2, 1, 1])
        yield stream[:length]
        stream = stream[length:]


def mapped(lifetime, elements) -> list:
    return list(AlterLifetime(lifetime).map(Batch.of(elements)).events.elements())


def bag(world_or_rows) -> list:
    return sorted(world_or_rows, key=str)


def stable_of(elements, before=BEGINNING) -> int:
    return max([before, *(e.time for e in elements if isinstance(e, Stable))])


@settings(max_examples=cases(150))
@given(lifetime=any_form, case=st.sampled_from(Case), random=randoms)
def test_after_every_push_the_output_is_the_image_of_the_input_and_keeps_its_promises(lifetime, case, random):
    step: Step = AlterLifetime(lifetime)
    told, output, relation = World(), World(), Relation()
    for part in cut(drawn(random, case), random):
        for element in part:
            assert told.apply(element) is None
        result = step.map(Batch.of(part))
        assert result.refused == ()
        relation.apply(result.events)
        for element in result.events.elements():
            assert output.apply(element) is None, element
            assert not (isinstance(element, Adjust) and element.old_end == element.end)
        assert bag(output.rows) == bag(altered(told.rows, lifetime))
        promise = Stable(step.reached(told.stable))
        output.apply(promise)
        relation.apply(promise)
    assert output.stable == FOREVER


@settings(max_examples=cases(30))
@given(lifetime=any_form, random=randoms)
def test_a_batch_gives_what_its_elements_give_one_by_one(lifetime, random):
    stream = drawn(random)
    assert mapped(lifetime, stream) == [out for element in stream for out in mapped(lifetime, [element])]


SMALL = range(-6, 10)
AT = range(-2, 7)


def possible(time) -> list:
    """All that may come of events near a time, after a stable."""
    far = [*SMALL, FOREVER]
    lifetimes = [(s, e) for s, e in product(range(-14, 10), far) if s < e]
    inserts = [Insert({}, s, e) for s, e in lifetimes]
    adjusts = [Adjust({}, s, x, y) for s, x in lifetimes for y in [s, *far] if y >= s and y != x]
    valid = []
    for element in (*inserts, *adjusts):
        rows = [] if isinstance(element, Insert) else [(frozenset(), element.start, element.old_end)]
        if World(rows, time).verdict(element) is None:
            valid.append(element)
    return valid


@pytest.fixture(scope="module")
def possibilities():
    return {time: Batch.of(possible(time)) for time in AT}


@forms
def test_no_promise_is_broken_and_none_could_be_greater(lifetime, possibilities):
    step = AlterLifetime(lifetime)
    for time in AT:
        out = step.map(possibilities[time]).events
        syncs = [sync(element) for element in out.elements()]
        assert step.reached(time) == min(syncs) == frontier(time, lifetime)


@forms
def test_promises_are_monotone_and_keep_the_ends_of_time(lifetime):
    step = AlterLifetime(lifetime)
    assert step.reached(BEGINNING) == BEGINNING
    assert step.reached(FOREVER) == FOREVER
    times = [BEGINNING, BEGINNING + 1, BEGINNING + 2, *range(-9, 30), FOREVER - 3, FOREVER - 1, FOREVER]
    promises = [step.reached(time) for time in times]
    assert promises == sorted(promises)
    assert promises[0] < promises[3]


@forms
def test_what_is_forgone_is_all_that_no_image_needs(lifetime):
    step = AlterLifetime(lifetime)
    ends = {}
    for s in range(-60, 40):
        for e in [*range(s + 1, 41), FOREVER]:
            if (found := image(s, e, lifetime)) is not None:
                ends[e] = max(ends.get(e, BEGINNING), found[1])
    for time in AT:
        needed = min(e for e, last in ends.items() if last >= time)
        forgone = step.forgone(time)
        if forgone == BEGINNING:
            assert lifetime.duration.ticks == FOREVER
        else:
            assert forgone == needed
    assert step.forgone(BEGINNING) == BEGINNING


EXTREME = [BEGINNING, BEGINNING + 1, BEGINNING + 3, -1, 0, 2, FOREVER - 3, FOREVER - 1, FOREVER]
WIDE = [
    Lifetime.shift(2**62 - 1),
    Lifetime.shift(1 - 2**62),
    Lifetime.lasting(2**62 - 1),
    Lifetime.extend(2**62 - 1),
    Lifetime.of(START - (2**62 - 1), OWN + (2**62 - 1)),
    Lifetime.of(START.floor(2**62 - 1), OWN - (2**62 - 1)),
]
EDGES = [(s, e) for s, e in product(EXTREME, EXTREME) if s < e]
EDGE_INSERTS = [Insert({"v": n}, s, e) for n, (s, e) in enumerate(EDGES)]
EDGE_ADJUSTS = [
    Adjust({"v": n}, s, x, y)
    for n, (s, x, y) in enumerate((s, x, y) for s, x in EDGES for y in EXTREME if y >= s and y != x)
]


def by_number(batch: Batch) -> dict[int, list]:
    found = {}
    for element in batch.elements():
        found.setdefault(element.payload["v"], []).append(element)
    return found


@pytest.mark.parametrize("lifetime", FORMS + WIDE, ids=str)
def test_at_the_ends_of_time_images_are_as_without_limits_or_their_rows_are_refused(lifetime):
    events, refused = AlterLifetime(lifetime).map(Batch.of(EDGE_INSERTS))
    images = [(e.payload, image(e.start, e.end, lifetime)) for e in EDGE_INSERTS]
    assert list(events) == [Insert(payload, *found) for payload, found in images if found is not None]
    failed = [e for e in EDGE_INSERTS if fails(e.start, lifetime)]
    assert sorted((e for part in refused for e in part.batch), key=lambda e: e.payload["v"]) == failed


@pytest.mark.parametrize("lifetime", FORMS + WIDE, ids=str)
def test_at_the_ends_of_time_revisions_keep_to_what_was_promised(lifetime):
    step = AlterLifetime(lifetime)
    out = by_number(step.map(Batch.of(EDGE_ADJUSTS)).events)
    promises = {time: step.reached(time) for time in EXTREME}
    for element in EDGE_ADJUSTS:
        made = out.get(element.payload["v"], [])
        key = payload_key(element.payload)
        world = World(altered([(key, element.start, element.old_end)], lifetime))
        assert [world.apply(one) for one in made] == [None] * len(made)
        now = [] if element.removes else [(key, element.start, element.end)]
        assert world.rows == altered(now, lifetime)
        least = min(map(sync, made), default=FOREVER)
        for time, promise in promises.items():
            if World([(key, element.start, element.old_end)], time).verdict(element) is None:
                assert least >= promise


def test_rows_without_an_image_are_refused_as_they_came_with_their_origin():
    rows = [Insert({"v": 1}, FOREVER - 3, FOREVER), Insert({"v": 2}, 0, 1), Stable(3)]
    batch = Batch.of([*rows, Insert({"v": 3}, BEGINNING, 7)]).with_origin(Origin(np.array([5, 6, 7, 8])))
    events, refused = AlterLifetime(Lifetime.of(START + 4, 9)).map(batch)
    assert list(events) == [Insert({"v": 2}, 4, 13)]
    assert events.origin.number.tolist() == [6]
    assert [(r.rule, r.batch.origin.number.tolist(), r.known.tolist()) for r in refused] == [
        (Rule.FAILED, [5], [FOREVER - 3]),
        (Rule.FAILED, [8], [BEGINNING]),
    ]
    assert refused[0].detail == "start + 4 is beyond the ends of time where the start is {known}"
    assert Rule.FAILED.statement == "an expression or a function gives a value for every row"


def test_identities_that_are_known_are_kept():
    batch = Batch.of([Insert({"v": 1}, 0, 5), Adjust({"v": 1}, 0, 5, 3), Stable(1), Insert({"v": 2}, 4, 5)])
    known = batch.identities
    events = AlterLifetime(Lifetime.ended()).map(batch).events
    assert "identities" in events.__dict__
    assert (events.identities == known[[0, 1, 1, 3]]).all()


@settings(max_examples=cases(150))
@given(lifetime=any_form, case=st.sampled_from(Case), random=randoms)
def test_what_is_derived_of_the_output_is_seen_in_it(lifetime, case, random):
    stream = drawn(random, case)
    events = [e for e in stream if not isinstance(e, Stable)]
    endless = any(e.end == FOREVER for e in events)
    longest = None if endless else max((e.end - e.start for e in events), default=1)
    seen = observe([Batch.of(stream)]).properties()
    given_ = Properties(seen.facts, None, longest)
    derived = lifetime.properties(given_)
    out = [*mapped(lifetime, stream), Stable(AlterLifetime(lifetime).reached(stable_of(stream)))]
    found = observe([Batch.of(out)]).properties()
    unseen = {Fact.DETERMINISTIC_TIES, Fact.DISJOINT, Fact.PUNCTUATED, Fact.COMPLETE}
    assert derived.facts - unseen <= found.facts
    images = [e for e in out if isinstance(e, Insert)]
    assert derived.longest is None or all(e.end - e.start <= derived.longest for e in images)


@settings(max_examples=cases(40))
@given(lifetime=any_form, random=randoms)
def test_a_closed_input_has_the_output_that_is_derived(lifetime, random):
    stream = drawn(random)[:-1]
    last = max((t for e in stream if not isinstance(e, Stable) for t in (e.start, e.end)), default=0)
    stream.append(Stable(last))
    derived = lifetime.properties(Properties.of(Fact.CLOSED))
    out = [*mapped(lifetime, stream), Stable(AlterLifetime(lifetime).reached(stable_of(stream)))]
    assert Fact.CLOSED not in derived or Fact.CLOSED in observe([Batch.of(out)]).properties()


@settings(max_examples=cases(30))
@given(lifetime=any_form, random=randoms)
def test_ties_that_are_derived_come_in_one_order_whatever_the_replica(lifetime, random):
    """Two replicas in order, whose ties have one order, differ only in where their stables are."""
    stream = drawn(random, Case.R1)
    derived = lifetime.properties(Case.R1.value)
    out = mapped(lifetime, stream)
    assert Fact.DETERMINISTIC_TIES not in derived or [sync(e) for e in out] == sorted(map(sync, out))


@forms
def test_lifetimes_that_are_disjoint_stay_so_where_that_is_derived(lifetime):
    if Fact.DISJOINT not in lifetime.properties(Properties.of(Fact.DISJOINT)):
        return
    for a, b, c, d in product(range(8), repeat=4):
        if a < b <= c < d:
            one, other = image(a, b, lifetime), image(c, d, lifetime)
            assert one is None or other is None or one[1] <= other[0]


HISTORY = "+ a [0, 5)\n| 4\n~ a [0, 5) -> [0, 4)"


def test_a_revision_that_changes_no_image_says_nothing_behind_the_promise():
    """As printed, a window of 3 gave a retraction at 3 after its own stable 4."""
    for lifetime in (Lifetime.lasting(3), Lifetime.clip(3), Lifetime.hop(4, 2)):
        assert text(mapped(lifetime, parse(HISTORY))) == text(mapped(lifetime, parse("+ a [0, 5)")))


def test_a_full_removal_removes_the_image_whatever_its_length():
    out = mapped(Lifetime.lasting(3), parse("+ a [0, 2)\n~ a [0, 2) -> [0, 0)"))
    assert out == parse("+ a [0, 3)\n~ a [0, 3) -> [0, 0)")


def test_an_end_that_is_revised_moves_what_starts_there_by_removal_and_insert():
    """As printed, deletes gave a retraction from infinity to infinity."""
    out = mapped(Lifetime.ended(), parse("+ a [0, 2)\n~ a [0, 2) -> [0, 1)\n~ a [0, 1) -> [0, inf)"))
    assert out == parse("+ a [2, inf)\n~ a [2, inf) -> [2, 2)\n+ a [1, inf)\n~ a [1, inf) -> [1, 1)")


def test_an_image_that_is_empty_is_none_until_its_event_is_longer():
    out = mapped(Lifetime.extend(-2), parse("+ a [0, 2)\n~ a [0, 2) -> [0, 5)\n~ a [0, 5) -> [0, 1)"))
    assert out == parse("+ a [0, 3)\n~ a [0, 3) -> [0, 0)")


def test_an_event_that_ends_at_the_stable_may_still_be_extended_so_its_image_may():
    assert AlterLifetime(Lifetime.extend(2)).reached(5) == 5
    assert AlterLifetime(Lifetime.extend(-2)).reached(5) == 3
    assert AlterLifetime(Lifetime.ended()).reached(5) == 5


def test_each_hop_shows_the_window_that_ends_with_it():
    size, every = 6, 2
    events = [(s, s + 1) for s in range(-20, 20)]
    shown = {s: image(s, e, Lifetime.hop(size, every)) for s, e in events}
    for time in range(-6, 10):
        hop = time // every * every
        there = {s for s, (first, last) in shown.items() if first <= time < last}
        assert there == set(range(hop + every - size, hop + every))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: Lifetime.of(START, OWN / 2), "C3"),
        (lambda: Lifetime.of(START, OWN * 2), "C3"),
        (lambda: Lifetime.of(START, -OWN), "C2"),
        (lambda: Lifetime.of(-START), "C1"),
        (lambda: Lifetime.of(2 * START), "C1"),
        (lambda: Lifetime.of(7), "C1"),
        (lambda: Lifetime.of(END + 2, 5), "as it is"),
        (lambda: Lifetime.of(END.floor(2), 5), "as it is"),
        (lambda: Lifetime.of(END, OWN), "ticks, or FOREVER"),
        (lambda: START - END, "END - START"),
        (lambda: (START + 1).floor(2), "the start itself"),
        (lambda: (OWN + 1).at_most(2), "at most"),
        (lambda: OWN.at_most(2) + 1, "END - START alone"),
    ],
)
def test_a_lifetime_of_which_nothing_could_be_promised_is_refused_with_the_reason(wrong, why):
    with pytest.raises(UnsoundLifetimeError, match=why) as caught:
        wrong()
    assert caught.value.__notes__


def test_lengths_that_are_none_are_refused():
    for wrong in (0, -3):
        for make in (Lifetime.lasting, Lifetime.clip, Lifetime.tumble):
            with pytest.raises(ValueError, match="at least 1"):
                make(wrong)
    with pytest.raises(ValueError, match="5 is none of 2"):
        Lifetime.hop(5, 2)
    with pytest.raises(OverflowError, match="2\\*\\*62"):
        Lifetime.shift(2**62)
    with pytest.raises(TypeError, match="ticks"):
        Lifetime.of(START, 1.5)


def test_lifetimes_are_values_that_say_what_they_are():
    assert Lifetime.tumble(5) == Lifetime.hop(5, 5) == Lifetime.of(START.floor(5), 5)
    assert Lifetime.of(START, Length.fixed(3)) == Lifetime.lasting(3)
    texts = [Lifetime.shift(2), Lifetime.shift(-2), Lifetime.extend(3), Lifetime.clip(3), Lifetime.started()]
    assert list(map(str, texts)) == [
        "[start + 2, end + 2)",
        "[start - 2, end - 2)",
        "[start, end + 3)",
        "[start, + min(end - start, 3))",
        "[start, ∞)",
    ]
    assert [f.moves_start for f in texts] == [True, True, False, False, False]
    assert [f.follows_end for f in texts] == [True, True, True, True, False]
