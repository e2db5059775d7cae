"""Random elements of any shape, valid or not, for what must carry every one of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Stable, Tagged
from anabranch.model.batch import Batch
from anabranch.model.elements import Element, Payload

ticks = st.integers(-5, 20) | st.integers(BEGINNING, FOREVER) | st.sampled_from([BEGINNING, FOREVER])
input_names = st.sampled_from(["east", "west", "a b", 'q"', "", "é", "-1", "attach", "x:y", "\n"])

# One type for each column, so that any of these payloads fit into one batch.
_COLUMNS = {
    "count": st.integers(BEGINNING, FOREVER),
    "level": st.floats(allow_nan=False),
    "text": st.text(max_size=5),
    "data": st.binary(max_size=5),
    "flag": st.booleans(),
    "list": st.lists(st.integers(0, 9), max_size=3),
    "struct": st.fixed_dictionaries({"x": st.integers(0, 9), "y": st.text(max_size=2)}),
    "at": st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
}
_RESERVED = {name: st.integers(0, 9) for name in ("kind", "start", "end", "old_end", "input", "payload")}

payloads = st.fixed_dictionaries({}, optional=_COLUMNS)
payloads_with_reserved_names = st.fixed_dictionaries({}, optional=_COLUMNS | _RESERVED)

json_numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
_texts = st.text(max_size=8) | st.sampled_from(
    ["a", "a b", "[3, 9)", '"', "x\ny", "\u2028\x85", "NaN", "true", ""]
)
json_values = st.recursive(
    st.none() | st.booleans() | json_numbers | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=5,
)
json_payloads = st.dictionaries(_texts | st.just("value"), json_values, max_size=3) | json_values.map(
    lambda value: {"value": value}
)


def elements(of: st.SearchStrategy[Payload]) -> st.SearchStrategy[Element]:
    """One element with such a payload."""
    return (
        st.builds(Insert, of, ticks, ticks)
        | st.builds(Adjust, of, ticks, ticks, ticks)
        | st.builds(Stable, ticks)
    )


def recorded(of: st.SearchStrategy[Payload]) -> st.SearchStrategy[Tagged]:
    """One element of one of several inputs."""
    return st.builds(Tagged, input_names, elements(of) | st.builds(Attach, ticks) | st.just(Detach()))


def streams(of: st.SearchStrategy[Payload]) -> st.SearchStrategy[list[Any]]:
    """Elements of one input, or a recording of several."""
    return st.lists(elements(of), max_size=6) | st.lists(recorded(of), max_size=6)


def items(batch: Batch) -> list[Any]:
    """What a batch holds as objects, tagged if it is a recording."""
    return list(batch.elements() if batch.input is None else batch.tagged())


def cut_up(sequence: Sequence[Any], cuts: Sequence[int]) -> list[Sequence[Any]]:
    """The sequence in pieces, some perhaps empty."""
    bounds = [0, *sorted(min(cut, len(sequence)) for cut in cuts), len(sequence)]
    return [sequence[begin:end] for begin, end in pairwise(bounds)]
