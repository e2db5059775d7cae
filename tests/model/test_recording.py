"""A recording keeps every input's own relation, through attach, detach and attach again."""

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

import pytest
from element_strategies import cut_up
from hypothesis import given
from hypothesis import strategies as st
from laws.relation import bag_of

from anabranch import BEGINNING, Attach, Batch, Detach, Event, Tagged
from anabranch.model.notation import parse
from anabranch.model.recording import Recording
from anabranch.model.validity import Drop, InvalidElementError, Quarantine, Rule
from anabranch.oracle.relation import World
from anabranch.testing.faults import interleave, late_join, noise, restart
from anabranch.testing.presentations import present
from anabranch.testing.references import reference

randoms = st.randoms(use_true_random=False)


@dataclass
class Speaker:
    """What one input has said, by the definition: all events since it was last attached.

    It is known from its first element or attach on; until then ``attached`` is None.
    """

    world: World = field(default_factory=World)
    guarantee: int = BEGINNING
    attached: bool | None = None
    said: int = 0
    violations: list = field(default_factory=list)

    def says(self, element) -> None:
        self.said += 1
        match element:
            case Attach(guarantee):
                if self.attached:
                    self.violations.append((self.said, Rule.ALREADY_ATTACHED, element))
                else:
                    self.world, self.guarantee, self.attached = World(), guarantee, True
            case Detach() if self.attached is None:
                self.violations.append((self.said, Rule.DETACHED_INPUT, element))
                self.attached = False
            case _ if self.attached is False:
                self.violations.append((self.said, Rule.DETACHED_INPUT, element))
            case Detach():
                self.attached = False
            case _:
                self.attached = True
                if broken := self.world.apply(element):
                    self.violations.append((self.said, broken, element))


def by_definition(recording: list[Tagged]) -> dict[str, Speaker]:
    speakers: dict[str, Speaker] = defaultdict(Speaker)
    for item in recording:
        speakers[item.input].says(item.element)
    return dict(speakers)


def rough_recording(random: Random) -> list[Tagged]:
    """Three inputs with every fault there is, and controls where nobody expects them."""
    events = reference(random)
    inputs = {
        "a": restart(present(events, random), noise(present(events, random), random), random),
        "b": late_join(events, random, guarantee=random.randrange(9)),
        "c": noise(present(events, random), random),
    }
    for stream in inputs.values():
        stream.insert(random.randint(1, len(stream)), random.choice([Attach(3), Detach()]))
    return interleave(inputs, random)


@given(randoms, st.lists(st.integers(0, 60), max_size=5))
def test_a_recording_is_what_each_input_said_however_it_is_cut_into_batches(random, cuts):
    tagged = rough_recording(random)
    aside = Quarantine()
    recording = Recording(aside)
    for piece in cut_up(tagged, cuts):
        recording.apply(Batch.of(piece))
    speakers = by_definition(tagged)
    dropping = Recording(Drop())
    dropping.apply(Batch.of(tagged))
    for either in (recording, dropping):
        bags = {name: bag_of(relation) for name, relation in either.relations().items()}
        assert bags == {name: speaker.world.bag() for name, speaker in speakers.items()}
    assert recording.guarantees() == {name: speaker.guarantee for name, speaker in speakers.items()}
    for name, speaker in speakers.items():
        found = [(v.position, v.rule, v.element) for v in aside.violations if v.input == name]
        assert found == speaker.violations
        assert recording.inputs[name].attached == speaker.attached
        assert recording.inputs[name].relation.frontier == speaker.world.stable
    assert {violation.input for violation in aside.violations} <= speakers.keys()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("east: + a [3, 3)", "element 1 of input 'east' has an empty lifetime"),
        (
            "east: | 5\nwest: | 9\neast: + a [4, 9)",
            "element 2 of input 'east' is an insert behind",
        ),
        ("east: | 5\neast: detach\neast: | 6", "element 3 of input 'east' is of an input that is detached"),
        ("west: | 5\neast: detach", "element 1 of input 'east' is of an input that is detached"),
        ("east: | 5\neast: attach from 3", "element 2 of input 'east' attaches an input that is attached"),
        ("east: detach", "element 1 of input 'east' is of an input that is detached"),
        ("stream: + a [3, 3)", "element 1 of input 'stream' has an empty lifetime"),
        (
            "east: attach\neast: detach\neast: attach\neast: + a [3, 3)",
            "element 4 of input 'east' has an empty",
        ),
    ],
)
def test_a_violation_names_its_input(lines, message):
    batch = Batch.of(parse(lines))
    with pytest.raises(InvalidElementError, match=message) as caught:
        Recording().apply(batch)
    aside = Quarantine()
    Recording(aside).apply(batch)
    assert [violation.message for violation in aside.violations] == [str(caught.value)]


def test_a_single_stream_has_no_input_to_name():
    with pytest.raises(InvalidElementError, match=r"^element 2 has an empty lifetime"):
        Recording().apply(Batch.of(parse("| 1\n+ a [3, 3)")))


def test_a_single_stream_is_known_by_the_name_it_was_given():
    recording = Recording(alone="left.jsonl")
    recording.apply(Batch.of(parse("+ a [3, 9)")))
    assert {name: relation.events() for name, relation in recording.relations().items()} == {
        "left.jsonl": [Event({"value": "a"}, 3, 9)]
    }


def test_an_input_that_comes_back_begins_anew():
    recording = Recording()
    recording.apply(Batch.of(parse("east: + a [3, 9)\neast: | 4\neast: detach\neast: attach from 7")))
    assert recording.relations()["east"].events() == []
    assert recording.relations()["east"].frontier == BEGINNING
    assert recording.guarantees() == {"east": 7}


def test_an_input_that_has_left_keeps_what_it_said():
    recording = Recording()
    recording.apply(Batch.of(parse("east: + a [3, 9)\neast: detach")))
    assert recording.relations()["east"].events() == [Event({"value": "a"}, 3, 9)]
    assert not recording.inputs["east"].attached
