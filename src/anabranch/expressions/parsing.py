"""Expressions and aggregates as text, for files that are no programs: ``level > 3 and room != 'hall'``.

They are spelled as in Python, where a bare name is a column; ``and``, ``or``, ``not``, ``in`` and
``a if c else b`` may be written too, because nothing is executed: the text is parsed, and whatever is not of
this small language is refused where it stands.
"""

import ast
import operator
from collections.abc import Callable
from typing import Any

from anabranch.expressions.aggregates import Aggregate, count
from anabranch.expressions.choice import When, when
from anabranch.expressions.expression import Expression, call, col, end, expression, lit, start
from anabranch.expressions.namespaces import Lists, Structs, Texts, Times
from anabranch.expressions.tree import ExpressionError
from anabranch.model.spelling import did_you_mean, keyword_meant

LONGEST = 10_000
"""Characters of a text, at most."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "call": call,
    "col": col,
    "count": count,
    "end": end,
    "lit": lit,
    "start": start,
    "when": when,
}
_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARED: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left.is_in(right),
    ast.NotIn: lambda left, right: ~left.is_in(right),
}
_NAMESPACES = ("dt", "list", "str", "struct")
_PARTS = (Expression, When, Texts, Times, Lists, Structs)
_HIDDEN = ("applied", "alias")
"""Methods that are no part of the language: names are given by keys of a file."""
_TEXT_IS_VALUE = ("call", "fill_null", "is_between", "otherwise", "then", "when")
"""Where a text in quotes can be nothing but a value."""


def parsed(text: str) -> Expression:
    """The expression that a text writes.

    >>> parsed("level * 2 > 3 and room in ['hall', 'attic']")
    level * 2 > 3 & room.is_in(['hall', 'attic'])
    >>> parsed("'high' if level > 3 else 'low'")
    when(level > 3).then('high').otherwise('low')
    """
    return _Text(text).expression()


def parsed_aggregate(text: str) -> Aggregate:
    """The aggregate that a text writes.

    >>> parsed_aggregate("(price * amount).sum()")
    (price * amount).sum()
    >>> parsed_aggregate("count()")
    count()
    """
    return _Text(text).aggregate()


class _Text:
    """A text that is being read."""

    def __init__(self, text: str) -> None:
        self.text = text

    def expression(self) -> Expression:
        found = self._whole()
        if isinstance(found, Aggregate):
            error = self._error("an expression is of one row, and an aggregate is of many", 0)
            error.add_note("Aggregates are said of windows: the step agg, after window.")
            raise error
        return expression(found)

    def aggregate(self) -> Aggregate:
        found = self._whole()
        if not isinstance(found, Aggregate):
            error = self._error("an aggregate is of many rows, and this is of one", 0)
            error.add_note("Write for example count(), price.sum() or (price * amount).max().")
            raise error
        return found

    def _whole(self) -> Any:
        """What the text stands for: an aggregate, an expression or a plain value."""
        if len(self.text) > LONGEST:
            raise ExpressionError(f"an expression has at most {LONGEST:,} characters, not {len(self.text):,}")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as reason:
            raise self._error(f"{reason.msg}", (reason.offset or 1) - 1) from None
        except (ValueError, RecursionError, MemoryError) as reason:
            raise self._error(f"{reason}", 0) from None
        try:
            found = self._value(tree)
            if isinstance(found, _PARTS) and not isinstance(found, Expression):
                raise self._error("an expression goes on here, and the text ends", len(self.text.strip()))
            return found
        except RecursionError:
            raise self._error("it is nested too deeply", 0) from None

    def _value(self, node: ast.expr) -> Any:
        """What a part stands for: an expression, a plain value, or something whose method comes next."""
        match node:
            case ast.Constant(value) if not isinstance(value, complex) and value is not ...:
                return value
            case ast.Name(name):
                return col(name)
            case ast.List(items) | ast.Tuple(items):
                return [self._constant(item) for item in items]
            case ast.BinOp(left, sign, right) if type(sign) in _BINARY:
                return self._made(node, _BINARY[type(sign)], self._operand(left), self._operand(right))
            case ast.BoolOp(sign, values):
                join = operator.and_ if isinstance(sign, ast.And) else operator.or_
                first, *others = map(self._operand, values)
                for other in others:
                    first = self._made(node, join, first, other)
                return first
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                return -number
            case ast.UnaryOp(ast.Not() | ast.Invert(), inner):
                return self._made(node, operator.invert, self._operand(inner))
            case ast.UnaryOp(ast.USub(), inner):
                return self._made(node, operator.neg, self._operand(inner))
            case ast.Compare():
                return self._compared(node)
            case ast.IfExp(asked, this, that):
                chosen = when(self._operand(asked)).then(self._operand(this))
                return self._made(node, chosen.otherwise, self._operand(that))
            case ast.Call():
                return self._called(node)
            case ast.Attribute():
                return self._attribute(node)
        raise self._refused(node, f"an expression has no {_WORDS.get(type(node), type(node).__name__)}")

    def _compared(self, node: ast.Compare) -> Expression:
        found: Expression | None = None
        left = node.left
        for sign, right in zip(node.ops, node.comparators, strict=True):
            one = self._comparison(node, left, sign, right)
            found = one if found is None else self._made(node, operator.and_, found, one)
            left = right
        assert found is not None, "a comparison has a sign"
        return found

    def _comparison(self, node: ast.expr, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Expression:
        if isinstance(sign, ast.Is | ast.IsNot):
            if not isinstance(right, ast.Constant) or right.value is not None:
                raise self._refused(right, "is and is not are written before None; else == and !=")
            value = self._operand(left)
            return value.is_null() if isinstance(sign, ast.Is) else value.is_not_null()
        within = isinstance(sign, ast.In | ast.NotIn)
        other = self._value(right) if within else self._operand(right)
        return self._made(node, _COMPARED[type(sign)], self._operand(left), other)

    def _called(self, node: ast.Call) -> Any:
        if any(keyword.arg is None for keyword in node.keywords):
            raise self._refused(node, "arguments are given one by one")
        match node.func:
            case ast.Name(name) if name in _FUNCTIONS:
                function: Any = _FUNCTIONS[name]
            case ast.Name(name):
                error = self._refused(node, f"there is no function {name!r}{did_you_mean(name, _FUNCTIONS)}")
                error.add_note(f"There are {', '.join(_FUNCTIONS)}, and the methods of expressions.")
                error.add_note(f"Any scalar function of Arrow is called by its name: call({name!r}, …).")
                raise error
            case ast.Attribute(_, name):
                function = self._attribute(node.func, called=True)
            case _:
                raise self._refused(node, "what is called is a function or a method of an expression")
        read = self._operand if name in _TEXT_IS_VALUE else self._value
        args = [read(arg) for arg in node.args]
        if name == "call" and args and isinstance(node.args[0], ast.Constant):
            args[0] = node.args[0].value
        options = {str(keyword.arg): self._value(keyword.value) for keyword in node.keywords}
        return self._made(node, function, *args, **options)

    def _attribute(self, node: ast.Attribute, *, called: bool = False) -> Any:
        value, name = self._value(node.value), node.attr
        if isinstance(value, Aggregate):
            raise self._refused(node, f"nothing follows an aggregate, and {name!r} does")
        if not isinstance(value, _PARTS):
            value = expression(value)
        known = [one for one in dir(type(value)) if one[0] != "_" and one not in _HIDDEN]
        is_method = name in known and callable(getattr(type(value), name, None))
        if name in known and (is_method if called else name in _NAMESPACES):
            return getattr(value, name)
        what = "method" if called else "attribute"
        methods = [one for one in known if callable(getattr(type(value), one, None))]
        meant = did_you_mean(name, [*methods, *_NAMESPACES])
        error = self._refused(node, f"there is no {what} {name!r} of an expression{meant}")
        error.add_note(f"There are {', '.join(methods)}; {', '.join(_NAMESPACES)} have more.")
        raise error

    def _operand(self, node: ast.expr) -> Any:
        """A part as an expression, so that at least one side of a sign is one."""
        value = self._value(node)
        if isinstance(value, Aggregate):
            raise self._refused(node, "an aggregate is no value of a row")
        return value if isinstance(value, _PARTS) else lit(value)

    def _constant(self, node: ast.expr) -> Any:
        value = self._value(node)
        if isinstance(value, Expression):
            raise self._refused(node, "a list has values, not columns")
        return value

    def _made(self, node: ast.expr, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What a function makes of its arguments; what is wrong with them is told with its place."""
        try:
            return function(*args, **options)
        except (TypeError, ValueError) as reason:
            meant = keyword_meant(reason, function) if isinstance(reason, TypeError) else ""
            error = self._refused(node, f"{reason}{meant}")
            for note in getattr(reason, "__notes__", ()):
                error.add_note(note)
            raise error from None

    def _refused(self, node: ast.expr, why: str) -> ExpressionError:
        # Offsets are in bytes of UTF-8.
        line = self.text.strip().splitlines()[node.lineno - 1].encode()
        return self._error(why, len(line[: node.col_offset].decode(errors="replace")))

    def _error(self, why: str, place: int) -> ExpressionError:
        return ExpressionError(f"{why}, in {self.text.strip()!r} at character {place + 1}")


_WORDS: dict[type[ast.AST], str] = {
    ast.Lambda: "functions of its own",
    ast.ListComp: "loops",
    ast.GeneratorExp: "loops",
    ast.SetComp: "loops",
    ast.DictComp: "loops",
    ast.Subscript: "brackets behind a value",
    ast.JoinedStr: "f-strings",
    ast.NamedExpr: "assignments",
    ast.Await: "await",
    ast.Starred: "stars",
    ast.Dict: "dicts",
    ast.Set: "sets; a list is written in brackets",
    ast.BinOp: "such sign between values",
    ast.UnaryOp: "such sign before a value",
    ast.Constant: "such value",
}
