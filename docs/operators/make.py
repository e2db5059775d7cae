"""Writes what the code says of each operator into its page: signatures, what they mean, what stays known.

The pages are people's; what stands between the two marks of a page is this program's.

.venv/bin/python docs/operators/make.py
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from textwrap import dedent
from typing import Any

import anabranch as ab
from anabranch import Case, Fact, Properties, Replicas, ReplicasOfChanges, Stream, col, plan
from anabranch.kernels.merge.merge import Merge
from anabranch.plan import build
from anabranch.plan.node import Node
from anabranch.plan.row_operators import RowOperators
from anabranch.plan.select import Select
from anabranch.plan.source import Source
from anabranch.plan.windowed import Windowed

HERE = Path(__file__).parent
BEGIN, END = "<!-- from the code: docs/operators/make.py -->", "<!-- end -->"
WIDTH = 100

GROUPS = {
    "select": ("select", "with_columns", "drop", "rename"),
    "window": ("window", "group_by", "agg"),
    "alter_lifetime": (
        "lasting",
        "hop",
        "tumble",
        "shift",
        "extend",
        "clip",
        "started",
        "ended",
        "alter_lifetime",
    ),
}
"""Methods that are one operator; any other operator has one, of its own name."""

Probe = Callable[[Properties], Stream]


def _source(properties: Properties, name: str = "s") -> Stream:
    return ab.source(name, {"value": "string", "n": "int64"}, properties=properties)


def _over(build: Callable[[Stream], Stream]) -> Probe:
    return lambda properties: build(_source(properties))


PROBES: dict[str, dict[str, Probe]] = {
    "filter": {"filter": _over(lambda s: s.filter(col("n") > 1))},
    "select": {
        "with_columns, rename": _over(lambda s: s.with_columns(m=col("n") + 1)),
        "select, drop": _over(lambda s: s.drop("n")),
    },
    "apply": {"apply": _over(lambda s: s.apply(lambda rows: rows))},
    "alter_lifetime": {
        "lasting": _over(lambda s: s.lasting(5)),
        "hop, tumble": _over(lambda s: s.hop(10, 5)),
        "shift": _over(lambda s: s.shift(5)),
        "extend": _over(lambda s: s.extend(5)),
        "clip": _over(lambda s: s.clip(5)),
        "started": _over(lambda s: s.started()),
        "ended": _over(lambda s: s.ended()),
    },
    "union": {"union": lambda properties: ab.union(_source(properties, "a"), _source(properties, "b"))},
    "join": {
        how: lambda properties, how=how: _source(properties, "a").join(
            _source(properties, "b"), on="value", within=0, how=how
        )
        for how in ("inner", "semi")
    },
    "distinct": {
        "distinct()": _over(lambda s: s.lasting(1).distinct()),
        'distinct("value")': _over(lambda s: s.lasting(1).distinct("value")),
    },
    "final": {
        "final()": _over(lambda s: s.final()),
        "final(ordered=True)": _over(lambda s: s.final(ordered=True)),
    },
    "window": {
        "agg": _over(lambda s: s.window(10).group_by("value").agg(ab.count())),
        "agg, no groups": _over(lambda s: s.window(10).agg(ab.count())),
        "agg(early=True)": _over(lambda s: s.window(10).group_by("value").agg(ab.count(), early=True)),
    },
    "session": {
        "agg": _over(lambda s: s.session(10).group_by("value").agg(ab.count())),
        "agg, no groups": _over(lambda s: s.session(10).agg(ab.count())),
    },
    "rows": {
        "agg": _over(lambda s: s.rows(10).group_by("value").agg(ab.count())),
        "agg, no groups": _over(lambda s: s.rows(10).agg(ab.count())),
    },
    "tap": {"tap": _over(lambda s: s.tap("t"))},
}
"""Streams of which facts are asked, by operator, where it is written in other ways than by its word alone."""
FACTS = tuple(fact for fact in Fact if fact not in (Fact.PERFECT, Fact.PUNCTUATED, Fact.COMPLETE))
"""Perfect is insert only and ordered; the other two follow from sources, and are in the words of a page."""


def operators() -> dict[str, type[Node]]:
    """The operators that a person can write, by their words."""
    found: dict[str, type[Node]] = {}
    for one in iter_modules(plan.__path__, f"{plan.__name__}."):
        for node in vars(import_module(one.name)).values():
            if isinstance(node, type) and issubclass(node, Node) and node.__module__ == one.name:
                found |= {node.word: node} if node is not Node and methods(node.word) else {}
    return found


def methods(word: str) -> dict[str, Callable[..., Any]]:
    """How an operator is written, by what stands before the bracket."""
    found: dict[str, Callable[..., Any]] = {}
    if word == "merge_changes":
        return {"ReplicasOfChanges.merge": ReplicasOfChanges.merge}
    for name in GROUPS.get(word, (word,)):
        for owner, prefix in (
            (Stream, "Stream"),
            (Replicas, "Replicas"),
            (Windowed, "Windowed"),
            (build, "anabranch"),
        ):
            if name in vars(owner) or (owner is Stream and name in vars(RowOperators)):
                found[f"{prefix}.{name}"] = getattr(owner, name)
    return found


def written() -> set[str]:
    """All that makes a stream of streams, or a stream from nothing."""
    makes = ("Stream", "Self", "Any", "Windowed")
    found = {"source", "merge", "union"}
    for owner in (Stream, Replicas, RowOperators, Windowed):
        for name, one in vars(owner).items():
            if inspect.isfunction(one) and not name.startswith("_") and _definition(one)[1] in makes:
                found.add(name)
    return found


def page(word: str) -> str:
    """The page of an operator, with the part of the code as the code is now."""
    return _filled((HERE / f"{word}.md").read_text(encoding="utf-8"), _said(word), f"{word}.md")


def index() -> str:
    """The index, with a line for each operator: the first sentence of its page, and who runs it."""
    lines = ["| operator | means | run by |", "|---|---|---|"]
    for word, node in sorted(operators().items(), key=lambda one: (one[0] != "source", one[0])):
        means = (HERE / f"{word}.md").read_text(encoding="utf-8").split("\n\n")[1]
        runs = "a gate" if node is Source else "a step" if node.stateless else "a kernel"
        others = ", ".join(name for name in GROUPS.get(word, ()) if name != word)
        lines.append(f"| [{word}]({word}.md){': ' if others else ''}{others} | {_first(means)} | {runs} |")
    return _filled((HERE / "README.md").read_text(encoding="utf-8"), lines, "README.md")


def _first(words: str) -> str:
    return words.split(". ", maxsplit=1)[0].rstrip(".")


def _filled(text: str, lines: Iterable[str], name: str) -> str:
    """A page whose part between the marks is these lines."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"{name} has no place for what the code says"
    return "".join([before, begin, "\n\n", "\n".join(lines), "\n\n", end, after])


def _said(word: str) -> Iterator[str]:
    node, found = operators()[word], methods(word)
    for called, function in found.items():
        yield "```python"
        yield _signature(called, function)
        yield "```"
        yield ""
        if words := _words(function):
            yield words
            yield ""
    yield _runs(node)
    if word == "merge":
        yield from ["", *_cases()]
    elif probes := PROBES.get(word) or _unasked(word, found):
        yield from ["", *_table(probes)]


def _unasked(word: str, found: dict[str, Callable[..., Any]]) -> dict[str, Probe]:
    """An operator of which nothing need be said but its word."""
    needs = [part for one in found.values() for part in _definition(one)[0] if "=" not in part]
    return (
        {word: _over(lambda s: getattr(s, word)())} if not needs and list(found) == [f"Stream.{word}"] else {}
    )


def _runs(node: type[Node]) -> str:
    if node is Source:
        return "No operator: the gate in front of the flow is made from it (`progress/gate.py`)."
    what = "a step, without state" if node.stateless else "a kernel, with state"
    replicas = node.word in vars(RowOperators) or node is Select
    where = ", on streams and on each replica of a source" if replicas else ""
    files = " and ".join(dict.fromkeys([f"`plan/{_file(node)}`", f"`{_file(node, kernel=True)}`"]))
    return f"Run by {what}{where}; it is in {files}."


def _file(node: type[Node], *, kernel: bool = False) -> str:
    if not kernel:
        return node.__module__.removeprefix("anabranch.plan.") + ".py"
    hint = inspect.get_annotations(node.operator)["return"]
    module = Merge.__module__ if node.word == "merge" else hint.__module__
    return module.removeprefix("anabranch.").replace(".", "/") + ".py"


def _table(probes: dict[str, Probe]) -> Iterator[str]:
    """Of each fact by itself what becomes of it."""
    yield "| of the input is known | " + " | ".join(f"after `{name}`" for name in probes) + " |"
    yield "|---|" + "---|" * len(probes)
    for fact in FACTS:
        cells = []
        for probe in probes.values():
            made = fact in probe(Properties()).properties
            stays = fact in probe(Properties.of(fact)).properties
            cells.append("always so" if made else "stays" if stays else "not known")
        yield f"| {fact} | " + " | ".join(cells) + " |"


def _cases() -> Iterator[str]:
    yield "| both inputs are | case | so is the output |"
    yield "|---|---|---|"
    for case in Case:
        streams = [_source(case.value, name) for name in "ab"]
        merged = ab.merge(*streams)
        assert merged.node.mark == case.name
        yield f"| {_facts(case.value)} | {case.name} | {_facts(merged.properties)} |"


def _facts(properties: Properties) -> str:
    hidden = {Fact.PUNCTUATED, Fact.COMPLETE, Fact.SHRINKING, Fact.KEPT}
    words = [str(fact) for fact in properties if fact not in hidden]
    implied = {"insert only", "ordered"} if "perfect" in words else set()
    return ", ".join(word for word in words if word not in implied) or "anything"


def _definition(function: Callable[..., Any]) -> tuple[list[str], str]:
    """The parameters of a function as they are written, and what it gives."""
    tree = ast.parse(dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = tree.args
    parts: list[str] = []
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    for one, default in zip(positional, [*defaults, *arguments.defaults], strict=True):
        if one.arg != "self":
            parts.append(_parameter(one, default))
    if arguments.vararg:
        parts.append(f"*{_parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append(_parameter(one, default))
    if arguments.kwarg:
        parts.append(f"**{_parameter(arguments.kwarg, None)}")
    return parts, "" if tree.returns is None else _plain(tree.returns)


def _parameter(one: ast.arg, default: ast.expr | None) -> str:
    words = one.arg if one.annotation is None else f"{one.arg}: {_plain(one.annotation)}"
    if default is None:
        return words
    return f"{words} {'=' if one.annotation else ''} {ast.unparse(default)}".replace("  ", "=")


def _plain(annotation: ast.expr) -> str:
    return ast.unparse(annotation).replace("'", "")


def _signature(called: str, function: Callable[..., Any]) -> str:
    parts, gives = _definition(function)
    owner, _, name = called.partition(".")
    gives = {"Self": "Stream", "Any": "Stream | Replicas | ReplicasOfChanges"}.get(gives, gives)
    whole = f"{owner}.{name}({', '.join(parts)}) -> {gives}"
    if len(whole) <= WIDTH:
        return whole
    return "\n".join([f"{owner}.{name}(", *(f"    {part}," for part in parts), f") -> {gives}"])


def _words(function: Callable[..., Any]) -> str:
    """A docstring without its examples, as Markdown."""
    words = inspect.getdoc(function) or ""
    words = re.split(r"^>>>", words, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return re.sub(r"``([^`]+)``", r"`\1`", words)


if __name__ == "__main__":
    for word in operators():
        (HERE / f"{word}.md").write_text(page(word), encoding="utf-8")
    (HERE / "README.md").write_text(index(), encoding="utf-8")
