"""The compiled merge of R0, R1 and R2 gives the very elements that the scans of the oracle give."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.merge import FAULTS, Scenario, merges, played
from quick import cases

from anabranch import (
    BEGINNING,
    FOREVER,
    Adjust,
    Attach,
    Batch,
    BrokenPropertyError,
    Case,
    Drop,
    Generalise,
    Insert,
    Merger,
    Quarantine,
    Raise,
    Stable,
    Tagged,
)
from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.ties import find_tied
from anabranch.model.elements import Element
from anabranch.model.properties import Fact
from anabranch.oracle.merge import OrderedMerge

randoms = st.randoms(use_true_random=False)

ORDERED = (Case.R0, Case.R1, Case.R2)
HARMLESS = [(case, fault) for case in ORDERED for fault in FAULTS if (case, fault) != (Case.R1, "gap")]
"""An input of R1 with a gap inside a tie breaks a promise, so it is not compared."""

each_harmless = pytest.mark.parametrize(
    ("case", "fault"), HARMLESS, ids=[f"{case.name} {fault}" for case, fault in HARMLESS]
)


def x(name: str, start: int = 5, end: int = 9) -> Insert:
    return Insert({"value": name}, start, end)


class ByElement:
    """The kernel with names for its numbers, one element at a time; who breaks a promise is left out."""

    def __init__(self, case: Case) -> None:
        self.sides = Sides.of_capacity(1)
        self.kernel = Ordered(case, self.sides)
        self.numbers: dict[str, int] = {}
        self.attaches = 0
        self.left_out = []

    def attach(self, name, guarantee=BEGINNING, *, complete=True):
        if self.sides.free() is None:
            self.sides = self.sides.doubled()
            self.kernel.widen(self.sides)
        number = self.numbers[name] = self.sides.free()
        self.sides.attach(number, guarantee, self.attaches, complete=complete, stable=self.kernel.stable)
        self.attaches += 1
        return self._done(Ordered.settle)

    def detach(self, name):
        number = self.numbers.pop(name)
        self.sides.attached[number] = self.sides.joined[number] = False
        self.kernel.forget(number)
        return self._done(Ordered.settle)

    def push(self, name, element):
        return self.push_all(name, [element])

    def push_all(self, name, elements):
        return self._done(lambda kernel: kernel.push(self.numbers[name], Batch.of(elements)))

    def _done(self, act):
        try:
            return list(act(self.kernel).elements())
        except Broken as broken:
            out = list(broken.output.elements())
            (number, batch), *others = broken.pending
            self.left_out.append((broken.fact, batch.element(0)))
            for i, rest in [(number, batch[1:]), *others]:
                out += self._done(lambda kernel, i=i, rest=rest: kernel.push(i, rest))
            return out


class Restarted(ByElement):
    """It is dumped and loaded before each thing it does."""

    def _done(self, act):
        state, batches = self.kernel.dump()
        self.sides = Sides(*(column.copy() for column in self.sides))
        self.kernel = Ordered.load(
            self.sides, None, json.loads(json.dumps(state)), [stored(b) for b in batches]
        )
        return super()._done(act)


class Batched(ByElement):
    """What one input says in a row arrives in batches of any length."""

    def __init__(self, case: Case, random: Random) -> None:
        super().__init__(case)
        self.random = random
        self.waiting: list[Tagged] = []

    def attach(self, name, guarantee=BEGINNING, *, complete=True):
        return self.flushed() + super().attach(name, guarantee, complete=complete)

    def detach(self, name):
        return self.flushed() + super().detach(name)

    def push(self, name, element):
        turn = self.waiting and (self.waiting[0].input != name or self.random.random() < 0.1)
        out = self.flushed() if turn else []
        self.waiting.append(Tagged(name, element))
        return out

    def flushed(self):
        waiting, self.waiting = self.waiting, []
        return self.push_all(waiting[0].input, [item.element for item in waiting]) if waiting else []


def stored(rows: pa.RecordBatch) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        return reader.read_all().combine_chunks().to_batches()[0] if rows.num_rows else rows


def shuffled_ties(scenario: Scenario, random: Random) -> Scenario:
    """What R1 may say, true duplicates included, in the freedom of R2: any order within a start."""
    places = defaultdict(list)
    attaches = defaultdict(int)
    for row, item in enumerate(scenario.recording):
        if isinstance(item.element, Attach):
            attaches[item.input] += 1
        if isinstance(item.element, Insert):
            places[item.input, attaches[item.input], item.element.start].append(row)
    recording = list(scenario.recording)
    for rows in places.values():
        for row, other in zip(rows, random.sample(rows, len(rows)), strict=True):
            recording[row] = scenario.recording[other]
    return replace(scenario, case=Case.R2, recording=recording)


def runs_together(inputs: list[Tagged], random: Random) -> list[Tagged]:
    """The same elements of each input, with longer runs of one input."""
    rows = list(inputs)
    for _ in range(2 * len(rows)):
        row = random.randrange(len(rows) - 1)
        before = rows[row - 1].input if row else None
        if rows[row].input not in (before, rows[row + 1].input) and rows[row + 1].input == before:
            rows[row], rows[row + 1] = rows[row + 1], rows[row]
    return rows


def drawn(random: Random, case: Case, fault: str) -> Scenario:
    scenario = Scenario.drawn(random, case, fault)
    if case is Case.R2 and random.random() < 0.5:
        return shuffled_ties(Scenario.drawn(random, Case.R1, fault), random)
    return scenario


def output(subject, scenario: Scenario) -> list:
    out = [element for said, _ in played(subject, scenario) for element in said]
    return out + (subject.flushed() if isinstance(subject, Batched) else [])


@each_harmless
@pytest.mark.parametrize("subject", [ByElement, Restarted])
@settings(max_examples=cases(12))
@given(random=randoms)
def test_it_gives_the_elements_of_the_oracle_one_by_one(subject, case, fault, random):
    scenario = drawn(random, case, fault)
    kernel, oracle = subject(case), OrderedMerge(case)
    for (ours, _), (theirs, _) in zip(played(kernel, scenario), played(oracle, scenario), strict=True):
        assert ours == theirs
        assert (kernel.kernel.stable, kernel.kernel.latest) == (oracle.stable, oracle.latest)
    assert not kernel.left_out


@each_harmless
@settings(max_examples=cases(20))
@given(random=randoms)
def test_how_an_input_is_cut_into_batches_does_not_change_the_output(case, fault, random):
    scenario = drawn(random, case, fault)
    scenario = replace(scenario, recording=runs_together(scenario.recording, random))
    kernel = Batched(case, random)
    assert output(kernel, scenario) == output(OrderedMerge(case), scenario)
    assert not kernel.left_out


@each_harmless
@settings(max_examples=cases(8))
@given(random=randoms)
def test_the_output_is_valid_compatible_and_right(case, fault, random):
    merges(lambda scenario: ByElement(scenario.case), drawn(random, case, fault))


def with_stables(inserts: list[Insert], random: Random) -> Iterator[Element]:
    """Stables among inserts, a few of which make inserts late."""
    for this, following in pairwise([*inserts, x("end", 10)]):
        yield this
        while random.random() < 0.4:
            late = random.random() < 0.1
            yield Stable(random.randint(this.start, 9 if late else following.start))


@settings(max_examples=cases(40))
@given(random=randoms)
def test_inputs_that_wait_for_each_other_join_in_the_order_of_the_oracle(random):
    case = random.choice(ORDERED)
    ours, theirs, said = Batched(case, random), OrderedMerge(case), []
    copies = 1 if case is Case.R0 else 3
    events = [x("pqp"[n], start, start + 5) for start in range(10) for n in range(random.randint(0, copies))]
    joiners = {f"j{n}": random.randint(0, 9) for n in range(4)}
    for name, guarantee in {**joiners, "whole": BEGINNING}.items():
        said += ours.attach(name, guarantee)
        theirs.attach(name, guarantee)
    for name, guarantee in {**joiners, "whole": BEGINNING}.items():
        known = [event for event in events if event.start >= guarantee]
        for element in [*with_stables(known[: random.randint(0, len(known))], random), Stable(10)]:
            said += ours.push(name, element)
            theirs.push(name, element)
    assert said + ours.flushed() == theirs.out
    assert ours.sides.joined[list(ours.numbers.values())].all()


def with_offender(scenario: Scenario, fact: Fact, random: Random) -> tuple[Scenario, object]:
    """The scenario with one element that breaks the fact, behind some insert; None if there is no insert."""
    inserts = [row for row, item in enumerate(scenario.recording) if isinstance(item.element, Insert)]
    if not inserts:
        return scenario, None
    row = random.choice(inserts)
    name, start = scenario.recording[row].input, scenario.recording[row].element.start
    odd = {
        Fact.INSERT_ONLY: Adjust({"value": "odd"}, start, start + 2, start + 1),
        Fact.ORDERED: Insert({"value": "odd"}, start - 1, start + 1),
        Fact.STRICTLY_INCREASING: Insert({"value": "odd"}, start, start + 1),
    }[fact]
    recording = [*scenario.recording[: row + 1], Tagged(name, odd), *scenario.recording[row + 1 :]]
    return replace(scenario, recording=recording), odd


BREACHES = [
    *((case, fact) for case in ORDERED for fact in (Fact.INSERT_ONLY, Fact.ORDERED)),
    (Case.R0, Fact.STRICTLY_INCREASING),
]


@pytest.mark.parametrize(("case", "fact"), BREACHES, ids=[f"{case.name} {fact}" for case, fact in BREACHES])
@settings(max_examples=cases(25))
@given(random=randoms)
def test_who_breaks_a_promise_is_caught_at_the_element_and_can_be_left_out(case, fact, random):
    scenario = drawn(random, case, random.choice(FAULTS[:4]))
    broken, odd = with_offender(scenario, fact, random)
    kernel = Batched(case, random)
    assert output(kernel, broken) == output(OrderedMerge(case), scenario)
    assert kernel.left_out == ([(fact, odd)] if odd else [])


@settings(max_examples=cases(40))
@given(random=randoms)
def test_another_order_of_ties_is_caught_at_the_element(random):
    ties = [x(random.choice("abc")) for _ in range(random.randint(2, 6))]
    place = random.randrange(len(ties))
    odd = random.choice([x("odd"), replace(ties[place], end=8)])
    whole, clean = Batched(Case.R1, random), OrderedMerge(Case.R1)
    out = whole.attach("1") + whole.attach("2")
    clean.attach("1")
    clean.attach("2")
    for name, element in [*(("1", e) for e in ties), *(("2", e) for e in [*ties, x("a", 6)])]:
        clean.push(name, element)
    for name, element in [
        *(("1", e) for e in ties),
        *(("2", e) for e in [*ties[:place], odd, *ties[place:], x("a", 6)]),
    ]:
        out += whole.push(name, element)
    assert out + whole.flushed() == clean.out
    assert whole.left_out == [(Fact.DETERMINISTIC_TIES, odd)]


def test_a_promise_broken_in_a_queue_leaves_the_rest_of_all_queues_pending():
    merge = ByElement(Case.R1)
    for name, guarantee in {"a": BEGINNING, "b": 5, "c": 6, "d": 6}.items():
        merge.attach(name, guarantee)
    merge.push_all("b", [x("p", 5), x("p", 6), x("q", 6), x("r", 8)])
    merge.push_all("c", [x("p", 6), x("odd", 6), x("q", 6), x("r", 7)])
    merge.push_all("d", [x("p", 6), x("q", 6)])
    with pytest.raises(Broken) as caught:
        merge.kernel.push(0, Batch.of([x("p", 4), x("p", 5), x("s", 9)]))
    broken = caught.value
    assert broken.fact is Fact.DETERMINISTIC_TIES
    assert list(broken.output.elements()) == [x("p", 4), x("p", 5), x("p", 6), x("q", 6)]
    assert [(number, list(batch.elements())) for number, batch in broken.pending] == [
        (merge.numbers["c"], [x("odd", 6), x("q", 6), x("r", 7)]),
        (merge.numbers["b"], [x("q", 6), x("r", 8)]),
        (merge.numbers["a"], [x("s", 9)]),
    ]
    (number, rest), *others = broken.pending
    out = [e for i, part in [(number, rest[1:]), *others] for e in merge.kernel.push(i, part).elements()]
    assert out == [x("r", 7), x("r", 8), x("s", 9)]


@pytest.mark.parametrize("case", [Case.R1, Case.R2], ids=lambda case: case.name)
@pytest.mark.parametrize("restarted", [False, True])
def test_thousands_of_ties_with_duplicates_come_out_as_often_as_the_input_with_most_shows_them(
    case, restarted
):
    random = Random(5)
    ties = [x(str(random.randrange(400)), end=random.choice([8, 9])) for _ in range(4000)]
    ours, theirs = Restarted(case) if restarted else ByElement(case), OrderedMerge(case)
    out = []
    inputs = {}
    for name in "abcd":
        out += ours.attach(name)
        theirs.attach(name)
        order = random.sample(ties, len(ties)) if case is Case.R2 else ties
        inputs[name] = [x("first", 4), *order, x("last", 6)]
    while any(inputs.values()):
        name = random.choice([name for name, rest in inputs.items() if rest])
        count = random.choice([1, 30, 900])
        said, inputs[name] = inputs[name][:count], inputs[name][count:]
        out += ours.push_all(name, said)
        for element in said:
            theirs.push(name, element)
    assert out == theirs.out
    assert len(out) == 4002
    assert not ours.left_out


def test_what_many_ties_took_is_given_back():
    merge = ByElement(Case.R2)
    merge.attach("a")
    merge.push_all("a", [x(str(n)) for n in range(5000)])
    assert merge.kernel.live == 5000
    most = merge.kernel.nbytes
    merge.push("a", x("next", 6))
    merge.push("a", x("next", 7))
    assert merge.kernel.live == 1
    assert merge.kernel.nbytes < most / 20


@pytest.mark.parametrize("case", ORDERED, ids=lambda case: case.name)
def test_nothing_is_remembered_once_the_stable_passes(case):
    merge = ByElement(case)
    merge.attach("a")
    merge.attach("b", 50)
    merge.push_all("a", [x("p", 4), x("q", 5)])
    merge.push_all("b", [x("p", 49), x("q", 51), Stable(52)])
    assert merge.kernel.live == 2
    assert merge.push("a", Stable(FOREVER)) == [Stable(FOREVER)]
    assert merge.kernel.live == 0
    assert not merge.kernel.queues


@pytest.mark.parametrize("case", [Case.R1, Case.R2], ids=lambda case: case.name)
def test_ties_that_are_late_do_not_hide_those_that_follow(case):
    merge = ByElement(case)
    merge.attach("a")
    merge.attach("b")
    assert merge.push_all("a", [Stable(7), x("p", 5), x("p", 5), x("p", 8), x("p", 8)]) == [
        Stable(7),
        x("p", 8),
        x("p", 8),
    ]
    assert merge.push_all("b", [x("p", 8), x("p", 8), x("q", 8)]) == [x("q", 8)]


def test_a_number_that_is_reused_starts_with_nothing():
    merge = ByElement(Case.R2)
    merge.attach("a")
    merge.push_all("a", [x("p"), x("p")])
    merge.detach("a")
    merge.attach("again")
    assert merge.numbers == {"again": 0}
    assert merge.push_all("again", [x("p", 4), x("p"), x("p"), x("p")]) == [x("p")]
    assert not merge.left_out


def test_an_input_that_is_made_to_join_says_its_queue():
    merge = ByElement(Case.R0)
    merge.attach("a", 50)
    assert merge.push_all("a", [x("p", 49), x("q", 51), Stable(52)]) == []
    merge.sides.joined[0] = True
    assert list(merge.kernel.settle().elements()) == [x("q", 51), Stable(52)]
    assert merge.sides.reached[0] == 52


@pytest.mark.parametrize("case", [Case.R1, Case.R2], ids=lambda case: case.name)
def test_what_an_input_said_before_it_was_made_to_join_is_not_counted(case):
    """Behind its guarantee it is not kept: the first that it says then is the first of its start."""
    merger, oracle = Merger(case), OrderedMerge(case)
    for merge in (merger, oracle):
        merge.attach("a")
        merge.attach("b", 10)
    events = [Insert({"value": str(n)}, 3, 4) for n in range(200)]
    for name, elements in (("b", events[:100]), ("a", events[:1])):
        said = [out for element in elements for out in oracle.push(name, element)]
        assert merger.push(name, elements) == said
    merger.force_join("b")
    oracle.force_join("b")
    for element in events[:2]:
        assert merger.push("b", element) == oracle.push("b", element)
    assert merger.push("a", events[1]) == []


def test_another_end_for_what_is_out_is_a_disagreement():
    merge = ByElement(Case.R0)
    merge.attach("a")
    merge.attach("b")
    merge.push("a", x("p"))
    assert merge.push("b", x("p", end=8)) == []
    assert merge.push_all("b", [x("p", 6)]) == [x("p", 6)]
    assert merge.push("a", x("p", 6)) == []
    assert merge.sides.disagreements[:2].tolist() == [0, 1]


def test_r0_never_looks_at_payloads():
    rows = pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval())
    batch = replace(Batch.of([x("p", start) for start in range(3)]), payload=pa.record_batch({"i": rows}))
    with pytest.raises(TypeError):
        _ = batch.identities
    merge = ByElement(Case.R0)
    merge.attach("a")
    assert merge.kernel.push(0, batch) is batch
    assert len(merge.kernel.push(0, batch[:0])) == 0


@pytest.mark.parametrize("case", [Case.R1, Case.R2], ids=lambda case: case.name)
def test_there_is_room_for_every_tie_that_comes_alone(case):
    merge = ByElement(case)
    merge.attach("a")
    for number in range(130):
        assert merge.push("a", x(str(number))) == [x(str(number))]
        assert merge.kernel.ties.rows == number + 1 <= len(merge.kernel.ties.end)


def keyed_in_order(on_broken, *names: str) -> Merger:
    """A merge of R2 of inputs that promise a key too."""
    merger = Merger(on_broken=on_broken)
    for name in names:
        merger.attach(name, properties=(Fact.PERFECT, Fact.KEYED))
    return merger


def test_a_repeated_key_of_an_input_in_order_is_raised_and_the_rest_is_merged():
    merger = keyed_in_order(Raise(), "a", "b")
    with pytest.raises(BrokenPropertyError, match=r"element 2 of input 'a'.* must be keyed") as caught:
        merger.push("a", [x("p", 5, 8), x("p", 5, 9), x("q", 5, 9)])
    assert list(caught.value.output.elements()) == [x("p", 5, 8), x("q", 5, 9)]
    assert merger.push("b", [x("p", 5, 8), x("q", 5, 9), Stable(9)]) == [Stable(9)]


def test_a_merge_that_may_generalise_drops_the_declaration_and_stays_where_it_is():
    merger = keyed_in_order(Generalise(), "a", "b")
    assert merger.push("a", [x("p", 5, 8), x("p", 5, 9), Stable(6)]) == [
        x("p", 5, 8),
        x("p", 5, 9),
        Stable(6),
    ]
    assert merger.push("b", [x("p", 5, 9), x("p", 5, 8), Stable(6)]) == []
    status = merger.status()
    assert status.case == "R2"
    assert status.moves == (
        "R2 stays at -∞: a is not keyed, by its element 2",
        "R2 stays at 6: b is not keyed, by its element 2",
    )
    assert "a: complete, declared insert only, ordered, shrinking, kept, perfect" in merger.explain()


def repeating(random: Random, faulty: bool) -> list[Element]:
    """Inserts in order with stables, some payloads twice at one start; some wrong if ``faulty``."""
    elements: list[Element] = []
    start = 0
    for _ in range(random.randint(2, 14)):
        start += random.choice((0, 0, 0, 1))
        elements.append(x(random.choice("abc"), start, start + random.randint(1, 3)))
        if faulty and random.random() < 0.15:
            elements.append(x("z", start - 1, start + 9))
        if faulty and random.random() < 0.15:
            elements.append(Adjust({"value": "y"}, start, start + 3, start + 4))
        if random.random() < 0.1:
            elements.append(Stable(start))
    return [*elements, Stable(FOREVER)]


def repeats_of(elements: list[Element]) -> list[Element]:
    """The inserts in order whose payload and start have come before among those."""
    known, found, last = set(), [], BEGINNING
    for one in elements:
        if not isinstance(one, Insert) or one.start < last:
            continue
        key, last = (one.payload["value"], one.start), one.start
        if key in known:
            found.append(one)
        known.add(key)
    return found


def repeats_told(seed: int) -> None:
    """Each repeat of each input, slow or late to join, cut and dumped anywhere, is told once and left out."""
    random = Random(seed)
    faulty, case = random.random() < 0.3, random.choice((None, None, "R2", "R1"))
    inputs = {name: repeating(random, faulty) for name in "ab"[: 1 if case == "R1" else 2]}
    aside = Quarantine()
    answers = {"on_broken": aside, "on_invalid": Drop()}
    merger = Merger(case, **answers)
    joins_late = len(inputs) == 2 and random.random() < 0.3
    for name in inputs:
        guarantee = -9 if joins_late and name == "b" else None
        merger.attach(name, guarantee, properties=(Fact.PERFECT, Fact.KEYED))
    left = {name: list(elements) for name, elements in inputs.items()}
    while any(left.values()):
        name = random.choice([name for name, rest in left.items() if rest])
        count = random.choice((1, 1, 2, 5, 20))
        part, left[name] = left[name][:count], left[name][count:]
        merger.push(name, part)
        if random.random() < 0.2:
            merger = Merger.load(merger.dump(), **answers)
    for name, elements in inputs.items():
        told = [
            one.element for one in aside.violations if one.input == name and "must be keyed" in one.detail
        ]
        assert told == repeats_of(elements), f"seed {seed}, {name}: {elements}"


def all_repeats_told() -> None:
    for seed in range(300):
        repeats_told(seed)


def test_every_repeat_of_a_key_in_order_is_told_once():
    all_repeats_told()


WRONG = {
    "who is behind the output is not looked at": lambda kind, start, stable, latest, keyed, own, rows: (
        find_tied(kind, start, stable, latest, False, own, rows)
    ),
    "what was pushed before is forgotten": lambda kind, start, stable, latest, keyed, own, rows: find_tied(
        kind, start, stable, latest, keyed, BEGINNING, rows
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_merge_in_order_that_overlooks_repeats_is_noticed(wrong, monkeypatch):
    monkeypatch.setattr("anabranch.kernels.merge.ordered.find_tied", wrong)
    with pytest.raises(AssertionError, match="seed"):
        all_repeats_told()
