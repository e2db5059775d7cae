"""Of inputs in step, one that ends while others go on has left, unless it has promised everything."""

from anabranch import FOREVER, Insert, Merger, Stable
from anabranch.engines.embedded.in_step import merge_in_step

EVENT = Insert({"reading": 1}, 1, 2)


def test_who_ends_first_is_detached_unless_it_has_promised_everything():
    merger = Merger()
    inputs = {"east": [[EVENT, Stable(4)]], "west": [[EVENT, Stable(FOREVER)]], "north": [[Stable(2)]]}
    out = [element for batch in merge_in_step(inputs, merger) for element in batch.elements()]
    assert [element for element in out if isinstance(element, Insert)] == [EVENT]
    attached = {name: one.attached for name, one in merger.status().inputs.items()}
    assert attached == {"east": False, "west": True, "north": False}
