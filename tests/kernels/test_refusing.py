"""Whatever a policy raises, nothing that came out is lost, and what is refused is counted once."""

import pytest

from anabranch import (
    Adjust,
    Batch,
    BrokenPropertyError,
    Drop,
    Fact,
    FinalOnly,
    Insert,
    InvalidElementError,
    Merger,
    Pace,
    Quarantine,
    Raise,
    Rule,
    Stable,
    parse,
    text,
)

A, B, C = {"value": "a"}, {"value": "b"}, {"value": "c"}
R0 = (Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY)


def merger_of(*names, case=None, policy=None, complete=True, properties=None, **options) -> Merger:
    merger = Merger(case, policy, **options)
    for name in names:
        merger.attach(name, properties=properties, complete=complete)
    return merger


class Disk:
    """A quarantine that is full at some elements."""

    def __init__(self, *full_at: int) -> None:
        self.full_at, self.asked, self.kept = full_at, 0, []

    def __call__(self, violation) -> None:
        self.asked += 1
        if self.asked in self.full_at:
            raise OSError(28, "No space left on device")
        self.kept.append(violation.element)


def stored(merger: Merger) -> Merger:
    """The merger after a restart."""
    return Merger.load(merger.dump(), on_invalid=Drop(), on_broken=Drop(), on_late=Drop())


class TestInvalidElements:
    """Elements that no valid stream has are raised before any is used, or set aside when all are."""

    def test_a_batch_with_one_is_refused_as_a_whole(self):
        merger = merger_of("a")
        with pytest.raises(InvalidElementError, match="element 2 of input 'a' has an empty lifetime"):
            merger.push("a", [Insert(A, 1, 5), Insert(A, 3, 3)])
        assert merger.push("a", [Insert(A, 1, 5)]) == [Insert(A, 1, 5)]

    def test_they_can_be_set_aside(self):
        aside = Quarantine()
        merger = merger_of("a", on_invalid=aside)
        assert merger.push("a", [Stable(5), Insert(A, 3, 9), Insert(A, 5, 9)]) == [Stable(5), Insert(A, 5, 9)]
        assert [violation.rule for violation in aside.violations] == [Rule.INSERT_BEHIND_STABLE]
        assert merger.status().inputs["a"].refused == 1

    @pytest.mark.parametrize("dumped", [False, True])
    def test_what_came_of_the_others_is_owed_where_a_function_fails(self, dumped):
        disk = Disk(1)
        merger = merger_of("a", on_invalid=Quarantine(disk))
        elements = [Insert(A, 1, 5), Insert(A, 3, 3), Stable(2), Insert(B, 4, 4), Insert(C, 5, 6)]
        with pytest.raises(OSError, match="No space left") as error:
            merger.push("a", elements)
        assert "element 2 of input 'a'" in error.value.__notes__[0]
        assert disk.kept == [Insert(B, 4, 4)]
        one = merger.status().inputs["a"]
        assert (one.elements, one.refused, one.frontier) == (3, 2, 2)
        merger = stored(merger) if dumped else merger
        assert merger.push("a", Stable(3)) == [Insert(A, 1, 5), Stable(2), Insert(C, 5, 6), Stable(3)]

    @pytest.mark.parametrize("policy", [Raise(), Drop(), Quarantine()], ids=lambda p: type(p).__name__)
    def test_a_refused_element_is_counted_once(self, policy):
        merger = merger_of("a", on_invalid=policy)
        elements = [Insert(A, 1, 5), Insert(A, 3, 3)]
        if isinstance(policy, Raise):
            with pytest.raises(InvalidElementError):
                merger.push("a", elements)
            elements = elements[:1]
        assert merger.push("a", elements) == [Insert(A, 1, 5)]
        one = merger.status().inputs["a"]
        assert (one.elements, one.refused) == (1, 0 if isinstance(policy, Raise) else 1)


LATE = [Insert(C, 2, 6), Insert(B, 10, 12), Insert(A, 3, 4), Insert(A, 11, 12)]
"""What the second of two lossy inputs says when the first is at 9 and nobody waits."""


def with_a_late_one(**options) -> Merger:
    merger = merger_of("a", "b", complete=False, pace=Pace.FASTEST, **options)
    merger.push("a", [Insert(A, 1, 5), Stable(9)])
    return merger


class TestLateElements:
    """They are answered for when all else of their batch is merged."""

    def test_what_came_out_is_with_the_error(self):
        merger = with_a_late_one(on_late=Raise())
        with pytest.raises(InvalidElementError, match="element 1 of input 'b' is late") as error:
            merger.push("b", LATE)
        assert list(error.value.output.elements()) == [Insert(B, 10, 12), Insert(A, 11, 12)]
        one = merger.status().inputs["b"]
        assert (one.elements, one.late, one.refused) == (4, 2, 0)
        assert merger.push("b", Stable(12)) == [Stable(12)]

    @pytest.mark.parametrize("dumped", [False, True])
    def test_what_came_out_is_owed_where_a_function_fails(self, dumped):
        disk = Disk(1)
        merger = with_a_late_one(on_late=Quarantine(disk))
        with pytest.raises(OSError, match="No space left") as error:
            merger.push("b", LATE)
        assert "element 1 of input 'b' is late" in error.value.__notes__[0]
        assert disk.kept == [Insert(A, 3, 4)]
        merger = stored(merger) if dumped else merger
        assert merger.status().inputs["b"].late == 2
        assert merger.push("b", Stable(12)) == [Insert(B, 10, 12), Insert(A, 11, 12), Stable(12)]
        assert merger.push("b", Stable(13)) == [Stable(13)]

    @pytest.mark.parametrize("dumped", [False, True])
    @pytest.mark.parametrize("call", ["attach", "detach", "idle", "force_join", "play"])
    def test_any_call_gives_what_is_owed(self, call, dumped):
        merger = with_a_late_one(on_late=Quarantine(Disk(1)))
        with pytest.raises(OSError, match="No space left"):
            merger.push("b", LATE)
        merger = stored(merger) if dumped else merger
        if call == "play":
            said = merger.play(Batch.of(parse("b: | 7")))
        else:
            said = getattr(merger, call)("c" if call == "attach" else "b")
        assert list(said.elements())[:2] == [Insert(B, 10, 12), Insert(A, 11, 12)]

    def test_what_is_owed_waits_for_a_call_that_does_something(self):
        merger = with_a_late_one(on_late=Quarantine(Disk(1)))
        with pytest.raises(OSError, match="No space left"):
            merger.push("b", LATE)
        with pytest.raises(KeyError):
            merger.push("nobody", [])
        with pytest.raises(InvalidElementError):
            merger.push("b", Insert(A, 3, 3))
        assert merger.push("b", []) == [Insert(B, 10, 12), Insert(A, 11, 12)]

    def test_an_interrupt_loses_nothing(self):
        def interrupted(violation):
            raise KeyboardInterrupt

        merger = with_a_late_one(on_late=Quarantine(interrupted))
        with pytest.raises(KeyboardInterrupt):
            merger.push("b", LATE)
        assert stored(merger).push("b", []) == [Insert(B, 10, 12), Insert(A, 11, 12)]

    def test_what_is_owed_has_the_columns_of_what_comes_later(self):
        merger = with_a_late_one(on_late=Quarantine(Disk(1)))
        with pytest.raises(OSError, match="No space left"):
            merger.push("b", LATE)
        wider = Insert({"value": "a", "level": 7}, 14, 15)
        assert merger.push("b", wider) == [Insert(B, 10, 12), Insert(A, 11, 12), wider]


BROKEN = [Insert(A, 1, 5), Insert(B, 3, 5), Insert(A, 2, 5), Insert(A, 4, 6), Adjust(A, 4, 6, 7), Stable(5)]


class TestBrokenProperties:
    """So are those that break a promise, wherever it shows."""

    def test_what_came_out_is_with_the_error(self):
        merger = merger_of("a", properties=R0)
        with pytest.raises(BrokenPropertyError) as error:
            merger.push("a", BROKEN)
        assert text(error.value.output.elements()) == "+ a [1, 5)\n+ b [3, 5)\n+ a [4, 6)\n| 5"
        one = merger.status().inputs["a"]
        assert (one.elements, one.refused) == (4, 2)

    @pytest.mark.parametrize("dumped", [False, True])
    def test_what_came_out_is_owed_where_a_function_fails(self, dumped):
        disk = Disk(2)
        merger = merger_of("a", properties=R0, on_broken=Quarantine(disk))
        with pytest.raises(OSError, match="No space left"):
            merger.push("a", BROKEN)
        assert disk.kept == [Insert(A, 2, 5)]
        merger = stored(merger) if dumped else merger
        one = merger.status().inputs["a"]
        assert (one.elements, one.refused) == (4, 2)
        said = merger.push("a", Stable(6))
        assert text(said) == "+ a [1, 5)\n+ b [3, 5)\n+ a [4, 6)\n| 5\n| 6"

    @pytest.mark.parametrize("call", ["push", "detach", "force_join"])
    def test_one_that_shows_when_its_input_joins_is_told_at_once(self, call):
        merger = merger_of("a", case="R1")
        merger.attach("j", guarantee=3 if call == "push" else 9)
        merger.push("a", [Insert(A, 3, 9), Stable(2)] if call != "push" else Stable(2))
        merger.push("j", [Insert(B, 3, 9), Insert(C, 9, 12)])
        if call == "push":
            with pytest.raises(BrokenPropertyError) as error:
                merger.push("a", [Insert(A, 3, 9), Insert(C, 9, 12)])
            assert text(error.value.output.elements()) == "+ a [3, 9)\n+ c [9, 12)"
        elif call == "force_join":
            assert text(merger.force_join("j").elements()) == "+ c [9, 12)"
        else:
            assert text(merger.detach("a").elements()) == ""
        assert merger.status().inputs["j"].refused == (call == "push")

    def test_repeats_of_a_key_are_told_when_the_batch_is_done(self):
        disk = Disk(1, 2)
        merger = merger_of("a", properties=["keyed"], on_broken=Quarantine(disk))
        with pytest.raises(OSError, match="No space left"):
            merger.push("a", [Insert(A, 1, 5), Insert(A, 1, 6), Insert(A, 1, 7), Insert(B, 2, 4)])
        assert disk.asked == 2
        assert merger.push("a", []) == [Insert(A, 1, 5), Insert(B, 2, 4)]

    def test_what_is_final_is_owed_too(self):
        merger = merger_of("a", policy=FinalOnly(), properties=["keyed"], on_broken=Quarantine(Disk(1)))
        with pytest.raises(OSError, match="No space left"):
            merger.push("a", [Insert(A, 1, 5), Insert(A, 1, 6), Stable(7)])
        assert stored(merger).push("a", []) == [Insert(A, 1, 5), Stable(7)]


class TestRecordings:
    def test_what_came_out_before_is_with_the_error(self):
        lines = parse("a: + x [1, 5)\nb: + y [1, 6)\na: | 9\na: + z [3, 7)\nb: | 9")
        with pytest.raises(InvalidElementError) as error:
            Merger().play(Batch.of(lines))
        assert text(list(error.value.output.elements())) == "+ x [1, 5)\n+ y [1, 6)"

    @pytest.mark.parametrize("dumped", [False, True])
    def test_what_came_out_before_is_owed_where_a_function_fails(self, dumped):
        lines = parse("a: + x [1, 5)\nb: + y [1, 6)\na: detach\na: + z [3, 7)\nb: | 9")
        merger = Merger(on_invalid=Quarantine(Disk(1)))
        with pytest.raises(OSError, match="No space left"):
            merger.play(Batch.of(lines))
        merger = stored(merger) if dumped else merger
        assert merger.status().inputs["a"].refused == 1
        said = merger.push("b", Stable(2))
        assert text(said) == "+ x [1, 5)\n+ y [1, 6)\n~ x [1, 5) -> [1, 1)\n| 2"

    def test_an_input_that_cannot_be_attached_loses_nothing_of_those_before(self):
        merger = Merger()

        def attach(name, guarantee):
            if name == "b":
                raise LookupError("nobody knows b")
            return merger.attach(name, guarantee)

        with pytest.raises(LookupError):
            merger.play(Batch.of(parse("a: + x [1, 5)\nb: + x [1, 6)")), attach=attach)
        assert text(merger.push("a", Stable(2))) == "+ x [1, 5)\n| 2"
