"""What is written in the notation is read back, and what is not in it is refused with its line."""

import math
from decimal import Decimal

import pytest
from element_strategies import elements, json_payloads, streams
from hypothesis import given
from hypothesis import strategies as st

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Stable, Tagged, ticks
from anabranch.model.clock import Clock
from anabranch.model.notation import NotationError, line_of, parse, parse_lines, payload_text, text


@given(streams(json_payloads))
def test_what_is_written_is_read_back(stream):
    read = parse(text(stream))
    assert read == stream
    assert repr(read) == repr(stream)  # 1, 1.0 and True are equal


@given(elements(json_payloads))
def test_an_element_is_one_line_of_text_that_files_can_hold(element):
    line = line_of(element)
    assert "\n" not in line
    assert parse(line.encode().decode()) == [element]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["value", "x"])
def test_numbers_that_json_lacks_are_read_back(number, name):
    (element,) = parse(text([Insert({name: [number], "other": number}, 0, 1)]))
    assert repr(element.payload) == repr({name: [number], "other": number})
    (alone,) = parse(text([Insert({"value": number}, 0, 1)]))
    assert repr(alone.payload) == repr({"value": number})


A = {"value": "a"}


@pytest.mark.parametrize(
    ("line", "element"),
    [
        ("+ a [3, 9)", Insert(A, 3, 9)),
        ("~ a [3, 9) -> [3, 7)", Adjust(A, 3, 9, 7)),
        ("| 5", Stable(5)),
        ("| ∞", Stable(FOREVER)),
        ("| -∞", Stable(BEGINNING)),
        ("+ {} [-∞, ∞)", Insert({}, BEGINNING, FOREVER)),
        ("+ 7 [3, 9)", Insert({"value": 7}, 3, 9)),
        ("+ null [3, 9)", Insert({"value": None}, 3, 9)),
        ('+ "a b" [3, 9)', Insert({"value": "a b"}, 3, 9)),
        ('+ "null" [3, 9)', Insert({"value": "null"}, 3, 9)),
        ("+ [1, [2]] [3, 9)", Insert({"value": [1, [2]]}, 3, 9)),
        ('+ {"value": {"x": 1}} [3, 9)', Insert({"value": {"x": 1}}, 3, 9)),
        ('+ {"value": 1, "x": 2} [3, 9)', Insert({"value": 1, "x": 2}, 3, 9)),
        ('~ "-> [1, 2)" [3, 9) -> [3, 7)', Adjust({"value": "-> [1, 2)"}, 3, 9, 7)),
        ('east: + {"id": 7, "v": 2.5} [3, ∞)', Tagged("east", Insert({"id": 7, "v": 2.5}, 3, FOREVER))),
        ("east: attach from 12", Tagged("east", Attach(12))),
        ("east: attach", Tagged("east", Attach())),
        ("east: detach", Tagged("east", Detach())),
        ('"east side": | 5', Tagged("east side", Stable(5))),
    ],
)
def test_each_line_is_written_and_read_like_this(line, element):
    assert parse(line) == [element]
    assert text([element]) == line


@pytest.mark.parametrize(
    ("line", "element"),
    [
        ("+ a [3, inf)", Insert(A, 3, FOREVER)),
        ("| -inf", Stable(BEGINNING)),
        ("+a[3,9)", Insert(A, 3, 9)),
        ("  ~ a  [ 3 , 9 )->[ 3 , 7 )\r", Adjust(A, 3, 9, 7)),
        ('+ "a" [3, 9)', Insert(A, 3, 9)),
        ('+ {"value": "a"} [3, 9)', Insert(A, 3, 9)),
        ("east : |5", Tagged("east", Stable(5))),
    ],
)
def test_more_is_read_than_is_written(line, element):
    assert parse(line) == [element]


def test_empty_lines_and_comments_say_nothing():
    assert parse("# a stream\n\n+ a [3, 9)\n   \n  # its end\n| ∞\n") == [Insert(A, 3, 9), Stable(FOREVER)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("+ a [3, 9", "'+ a [3, 9' is no element"),
        ("+ a [3, 9]", "'+ a [3, 9]' is no element"),
        ("+ [3, 9)", "'+ [3, 9)' is no element"),
        ("a [3, 9)", "'a [3, 9)' is no element"),
        ("| 5.0", "'| 5.0' is no element"),
        ("east: + a", "'east: + a' is no element"),
        ("~ a [3, 9) -> [4, 7)", "an adjust keeps the start, '~ a [3, 9) -> [4, 7)' moves it from 3 to 4"),
        ("+ a b [3, 9)", "a payload is a name, a JSON value or a JSON object, 'a b' is none"),
        ('+ {"a": 1 [3, 9)', "a payload is a name, a JSON value or a JSON object, '{\"a\": 1' is none"),
        pytest.param("+ " + "[" * 10**5 + " [3, 9)", "nested at most 200 levels deep", id="too deep to read"),
        pytest.param(
            "+ " + "[" * 201 + "]" * 201 + " [3, 9)", "nested at most 200 levels deep", id="too deep to keep"
        ),
        ('+ {"a": {"b": 1, "b": 2}} [3, 9)', "an object has each key once, this one has 'b' twice"),
        ("| 9223372036854775808", "a time is an int64 of ticks, 9223372036854775808 does not fit"),
        ("attach", "attach and detach name their input, 'attach' names none"),
        ("detach", "attach and detach name their input, 'detach' names none"),
        (r'"\q": | 5', r'a name in quotes is JSON text, "\q" is not'),
    ],
)
def test_what_is_not_in_the_notation_is_refused_with_its_line(line, message):
    read = parse_lines(iter(["| 1", "", line, "| 2"]))
    assert next(read) == Stable(1)
    with pytest.raises(NotationError) as caught:
        next(read)
    assert message in str(caught.value)
    assert caught.value.__notes__[-1] == "In line 3."


@pytest.mark.parametrize("value", [b"x", {1, 2}, 3 + 1j])
def test_a_value_that_json_has_no_type_for_is_refused_with_the_way_out(value):
    with pytest.raises(NotationError, match=f"JSON values.*{type(value).__name__}") as caught:
        text([Insert({"x": value}, 0, 1)])
    assert "Parquet" in caught.value.__notes__[0]


@pytest.mark.parametrize(("value", "written"), [(b"\x00\xff", '"00ff"'), (Decimal("1.5"), '"1.5"')])
def test_a_value_that_json_has_no_type_for_is_text_where_that_is_asked_for(value, written):
    assert line_of(Insert({"x": [value]}, 0, 1), as_text=True) == '+ {"x": [' + written + "]} [0, 1)"
    tagged = Tagged("e", Adjust({"x": value}, 0, 1, 2))
    assert line_of(tagged, as_text=True) == 'e: ~ {"x": ' + written + "} [0, 1) -> [0, 2)"


@given(st.text(max_size=6))
def test_text_that_looks_like_a_name_needs_no_quotes_and_all_other_text_has_them(value):
    written = payload_text({"value": value})
    plain = value.isascii() and value.replace(".", "_").replace("-", "_").isidentifier()
    plain = plain and value[0] not in ".-" and value not in ("true", "false", "null", "NaN", "Infinity")
    assert (written == value) == plain
    assert written.startswith('"') != plain


def test_moments_and_dates_are_written_and_read_as_such():
    moments = "+ a [2026-03-01T10:00:00Z, ∞)\n| 2026-03-01T11:30:00.25+01:00"
    assert parse(moments) == [
        Insert({"value": "a"}, ticks("2026-03-01T10:00:00Z"), FOREVER),
        Stable(ticks("2026-03-01T10:30:00.25Z")),
    ]
    days = "~ a [2026-03-01, 2026-03-03) -> [2026-03-01, 2026-03-02)"
    (element,) = parse(days)
    assert line_of(element, clock=Clock.DAYS) == days
    assert line_of(parse(moments)[0], clock=Clock.MOMENTS) == "+ a [2026-03-01T10:00:00Z, ∞)"


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("| 2026-03-01T10:00:00", "needs a time zone"),
        ("+ a [3, 2026-03-01)", "on one clock"),
        ("| 2026-13-01", "ISO 8601"),
        ('+ "\\ud800" [3, 9)', "half of a character"),
    ],
)
def test_times_that_cannot_be_meant_are_refused(line, rule):
    with pytest.raises(NotationError, match=rule):
        parse(line)
