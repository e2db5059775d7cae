"""Expressions in words, close to how they were written.

Unlike in Python, comparisons bind more tightly than ``&`` and ``|``, so that they need no parentheses.
"""

import re
from datetime import timedelta
from typing import Any

import pyarrow as pa

from anabranch.expressions.tree import Call, Column, End, Literal, Start, Tree
from anabranch.model.span import span_text

_INFIX = {
    "or_kleene": ("|", 1),
    "and_kleene": ("&", 2),
    "equal": ("==", 3),
    "not_equal": ("!=", 3),
    "less": ("<", 3),
    "less_equal": ("<=", 3),
    "greater": (">", 3),
    "greater_equal": (">=", 3),
    "add_checked": ("+", 4),
    "subtract_checked": ("-", 4),
    "multiply_checked": ("*", 5),
    "true_divide": ("/", 5),
    "floor_divide": ("//", 5),
    "floor_modulo": ("%", 5),
    "power_checked": ("**", 7),
}
_NO_FRACTION = re.compile(r"\.0+(?=Z?$)")
_COMPARISON, _PREFIXED, _POWER, _ATOM = 3, 6, 7, 8
_PREFIX = {"invert": "~", "negate_checked": "-"}

_METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "abs_checked": ("abs", ()),
    "binary_length": ("str.len_bytes", ()),
    "ceil": ("ceil", ()),
    "coalesce": ("fill_null", ()),
    "day": ("dt.day", ()),
    "day_of_week": ("dt.weekday", ()),
    "ends_with": ("str.ends_with", ("pattern",)),
    "floor": ("floor", ()),
    "hour": ("dt.hour", ()),
    "is_null": ("is_null", ()),
    "is_valid": ("is_not_null", ()),
    "list_element": ("list.get", ()),
    "list_value_length": ("list.len", ()),
    "match_substring": ("str.contains", ("pattern",)),
    "match_substring_regex": ("str.contains", ("pattern",)),
    "minute": ("dt.minute", ()),
    "month": ("dt.month", ()),
    "one_of": ("is_in", ()),
    "round": ("round", ("ndigits",)),
    "second": ("dt.second", ()),
    "split_pattern": ("str.split", ("pattern",)),
    "sqrt": ("sqrt", ()),
    "starts_with": ("str.starts_with", ("pattern",)),
    "struct_field": ("struct.field", ("indices",)),
    "utf8_length": ("str.len_chars", ()),
    "utf8_lower": ("str.to_lowercase", ()),
    "utf8_trim": ("str.strip_chars", ("characters",)),
    "utf8_trim_whitespace": ("str.strip_chars", ()),
    "utf8_upper": ("str.to_uppercase", ()),
    "year": ("dt.year", ()),
}
"""How functions are called as methods, and which options stand among the arguments."""


def text(tree: Tree) -> str:
    """An expression in words.

    >>> from anabranch.expressions.expression import col
    >>> text(((col("price") + 1 > 100) & (col("room") == "A")).tree)
    "price + 1 > 100 & room == 'A'"
    """
    return _written(tree)[0]


def _written(tree: Tree) -> tuple[str, int]:
    """The words, and how tightly they hold together."""
    match tree:
        case Column(name):
            return (name, _ATOM) if name.isidentifier() else (f"col({name!r})", _ATOM)
        case Literal():
            shown = _value_text(tree.scalar())
            return shown, _PREFIXED if shown.startswith("-") else _ATOM
        case Start():
            return "start()", _ATOM
        case End():
            return "end()", _ATOM
        case Call(function, (one, other)) if function in _INFIX:
            sign, level = _INFIX[function]
            left = _within(one, level + (level in (_COMPARISON, _POWER)))
            return f"{left} {sign} {_within(other, level + (level != _POWER))}", level
        case Call(function, (one,)) if function in _PREFIX:
            return f"{_PREFIX[function]}{_within(one, _PREFIXED)}", _PREFIXED
        case Call("cast", (one,), options):
            said = dict(options)
            loosely = "" if said["strict"] else ", strict=False"
            return f"{_within(one, _ATOM)}.cast('{said['to']}'{loosely})", _ATOM
        case Call("floor_temporal", (one,), (("multiple", multiple), ("unit", unit))):
            length = f"{multiple} {unit}" + ("" if multiple == 1 else "s")
            return f"{_within(one, _ATOM)}.dt.truncate({length!r})", _ATOM
        case Call("when", args):
            return _when_text(args), _ATOM
        case Call(function, (one, *others), options) if function in _METHODS:
            method, shown_options = _METHODS[function]
            said = dict(options)
            values = [text(other) for other in others]
            values += [_option_text(said[name]) for name in shown_options if name in said]
            return f"{_within(one, _ATOM)}.{method}({', '.join(values)})", _ATOM
        case Call(function, args, options):
            said_options = [f"{name}={_option_text(value)}" for name, value in options]
            return f"{function}({', '.join([*map(text, args), *said_options])})", _ATOM


def _within(tree: Tree, level: int) -> str:
    words, own = _written(tree)
    return words if own >= level else f"({words})"


def _when_text(args: tuple[Tree, ...]) -> str:
    *pairs, otherwise = args
    conditions, values = map(text, pairs[::2]), map(text, pairs[1::2])
    words = ".".join(f"when({asked}).then({value})" for asked, value in zip(conditions, values, strict=True))
    nothing = isinstance(otherwise, Literal) and otherwise.value is None
    return words if nothing else f"{words}.otherwise({text(otherwise)})"


def _option_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_option_text, value))
    return str(value) if isinstance(value, pa.DataType) else repr(value)


def _value_text(scalar: pa.Scalar) -> str:
    kind = scalar.type
    if not scalar.is_valid:
        return "null"
    if isinstance(scalar, pa.ListScalar):
        return f"[{', '.join(map(_value_text, scalar.values))}]"
    if pa.types.is_duration(kind):
        length = scalar.as_py()
        return span_text(length) if type(length) is timedelta else str(length)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _NO_FRACTION.sub("", scalar.cast(pa.string()).as_py())
    if pa.types.is_decimal(kind):
        return str(scalar.as_py())
    return repr(scalar.as_py())
