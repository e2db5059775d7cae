"""Streams that become one have the same columns: the same names, of the same types."""

from collections.abc import Sequence

from anabranch.model.spelling import nearest
from anabranch.plan.node import Node, PlanError
from anabranch.plan.select import Select


def same_columns(nodes: Sequence[Node], what: str) -> tuple[Node, ...]:
    """The streams with their columns in the order of the first."""
    first = nodes[0]
    for node in nodes[1:]:
        if odd := sorted({*node.schema.names} ^ {*first.schema.names}):
            has, lacks = (node, first) if odd[0] in node.schema.names else (first, node)
            own = [name for name in lacks.schema.names if name not in has.schema.names]
            near = nearest(odd[0], own)
            instead = "has not" if near is None else f"has {near!r} in its place, did you mean one column?"
            error = PlanError(
                f"{what} is of streams with the same columns; ({has.words()}) has {odd[0]!r}, "
                f"({lacks.words()}) {instead}"
            )
            error.add_note("Select, rename or add columns on one side until both have the same.")
            raise error
        for name in first.schema.names:
            one, other = first.schema.field(name).type, node.schema.field(name).type
            if one != other:
                error = PlanError(
                    f"{what} is of streams with the same columns; {name!r} is {one} and {other}"
                )
                error.add_note(f"Cast one of them: with_columns({name}=col({name!r}).cast({str(one)!r})).")
                raise error
    return tuple(
        node if node.schema.names == first.schema.names else Select.of(node, first.schema.names)
        for node in nodes
    )
