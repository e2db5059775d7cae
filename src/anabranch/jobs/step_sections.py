"""The steps of a plan file, made from the methods of a stream: each operator there is, is a step.

A step is a word, ``"sort"``; or a value for the first argument, ``{ session = "5 minutes" }``; or arguments
by their names, ``{ session = { gap = "5 minutes", start = "began" } }``. What TOML has no value for is text:
an expression, another stream by its name, a function as ``"module:name"``, a lifetime made of START and END.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from anabranch.expressions.parsing import parsed
from anabranch.jobs.lifetimes import parsed_length, parsed_moment
from anabranch.jobs.sections import Names, Section
from anabranch.model.spelling import did_you_mean
from anabranch.plan.stream import Stream
from anabranch.plan.windowed import Windowed
from anabranch.rows.layout import names_of

Span = int | str


class Form(NamedTuple):
    """What an argument is in a file, and the value that it stands for."""

    type: Any
    value: Callable[[Any], Any] = lambda given: given


def _imported(name: str) -> Any:
    """The function that ``module:name`` names."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        error = ValueError(f"a function is named as module:name, {name!r} is not")
        error.add_note("Write for example apply = { function = 'my_package.rows:doubled' }.")
        raise error
    try:
        found = import_module(module)
    except Exception as reason:  # whatever a module of a person does when it is imported
        error = ValueError(f"function {name!r} is of a module that cannot be imported: {reason}")
        error.add_note("It is a module that is installed, or beside what PYTHONPATH names.")
        raise error from reason
    if not hasattr(found, attribute):
        error = ValueError(
            f"module {module!r} has no function {attribute!r}{did_you_mean(attribute, dir(found))}"
        )
        error.add_note("Name one that stands in it as module:name.")
        raise error
    return getattr(found, attribute)


def _pair(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


_FORMS: dict[frozenset[str], Form] = {
    frozenset(names.split()): form
    for names, form in {
        "bool": Form(bool),
        "int": Form(int),
        "str": Form(str),
        "Literal": Form(str),
        "int str timedelta": Form(Span),
        "int str timedelta tuple": Form(Span | list[Span], _pair),
        "tuple": Form(list[str], _pair),
        "Iterable": Form(Names, names_of),
        "Mapping Sequence str": Form(Names | dict[str, str]),
        "Any": Form(dict[str, str]),
        "Expression": Form(str, parsed),
        "Stream": Form(str),
        "Callable": Form(str, _imported),
        "Moment": Form(str, parsed_moment),
        "Length int str timedelta": Form(Span, parsed_length),
    }.items()
}
"""By the names of the types that a parameter may have."""

NOT_STEPS = {"tap": "a job has one output, and a tap is another: open the plan in Python for it"}
"""Operators that are no steps, and why."""
NO_OPERATORS = ("open", "explain", "picture")
"""Methods of a stream that run it or show it."""
OF_WINDOWS = ("group_by", "agg")
"""Steps that go on from windows."""
_OF_COLUMNS: dict[str, Any] = {
    "filter": str,
    "select": list[str | dict[str, str]] | dict[str, str],
    "with_columns": dict[str, str],
    "drop": Names,
    "rename": dict[str, str],
    "group_by": Names,
    "agg": dict[str, str | bool],
    "distinct": bool | Names,
}
"""Steps whose arguments are columns by their names, which only they know."""


def operators() -> dict[str, Callable[..., Any]]:
    """The methods of streams and windows that give a stream or windows."""
    found: dict[str, Callable[..., Any]] = {}
    for kind in (Stream, Windowed):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            gives = str(inspect.signature(method).return_annotation)
            if not name.startswith("_") and any(word in gives for word in ("Stream", "Windowed", "Self")):
                found[name] = method
    return found


def forms(method: Callable[..., Any]) -> dict[str, Form]:
    """What each argument of a method is in a file."""
    hints = get_type_hints(method)
    return {name: _FORMS[_names(hints[name])] for name in list(inspect.signature(method).parameters)[1:]}


def _names(hint: Any) -> frozenset[str]:
    """The names of the types that a hint is of, but for None."""
    parts = get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
    names = set()
    for part in parts:
        if part is not NoneType:
            kind = get_origin(part) or part
            names.add(getattr(kind, "__name__", None) or str(kind).rpartition(".")[2])
    return frozenset(names)


def _first(method: Callable[..., Any]) -> str | None:
    """The argument that a value by itself is for: the first, where all others may be left out."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    first = next((one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD), None)
    return first if {*_needed(method)} <= {first} else None


def _section(name: str, method: Callable[..., Any]) -> Any:
    """The type of a step: true, the first argument, or arguments by name."""
    arguments, needed = forms(method), _needed(method)
    fields: list[Any] = [
        (key, form.type) if key in needed else (key, form.type | None, None)
        for key, form in arguments.items()
    ]
    kinds: Any = None
    if not needed:
        kinds = bool | None
    if (first := _first(method)) is not None:
        kinds = arguments[first].type | kinds
    if fields:
        made = msgspec.defstruct(f"{name.title()}Arguments", fields, bases=(Section,), kw_only=True)
        kinds = made | kinds if kinds is not None else made | None
    return kinds


def step_section(merge: Any) -> Any:
    """A step: the one operator that it has as a key, and its arguments; ``merge`` is what replicas take."""
    methods = operators()
    kinds = {
        name: _OF_COLUMNS[name] if name in _OF_COLUMNS else _section(name, method)
        for name, method in methods.items()
        if name not in NOT_STEPS
    }
    fields: list[Any] = [(name, kind | None, None) for name, kind in {**kinds, "merge": merge}.items()]
    return msgspec.defstruct("StepSection", fields, bases=(Section,), kw_only=True)


def words() -> list[str]:
    """The steps that a word by itself is."""
    methods = operators()
    alone = [
        name
        for name, method in methods.items()
        if name not in _OF_COLUMNS and name not in NOT_STEPS and not _needed(method)
    ]
    return [*alone, "distinct", "merge"]


def _needed(method: Callable[..., Any]) -> list[str]:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return [one.name for one in parameters if one.default is one.empty]


def called(stream: Any, name: str, value: Any, streams: Callable[[str], Any]) -> Any:
    """What comes of a step whose arguments follow from its method; ``streams`` gives one by its name."""
    method = operators()[name]
    arguments = forms(method)
    if value is True and not _needed(method):
        return getattr(stream, name)()
    given: Mapping[str, Any]
    if isinstance(value, Section):
        given = {key: getattr(value, key) for key in arguments if getattr(value, key) is not None}
    else:
        first = _first(method)
        assert first is not None, "a value by itself is for the first argument"
        given = {first: value}
    hints = get_type_hints(method)
    values = {
        key: streams(one) if hints[key] is Stream else arguments[key].value(one) for key, one in given.items()
    }
    return getattr(stream, name)(**values)
