"""Which functions an expression may call: Arrow's scalar ones, and a few that are made of these.

A scalar function gives each row its value from that row alone, so rows may be cut into batches anyhow, on one
machine or many. Functions of other kinds see their neighbours and are refused.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.expressions.tree import Call, ExpressionError, Tree
from anabranch.model.spelling import did_you_mean

OURS = {
    "cast": range(1, 2),
    "floor_divide": range(2, 3),
    "floor_modulo": range(2, 3),
    "one_of": range(2, 3),
    "true_divide": range(2, 3),
    "when": range(3, 1_000_001, 2),
}
"""Functions that are not Arrow's, with how many arguments they take."""

_INSTEAD = {
    "case_when": "when(…).then(…).otherwise(…)",
    "cast": "cast(type) of an expression",
    "index_in": "apply(…)",
    "is_in": "is_in([…]) of an expression",
    "random": "apply(…, pure=False)",
}
"""Functions that are not called by name: told by data that is no option, or not the same twice."""


def checked_call(function: str, args: tuple[Tree, ...], options: Mapping[str, Any]) -> Call:
    """A call of a function that there is, ours or Arrow's, with options that it takes."""
    if function not in OURS:
        return arrow_call(function, args, options)
    if len(args) not in OURS[function] or set(options) != ({"to", "strict"} if function == "cast" else set()):
        raise ExpressionError(
            f"{function} is not told {len(args)} values and {', '.join(options) or 'no more'}"
        )
    return Call(function, args, tuple(sorted(options.items())))


def arrow_call(function: str, args: tuple[Tree, ...], options: Mapping[str, Any]) -> Call:
    """A call of a function of Arrow, with options that it takes."""
    arrow_function(function)
    arrow_options(function, options)
    said = ((name, tuple(value) if isinstance(value, list) else value) for name, value in options.items())
    return Call(function, args, tuple(sorted(said)))


@cache
def arrow_function(name: str) -> pc.Function:
    """The function of Arrow by this name, if it is one of single rows."""
    try:
        found = pc.get_function(name)
    except (KeyError, TypeError):
        known = [one for one in pc.list_functions() if pc.get_function(one).kind == "scalar"]
        raise ExpressionError(f"Arrow has no function {name!r}{did_you_mean(name, known)}") from None
    if name in _INSTEAD:
        raise ExpressionError(f"{name!r} is not called by its name; use {_INSTEAD[name]}")
    if found.kind != "scalar":
        error = ExpressionError(f"an expression gives each row a value of its own, {name!r} is {found.kind}")
        error.add_note(
            "It looks at other rows of a batch, and where batches are cut is not part of a stream."
        )
        error.add_note("Use apply(…) for a function of whole batches, or an aggregate over windows.")
        raise error
    return found


def arrow_options(name: str, options: Mapping[str, Any]) -> pc.FunctionOptions | None:
    """Options as Arrow takes them; None where none are given."""
    if not options:
        return None
    kind = arrow_function(name)._doc.options_class
    try:
        if not kind:
            raise TypeError("it takes none")
        lists = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
        return getattr(pc, kind)(**lists)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as reason:
        said = ", ".join(f"{key}={value!r}" for key, value in options.items())
        error = ExpressionError(f"{name} does not take {said}: {reason}")
        if kind:
            error.add_note(f"See pyarrow.compute.{kind}.")
        raise error from None
