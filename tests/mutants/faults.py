"""Small deliberate faults in a source file, one at a time: what a slip of the hand would leave behind.

Only what functions do is changed. Not changed are annotations, defaults and decorators, docstrings and other
texts, assertions, how an error is put into words, and how a value shows itself: no test should pin those.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

LIKE: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
"""What an operator is taken for: its neighbour, or its opposite."""
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
}
SILENT = ("__repr__", "__str__", "__hash__")
"""Functions that no test should pin."""

Make = Callable[[ast.AST], ast.AST]
"""Of a copy of a node, the node that stands in its place."""

Change = tuple[ast.AST, tuple[int, int], tuple[ast.FunctionDef, str], Make]
"""A node, the lines that are run where it is, its function with the name of that, and what is made of it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One change of one function of a source file."""

    path: str
    function: str
    """The qualified name of the outermost function that holds it."""
    first: int
    """The line that function begins at, decorators included."""
    line: int
    lines: tuple[int, int]
    """The first and last line of what is run where the fault is."""
    before: str
    after: str
    number: int
    """Which of the changes of its file it is."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.before}  →  {self.after}"


def faults(source: str, path: str) -> list[Fault]:
    """All faults of a source file, in the order of its lines."""
    tree = ast.parse(source)
    parents, found = _parents(tree), []
    for number, (node, lines, (function, name), make) in enumerate(_changes(tree)):
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        before, after = _shown(node, make(copy.deepcopy(node)), parents)
        if before != after:
            found.append(Fault(path, name, first, node.lineno, lines, before, after, number))
    return found


def faulty(source: str, fault: Fault) -> ast.Module:
    """The tree of a source file with one fault."""
    tree = ast.parse(source)
    node, _, _, make = next(islice(_changes(tree), fault.number, None))
    _put(_parents(tree)[node], node, ast.copy_location(make(copy.deepcopy(node)), node))
    return ast.fix_missing_locations(tree)


def _changes(tree: ast.Module) -> Iterator[Change]:
    """All that may be changed, function by function."""
    for function, name in _functions(tree, ""):
        for node, lines in _sites(function):
            for make in _slips(node, function):
                yield node, lines, (function, name), make


def _parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}


def _put(parent: ast.AST, node: ast.AST, made: ast.AST) -> None:
    """Let one node stand where another stood."""
    for name, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, name, made)
        elif isinstance(value, list):
            value[:] = [made if one is node else one for one in value]


def _shown(node: ast.AST, made: ast.AST, parents: dict[ast.AST, ast.AST]) -> tuple[str, str]:
    """What stood there and what stands there, with as much around it as fits on a line."""
    around = parents[node] if isinstance(node, ast.expr) else node
    while isinstance(parents.get(around), ast.expr | ast.keyword) and len(_text(parents[around])) <= 60:
        around = parents[around]
    if around is node or not isinstance(around, ast.expr | ast.keyword) or len(_text(around)) > 60:
        return _text(node), _text(made)
    before = _text(around)
    _put(parents[node], node, made)
    after = _text(around)
    _put(parents[node], made, node)
    return before, after


def _text(node: ast.AST) -> str:
    """A node on one line; of a statement that holds others, its condition."""
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {_text(node.test)}"
    words = " ".join(ast.unparse(node).split())
    return words if len(words) <= 100 else f"{words[:97]}..."


def _functions(node: ast.AST, outer: str) -> Iterator[tuple[ast.FunctionDef, str]]:
    """The functions of a module and the methods of its classes; what they hold themselves is theirs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and child.name not in SILENT:
            yield child, f"{outer}{child.name}"
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{outer}{child.name}.")


def _sites(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """The nodes of a function that may be changed, with the lines that are run where they are."""
    for block in _blocks(function):
        refuses = isinstance(block[-1], ast.Raise)
        for statement in block:
            if refuses and not isinstance(statement, ast.If):
                continue
            yield from _within(statement)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statements of a function, block by block, those of functions in it included."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
            for statement in value:
                yield from _blocks(statement)
        elif isinstance(value, list):
            for handler in value:
                if isinstance(handler, ast.ExceptHandler | ast.match_case):
                    yield from _blocks(handler)


def _within(statement: ast.stmt) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """A statement and the expressions that belong to it, not to the statements that it holds."""
    if isinstance(
        statement, ast.Assert | ast.Raise | ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    ):
        return
    heads = [
        value for name, value in ast.iter_fields(statement) if name not in ("annotation", "body", "orelse")
    ]
    nodes = [one for head in heads for one in (head if isinstance(head, list) else [head])]
    held = [n for n in nodes if isinstance(n, ast.expr | ast.withitem)]
    last = max([statement.lineno, *(n.end_lineno or 0 for n in held if isinstance(n, ast.expr))])
    yield statement, (statement.lineno, last)
    for node in held:
        yield from ((found, (statement.lineno, last)) for found in _expressions(node))


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    """An expression and those in it, but for texts and what puts errors into words."""
    if isinstance(node, ast.Call) and _is_wording(node):
        return
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.IfExp) and _is_text(node)):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    if isinstance(node, ast.expr):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _expressions(child)


def _is_wording(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name.endswith(("Error", "Warning")) or name in ("add_note", "cast", "warn")


def _is_text(choice: ast.IfExp) -> bool:
    """One of two texts, for people."""
    return any(
        isinstance(n, ast.JoinedStr | ast.Constant) and isinstance(getattr(n, "value", ""), str)
        for n in (choice.body, choice.orelse)
    )


def _slips(node: ast.AST, function: ast.FunctionDef) -> Iterator[Make]:
    match node:
        case ast.Compare(ops=[op]) | ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op):
            for other in LIKE.get(type(op), ()):
                yield _with_operator(other())
        case ast.UnaryOp(op=ast.Not()):
            yield lambda made: made.operand
        case ast.Constant(value=bool()):
            yield lambda made: ast.Constant(not made.value)
        case ast.Constant(value=int()):
            yield lambda made: ast.Constant(made.value + 1)
            yield lambda made: ast.Constant(made.value - 1)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield _renamed
        case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
            yield _renamed
        case ast.If() | ast.IfExp() | ast.While():
            for value in (True, False) if not isinstance(node, ast.While) else (False,):
                yield _with_test(value)
        case ast.Continue() | ast.Break():
            yield lambda _: ast.Pass()
        case ast.Expr(value=ast.Call() as call) if not _is_wording(call):
            yield lambda _: ast.Pass()
    if isinstance(node, ast.AugAssign) or _is_kept(node):
        yield lambda _: ast.Pass()
    if isinstance(node, ast.Call):
        alike = [type(a) is type(b) and not isinstance(a, ast.Starred) for a, b in pairwise(node.args)]
        yield from (_with_swapped(n) for n, both in enumerate(alike) if both)
    if isinstance(node, ast.stmt) and node is not function.body[0] and _returns_nothing(function):
        yield lambda _: ast.Return(None)


def _is_kept(node: ast.AST) -> bool:
    """What is assigned outlives the statement whatever becomes of it: an attribute, or an item."""
    return isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
    )


def _returns_nothing(function: ast.FunctionDef) -> bool:
    return isinstance(function.returns, ast.Constant) and function.returns.value is None


def _with_operator(operator: ast.AST) -> Make:
    def make(made):
        if isinstance(made, ast.Compare):
            made.ops = [operator]
        else:
            made.op = operator
        return made

    return make


def _with_test(value: bool) -> Make:
    def make(made):
        made.test = ast.Constant(value)
        return made

    return make


def _with_swapped(n: int) -> Make:
    def make(made):
        made.args[n], made.args[n + 1] = made.args[n + 1], made.args[n]
        return made

    return make


def _renamed(made):
    if isinstance(made.func, ast.Name):
        made.func.id = NAMES[made.func.id]
    else:
        made.func.attr = NAMES[made.func.attr]
    return made
