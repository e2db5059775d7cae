"""What a tree means on the columns of a stream: its type, and the calls of Arrow that compute it.

Types are found by computing on one row of nulls, which fails by nothing but what is the same for all rows: a
function that types do not have, a broken pattern. That is refused here, before there is any row.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.expressions import division
from anabranch.expressions.alignment import ALIKE, CHOICES, COMPARISONS, aligned, comparable
from anabranch.expressions.functions import arrow_function, arrow_options
from anabranch.expressions.literals import adapted
from anabranch.expressions.program import FAILURES, Applied, Chosen, Constant, Lifetime, Node, Reading, Rows
from anabranch.expressions.text import text
from anabranch.expressions.tree import Call, Column, End, ExpressionError, Literal, Start, Tree
from anabranch.model.schema import sort_of
from anabranch.model.spelling import did_you_mean

_NO_ROWS = Rows(pa.record_batch([], names=[]))
_CAST = pc.get_function("cast").call
_DIVISIONS = {"floor_divide": division.floor_quotient, "floor_modulo": division.floor_rest}


@lru_cache(maxsize=1024)
def compiled(tree: Tree, schema: pa.Schema) -> Node:
    """A tree that is ready to run on rows of a schema."""
    match tree:
        case Column(name):
            return _reading(name, schema)
        case Literal():
            return Constant(tree.scalar())
        case Start():
            return Lifetime("start")
        case End():
            return Lifetime("end")
        case Call():
            return _called(tree, [_decoded(tree, compiled(arg, schema)) for arg in tree.args])


def _reading(name: str, schema: pa.Schema) -> Reading:
    match schema.get_all_field_indices(name):
        case [index]:
            return Reading(index, schema.field(index).type)
        case []:
            error = ExpressionError(f"there is no column {name!r}{did_you_mean(name, schema.names)}")
            error.add_note(f"The columns are {', '.join(map(repr, schema.names)) or 'none'}.")
            raise error
        case _:
            raise ExpressionError(f"a column has a name of its own, there are several called {name!r}")


def _called(tree: Call, args: list[Node]) -> Node:
    options = dict(tree.options)
    match tree.function:
        case "cast":
            return _cast(tree, args[0], options["to"], strict=options["strict"])
        case "when":
            return _when(tree, args)
        case "one_of":
            return _one_of(tree, args)
        case "true_divide":
            args = _alike(tree, args, "divide")
            if all(pa.types.is_integer(arg.type) for arg in args):
                args = [_brought(tree, arg, pa.float64()) for arg in args]
            return _applied(tree, arrow_function("divide").call, args)
        case "floor_divide" | "floor_modulo":
            args = _alike(tree, args, "divide")
            if any(sort_of(arg.type) not in ("number", None) for arg in args):
                raise _meaningless(tree, args)
            common = _applied(tree, arrow_function("add").call, [_variable(arg) for arg in args]).type
            return _applied(tree, _DIVISIONS[tree.function], [_brought(tree, arg, common) for arg in args])
        case "floor" | "ceil" | "trunc" if pa.types.is_integer(args[0].type):
            return args[0]
        case "add_checked" if {sort_of(arg.type) for arg in args} in ({"text"}, {"text", None}):
            return _joined(tree, args)
        case function if function in ALIKE:
            args = _alike(tree, args, function)
    return _applied(tree, arrow_function(tree.function).call, args, arrow_options(tree.function, options))


def _alike(tree: Call, args: list[Node], function: str, where: Sequence[int] | None = None) -> list[Node]:
    """Arguments with literals in the types of what they meet, and all in types that the function takes."""
    places = where or range(1 if function == "if_else" else 0, len(args))
    open_ended = [place for place in places if _adapts(tree.args[place])]
    firm = [args[place].type for place in places if place not in open_ended]
    met = next(
        (kind for kind in [*firm, *(args[place].type for place in open_ended)] if kind != pa.null()), None
    )
    args = list(args)
    for place in open_ended:
        given = args[place]
        if isinstance(given, Constant) and met is not None:
            args[place] = Constant(adapted(given.scalar, met))
    kinds = [args[place].type for place in places]
    if function in COMPARISONS | CHOICES:
        for kind in kinds[1:]:
            if not comparable(kinds[0], kind):
                raise _unlike(tree, kinds[0], kind, compares=function in COMPARISONS)
    for place, kind in zip(places, aligned(function, kinds), strict=True):
        args[place] = _brought(tree, args[place], kind)
    return args


def _adapts(tree: Tree) -> bool:
    return isinstance(tree, Literal) and tree.adapts


def _when(tree: Call, args: list[Node]) -> Node:
    """Conditions and values take turns, and what is otherwise stands last."""
    conditions = args[0 : len(args) - 1 : 2]
    for condition in conditions:
        if condition.type not in (pa.bool_(), pa.null()):
            raise ExpressionError(f"what is asked in {text(tree)} is true or false, not {condition.type}")
    values = [*range(1, len(args) - 1, 2), len(args) - 1]
    branches = [_alike(tree, args, "coalesce", values)[place] for place in values]
    common = _applied(tree, arrow_function("coalesce").call, [_variable(branch) for branch in branches]).type
    branches = [_brought(tree, branch, common) for branch in branches]
    chosen = Chosen(tuple(conditions), tuple(branches))
    if all(isinstance(part, Constant) for part in (*conditions, *branches)):
        return Constant(chosen.run(_NO_ROWS))
    return chosen


def _one_of(tree: Call, args: list[Node]) -> Node:
    given, listed = args
    assert isinstance(listed, Constant), "values to look for are the same for all rows"
    values = listed.scalar.values.drop_null()
    if not comparable(given.type, values.type):
        raise _unlike(tree, given.type, values.type, compares=True)
    try:
        if pa.types.is_decimal(given.type) and pa.types.is_floating(values.type):
            raise pa.ArrowInvalid("a float seldom is a decimal number")
        values = values.cast(given.type)
    except FAILURES:
        kinds = aligned("equal", [given.type, values.type])
        values = values.cast(kinds[1])
        given = _brought(tree, given, values.type)
    return _applied(tree, _found_in, [given], pc.SetLookupOptions(values))


def _found_in(args: Sequence[Any], options: pc.SetLookupOptions) -> Any:
    """Whether values are among some; of null nobody knows."""
    (values,) = args
    found = pc.call_function("is_in", [values], options)
    return pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))


def _joined(tree: Call, args: list[Node]) -> Node:
    """Texts one after the other."""
    wide = any(pa.types.is_large_string(arg.type) for arg in args)
    texts = [*args, Constant(pa.scalar(""))]
    texts = [_brought(tree, one, pa.large_string() if wide else pa.string()) for one in texts]
    return _applied(tree, arrow_function("binary_join_element_wise").call, texts)


def _cast(tree: Call, given: Node, to: pa.DataType, *, strict: bool) -> Node:
    """Fractions, digits and parts of units may be lost; a value that does not fit fails, or is null."""
    if pa.types.is_floating(given.type) and pa.types.is_integer(to):
        given = _applied(tree, arrow_function("trunc").call, [given])
    return _brought(tree, given, to, lenient=not strict)


def _brought(tree: Tree, given: Node, to: pa.DataType, *, lenient: bool = False) -> Node:
    if given.type == to:
        return given
    options = pc.CastOptions(
        to,
        allow_float_truncate=not pa.types.is_floating(given.type),
        allow_decimal_truncate=True,
        allow_time_truncate=True,
    )
    return _applied(tree, _CAST, [given], options, lenient=lenient)


def _decoded(tree: Tree, given: Node) -> Node:
    """Values as most functions of Arrow take them: not as codes of a dictionary, nor as views."""
    kind = given.type
    if pa.types.is_dictionary(kind):
        return _brought(tree, given, kind.value_type)
    if pa.types.is_string_view(kind):
        return _brought(tree, given, pa.string())
    if pa.types.is_binary_view(kind):
        return _brought(tree, given, pa.binary())
    return given


def _variable(given: Node) -> Node:
    """The same as if it were not known before there are rows."""
    return Reading(0, given.type)


def _applied(
    tree: Tree, call: Any, args: Sequence[Node], options: Any = None, *, lenient: bool = False
) -> Node:
    constants = [arg.scalar for arg in args if isinstance(arg, Constant)]
    try:
        if len(constants) < len(args):
            known = [arg.scalar if isinstance(arg, Constant) else pa.nulls(1, arg.type) for arg in args]
            return Applied(call, tuple(args), options, call(known, options).type, lenient)
        return Constant(call(constants, options))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise _meaningless(tree, args) from None
    except (pa.ArrowException, TypeError, ValueError) as reason:
        if lenient and isinstance(reason, FAILURES):
            return Constant(pa.scalar(None, call([pa.nulls(1, arg.type) for arg in args], options).type))
        error = ExpressionError(f"{text(tree)} has no meaning: {reason}")
        error.add_note(f"It is used on {', '.join(str(arg.type) for arg in args)}.")
        raise error from None


def _meaningless(tree: Tree, args: Sequence[Node]) -> ExpressionError:
    error = ExpressionError(f"{text(tree)} has no meaning on {' and '.join(str(arg.type) for arg in args)}")
    error.add_note("cast(…) brings values to another type.")
    return error


def _unlike(tree: Tree, one: pa.DataType, other: pa.DataType, *, compares: bool) -> ExpressionError:
    does = "compares" if compares else "chooses between"
    error = ExpressionError(f"{text(tree)} {does} {one} {'with' if compares else 'and'} {other}")
    error.add_note("Values of different sorts are never alike; cast(…) one of them, or give lit(…) its type.")
    return error
