"""JSON lines have one exact form, and what JSON cannot hold is refused."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest
from element_strategies import elements, json_payloads, recorded
from hypothesis import given

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Stable, Tagged, ticks
from anabranch.model.clock import Clock
from anabranch.model.json_lines import MalformedError, UnwritableError, decode, encode, read

A = {"sensor": "a"}
LINES = [
    ('{"kind":"insert","start":3,"end":9,"payload":{"sensor":"a"}}', Insert(A, 3, 9)),
    ('{"kind":"insert","start":3,"end":null,"payload":{}}', Insert({}, 3, FOREVER)),
    ('{"kind":"adjust","start":3,"old_end":9,"end":7,"payload":{"sensor":"a"}}', Adjust(A, 3, 9, 7)),
    ('{"kind":"adjust","start":3,"old_end":null,"end":null,"payload":{}}', Adjust({}, 3, FOREVER, FOREVER)),
    ('{"kind":"stable","time":5}', Stable(5)),
    ('{"kind":"stable","time":null}', Stable(FOREVER)),
    ('{"kind":"stable","time":-9223372036854775808}', Stable(BEGINNING)),
    ('{"kind":"insert","start":3,"end":9,"payload":{},"input":"c"}', Tagged("c", Insert({}, 3, 9))),
    (
        '{"kind":"adjust","start":3,"old_end":9,"end":7,"payload":{},"input":"c"}',
        Tagged("c", Adjust({}, 3, 9, 7)),
    ),
    ('{"kind":"stable","time":5,"input":"c"}', Tagged("c", Stable(5))),
    ('{"kind":"attach","input":"c","from":12}', Tagged("c", Attach(12))),
    ('{"kind":"attach","input":"c"}', Tagged("c", Attach())),
    ('{"kind":"detach","input":"c"}', Tagged("c", Detach())),
]


@pytest.mark.parametrize(("line", "element"), LINES)
def test_each_element_is_written_and_read_like_this(line, element):
    assert encode(element) == line.encode()
    assert decode(line) == decode(line.encode()) == element


@given(elements(json_payloads) | recorded(json_payloads))
def test_what_is_written_is_read_back(element):
    read = decode(encode(element))
    assert read == element
    assert repr(read) == repr(element)  # 1, 1.0 and True are equal


@given(elements(json_payloads))
def test_a_line_is_json_that_any_tool_reads(element):
    line = encode(element)
    assert b"\n" not in line
    assert json.loads(line)["kind"] == type(element).__name__.lower()
    assert json.loads(line).get("payload") == getattr(element, "payload", None)


@pytest.mark.parametrize(
    ("line", "element"),
    [
        ('{"end":9,"payload":{},"start":3,"kind":"insert"}', Insert({}, 3, 9)),
        (' { "kind" : "stable", "time" : 5 } ', Stable(5)),
        ('{"kind":"stable","time":9223372036854775807}', Stable(FOREVER)),
        ('{"kind":"stable","time":5,"input":null}', Stable(5)),
        ('{"kind":"attach","input":"c","from":null}', Tagged("c", Attach())),
    ],
)
def test_order_space_and_nulls_do_not_matter(line, element):
    assert decode(line) == element


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64 - 1, 2**64 + 1, -(2**63) - 1, 10**40 + 1])
def test_integers_are_exact_however_large(number):
    written = encode(Insert({"n": number}, 0, 1))
    assert str(number).encode() in written
    read = decode(written).payload["n"]
    assert type(read) is int
    assert read == number


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"kind":"insert","start":3,"end":9,"payload":{},"colour":1}', "unknown field `colour`"),
        ('{"kind":"stable","time":3,"old_end":9}', "unknown field `old_end`"),
        ('{"kind":"detach","input":"c","from":1}', "unknown field `from`"),
        ('{"kind":"insert","start":3,"payload":{}}', "missing required field `end`"),
        ('{"kind":"adjust","start":3,"end":9,"payload":{}}', "missing required field `old_end`"),
        ('{"kind":"insert","start":3,"end":9}', "missing required field `payload`"),
        ('{"kind":"attach"}', "missing required field `input`"),
        ('{"start":3}', "missing required field `kind`"),
        ('{"kind":"upsert"}', "'upsert'"),
        ('{"kind":"insert","start":null,"end":9,"payload":{}}', r"`null` - at `\$.start`"),
        ('{"kind":"insert","start":3.0,"end":9,"payload":{}}', r"`float` - at `\$.start`"),
        ('{"kind":"insert","start":true,"end":9,"payload":{}}', r"`bool` - at `\$.start`"),
        ('{"kind":"insert","start":3,"end":"9","payload":{}}', "ISO 8601, '9' is not"),
        (
            '{"kind":"insert","start":"2026-03-01T10:00:00","end":null,"payload":{}}',
            "needs a time zone .* has none",
        ),
        ('{"kind":"insert","start":3,"end":"2026-03-01","payload":{}}', "on one clock"),
        ('{"kind":"insert","start":3,"end":9,"payload":[1]}', r"`array` - at `\$.payload`"),
        (
            '{"kind":"stable","time":9223372036854775808}',
            "time of a stable is an int64 of ticks, 92233720368547",
        ),
        ('{"kind":"attach","input":"c","from":9223372036854775808}', "guarantee of an attach is an int64"),
        ('{"kind":"insert","start":3,"end":9,"payload":{"x":NaN}}', "malformed"),
        ('{"kind":"insert","start":3,"end":9,"payload":{"x":1e400}}', "out of range"),
        pytest.param(
            '{"kind":"stable","time":' + "[" * 10**5, "`int | null`, got `array`", id="not to be read"
        ),
        pytest.param(
            '{"kind":"insert","start":3,"end":9,"payload":' + '{"x":' * 10**5,
            "nested at most 200 levels deep",
            id="too deep",
        ),
        ('{"kind":"stable","time":5', "truncated"),
        ('{"kind":"stable","time":5}{}', "malformed"),
        (b'{"kind":"detach","input":"\xff"}', "utf-8"),
        ("5", "`object`, got `int`"),
        ("", "truncated"),
    ],
)
def test_a_line_that_is_no_element_is_refused_by_what_is_wrong(line, named):
    with pytest.raises(MalformedError, match=named):
        decode(line)


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"x":', "}")])
def test_values_are_nested_at_most_200_levels_deep(opened, closed):
    def line(levels: int) -> str:
        inner = opened * (levels - 2) + "1" + closed * (levels - 2)
        return '{"kind":"insert","start":3,"end":9,"payload":{"v":' + inner + "}}"

    assert decode(line(200)) == decode(line(200).encode())
    for levels in (201, 500):
        for deep in (line(levels), line(levels).encode()):
            with pytest.raises(MalformedError, match="JSON is nested at most 200 levels deep"):
                decode(deep)


def test_brackets_in_text_and_side_by_side_are_not_nested():
    payload = {"text": "[{" * 500, "wide": [[{}]] * 500}
    assert decode(encode(Insert(payload, 3, 9))) == Insert(payload, 3, 9)


@pytest.mark.parametrize(("key", "as_text"), [(1, "1"), (b"\x00", "00"), (True, "True")])
def test_keys_that_are_not_text_are_refused_unless_text_will_do(key, as_text):
    element = Insert({"a": {key: "x"}}, 0, 1)
    with pytest.raises(UnwritableError, match=f"the key .*{type(key).__name__}"):
        encode(element)
    assert decode(encode(element, as_text=True)) == Insert({"a": {as_text: "x"}}, 0, 1)


MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "as_text"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (b"\x00\xff", "00ff"),
        (Decimal("1.50"), "1.50"),
        (np.int64(3), "3"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [1, v], lambda v: {"x": {"y": v}}])
def test_what_json_has_no_type_for_is_refused_unless_text_will_do(value, as_text, wrap):
    element = Insert({"a": wrap(value)}, 0, 1)
    with pytest.raises(UnwritableError, match=type(value).__name__) as caught:
        encode(element)
    assert "--text" in caught.value.__notes__[0]
    assert decode(encode(element, as_text=True)) == Insert({"a": wrap(as_text)}, 0, 1)


MOMENT = ticks("2026-03-01T10:00:00.5Z")


@pytest.mark.parametrize(
    ("clock", "tick", "text"),
    [
        (Clock.TICKS, MOMENT, MOMENT),
        (Clock.LOCAL, MOMENT, MOMENT),
        (Clock.MOMENTS, MOMENT, "2026-03-01T10:00:00.5Z"),
        (Clock.DAYS, 20_000, "2024-10-04"),
    ],
)
def test_times_are_written_as_what_they_are_and_read_back(clock, tick, text):
    elements = [Insert({"v": 1}, tick, FOREVER), Adjust({"v": 1}, tick, FOREVER, tick + 1), Stable(tick)]
    lines = [encode(element, clock=clock) for element in elements]
    assert json.loads(lines[2]) == {"kind": "stable", "time": text}
    assert [decode(line) for line in lines] == elements
    assert {read(line)[1] for line in lines} == {Clock.TICKS if clock is Clock.LOCAL else clock}


def test_a_time_that_no_calendar_has_is_not_written_as_one():
    with pytest.raises(UnwritableError, match="no calendar has"):
        encode(Stable(2**62), clock=Clock.MOMENTS)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ('{"kind":"insert","strat":3,"end":9,"payload":{}}', "start"),
        ('{"kind":"insrt","start":3,"end":9,"payload":{}}', "insert"),
        ('{"kind":"attach","input":"a","form":3}', "from"),
    ],
)
def test_a_misspelt_key_or_kind_is_named_with_the_one_that_was_meant(line, meant):
    with pytest.raises(MalformedError, match=f"did you mean '{meant}'?"):
        decode(line)
