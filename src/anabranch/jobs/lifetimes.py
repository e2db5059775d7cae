"""Lifetimes as texts: what is made of START and END, as in Python."""

import ast
import re
from typing import Any

from anabranch.model.lifetime import END, START, Length, Moment
from anabranch.model.spelling import nearest

_NAMES = {"START": START, "END": END}
_METHODS = ("floor", "at_most")


def parsed_moment(text: str) -> Moment:
    """A start that is made of START or is END.

    >>> print(parsed_moment("START.floor(10) + 5"))
    floor(start, 10) + 5
    """
    found = _value(text, _tree(text))
    if not isinstance(found, Moment):
        raise _wrong(text, "a start is made of START, or is END")
    return found


def parsed_length(text: int | str) -> Any:
    """A duration: a span, or what is made of END - START.

    >>> print(parsed_length("END - START + 5"), parsed_length("5 minutes"))
    end - start + 5 5 minutes
    """
    if isinstance(text, int) or not {"START", "END"} & {*text.replace("-", " ").replace("(", " ").split()}:
        return text
    found = _value(text, _tree(text))
    if not isinstance(found, Length):
        raise _wrong(text, "a duration is a span, or made of END - START")
    return found


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise _wrong(text, "a lifetime is written as in Python") from None


def _value(text: str, tree: ast.expr) -> Any:
    match tree:
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Constant(value=int() as ticks):
            return ticks
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(text, left) + _value(text, right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(text, left) - _value(text, right)
        case ast.Call(func=ast.Attribute(value=of, attr=method), args=[argument], keywords=[]) if (
            method in _METHODS
        ):
            return getattr(_value(text, of), method)(_value(text, argument))
    raise _wrong(text, "a lifetime is made of START, END, whole numbers, + and -, .floor() and .at_most()")


def _wrong(text: str, rule: str) -> ValueError:
    words = re.findall(r"[^\W\d]\w*", text)
    odd = {word: nearest(word, (*_NAMES, *_METHODS)) for word in words if word not in (*_NAMES, *_METHODS)}
    meant = next((f", did you mean {near!r} by {word!r}?" for word, near in odd.items() if near), "")
    error = ValueError(f"{rule}, {text!r} is not{meant}")
    error.add_note(
        'Write for example alter_lifetime = { start = "START.floor(60)", duration = "END - START" }.'
    )
    return error
