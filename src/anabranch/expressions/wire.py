"""Expressions as JSON, exactly: what is read back equals what was written.

A tree is an object by the name of its form: ``{"column": name}``, ``{"literal": value, "type": name}``,
``{"call": function, "args": […]}``, ``{"start": true}``, ``{"end": true}``. Values that JSON has no exact
form for are objects by the name of theirs: ``{"decimal": "1.50"}``, ``{"float": "nan"}``,
``{"bytes": base64}``, and ``{"int": "…"}`` beyond 2**53.
"""

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa

from anabranch.expressions.functions import checked_call
from anabranch.expressions.tree import Call, Column, End, ExpressionError, Literal, Start, Tree
from anabranch.expressions.types import type_name, type_named

_EXACT_INT = 2**53
_FORMS: dict[str, Callable[[str], Any]] = {
    "bytes": base64.b64decode,
    "decimal": Decimal,
    "float": float,
    "int": int,
    "type": type_named,
}


def to_wire(tree: Tree) -> dict[str, Any]:
    """A tree as values that JSON has."""
    match tree:
        case Column(name):
            return {"column": name}
        case Start():
            return {"start": True}
        case End():
            return {"end": True}
        case Literal(value, kind, adapts):
            return {"literal": _written(value), "type": type_name(kind)} | (
                {"adapts": True} if adapts else {}
            )
        case Call(function, args, options):
            said = {"options": {name: _written(value) for name, value in options}} if options else {}
            return {"call": function, "args": list(map(to_wire, args))} | said


def exact_text(tree: Tree) -> str:
    """An expression as a text that no other expression has, with every option and every type."""
    return json.dumps(to_wire(tree), sort_keys=True)


def from_wire(data: Any) -> Tree:
    """The tree that was written; a form or function that is not known is refused by its name.

    >>> from_wire({"call": "is_null", "args": [{"column": "a"}]})
    Call(function='is_null', args=(Column(name='a'),), options=())
    """
    match data:
        case {"column": str(name), **rest} if not rest:
            return Column(name)
        case {"start": True, **rest} if not rest:
            return Start()
        case {"end": True, **rest} if not rest:
            return End()
        case {"literal": value, "type": str(kind), **rest} if not set(rest) - {"adapts"}:
            return Literal(_read(value), type_named(kind), bool(rest.get("adapts", False)))
        case {"call": str(function), "args": [*args], **rest} if not rest:
            return checked_call(function, tuple(map(from_wire, args)), {})
        case {"call": str(function), "args": [*args], "options": dict(options), **rest} if not rest:
            said = {name: _read(value) for name, value in options.items()}
            return checked_call(function, tuple(map(from_wire, args)), said)
    forms = ", ".join(map(repr, data)) if isinstance(data, dict) else repr(data)
    error = ExpressionError(f"an expression is a column, a literal, a call, a start or an end, not {forms}")
    error.add_note("It may have been written by a newer version of Anabranch.")
    raise error


def _written(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= _EXACT_INT else {"int": str(value)}
        case float():
            return value if isfinite(value) else {"float": repr(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case tuple():
            return list(map(_written, value))
        case pa.DataType():
            return {"type": type_name(value)}
    error = ExpressionError(f"a {type(value).__name__} has no exact form in JSON: {value!r}")
    error.add_note("Write it as a number, a text, bytes, a time, or a list or struct of these.")
    raise error


def _read(value: Any) -> Any:
    match value:
        case list():
            return tuple(map(_read, value))
        case dict():
            ((form, said),) = value.items()
            if form not in _FORMS:
                raise ExpressionError(f"a value is one of {', '.join(_FORMS)}, not {form!r}")
            return _FORMS[form](said)
        case _:
            return value
