"""Expressions as text mean what the same text means in Python over columns; nothing else is read."""

import pytest

from anabranch.expressions.choice import when
from anabranch.expressions.expression import call, col, end, lit, start
from anabranch.expressions.parsing import LONGEST, parsed
from anabranch.expressions.tree import ExpressionError


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("level > 3", col("level") > 3),
        ("level", col("level")),
        ("col('odd name') == 'x'", col("odd name") == "x"),
        (
            "a + 1 - b * 2 / c // d % e ** 2",
            col("a") + 1 - col("b") * 2 / col("c") // col("d") % col("e") ** 2,
        ),
        ("a > 1 and b or not c", ((col("a") > 1) & col("b")) | ~col("c")),
        ("(a > 1) & ~b | c", ((col("a") > 1) & ~col("b")) | col("c")),
        ("1 < a <= 5", (lit(1) < col("a")) & (col("a") <= 5)),
        ("a in ['x', 'y']", col("a").is_in(["x", "y"])),
        ("a not in (1, -2)", ~col("a").is_in([1, -2])),
        ("a is None", col("a").is_null()),
        ("a is not None", col("a").is_not_null()),
        ("-a", -col("a")),
        ("a.str.to_uppercase()", col("a").str.to_uppercase()),
        ("a.dt.truncate('1h') == b", col("a").dt.truncate("1h") == col("b")),
        ("a.cast('float64', strict=False)", col("a").cast("float64", strict=False)),
        ("'high' if a > 3 else 'low'", when(col("a") > 3).then(lit("high")).otherwise(lit("low"))),
        (
            "when(a > 3).then('x').when(b).then(c).otherwise(None)",
            when(col("a") > 3).then(lit("x")).when(col("b")).then(col("c")).otherwise(None),
        ),
        ("call('max_element_wise', a, 0)", call("max_element_wise", col("a"), 0)),
        ("a.fill_null('none')", col("a").fill_null("none")),
        ("end() - start()", end() - start()),
        ("start", col("start")),
        ("  3  ", lit(3)),
    ],
)
def test_a_text_means_what_it_means_in_python(text, meant):
    assert parsed(text).tree == meant.tree


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("level >> 3", "no such sign"),
        ("__import__('os').system('true')", "no function '__import__'"),
        ("open('/etc/passwd')", "no function 'open'"),
        ("a.__class__", "no attribute '__class__'"),
        ("a.__init__()", "no method '__init__'"),
        ("a.applied('x')", "no method 'applied'"),
        ("a.tree", "no attribute 'tree'"),
        ("(lambda: 1)()", "what is called"),
        ("[b for b in a]", "no loops"),
        ("f'{a}'", "no f-strings"),
        ("a[0]", "no brackets"),
        ("(b := a)", "no assignments"),
        ("a if", "invalid syntax"),
        ("a = 3", "syntax"),
        ("", "syntax"),
        ("a.str", "the text ends"),
        ("a.is_in(b)", "is_in takes a collection"),
        ("a in b", "is_in takes a collection"),
        ("a is b", "before None"),
        ("a.upper()", "no method 'upper'"),
        ("call('no_such_function', a)", "no_such_function"),
        ("when(**a)", "one by one"),
        ("[a]", "a list has values"),
        ("3j", "no such value"),
        ("(" * 400 + "a" + ")" * 400, "parenthes"),
        ("a" + " + a" * 3000, "characters"),
    ],
)
def test_what_is_not_of_the_language_is_refused_with_the_text_and_the_place(text, why):
    with pytest.raises(ExpressionError, match=why) as raised:
        parsed(text)
    assert len(text) > LONGEST or f"in {text!r} at character" in str(raised.value)


def test_a_deep_text_is_refused_and_not_the_end_of_the_process():
    with pytest.raises(ExpressionError):
        parsed("-" * 9000 + "a")


def test_the_place_counts_characters_and_not_bytes():
    with pytest.raises(ExpressionError, match="at character 7"):
        parsed("öäü + [öä for x in y]")
