"""Values that depend on conditions: ``when(…).then(…).otherwise(…)``."""

from dataclasses import dataclass
from typing import Any

from anabranch.expressions.expression import Expression, lit, unquoted
from anabranch.expressions.functions import checked_call
from anabranch.expressions.tree import ExpressionError, Tree


@dataclass(frozen=True, slots=True)
class When:
    """A condition that waits for its value, after others that have theirs."""

    before: tuple[Tree, ...]
    condition: Expression
    name: str | None = None

    def then(self, value: Any) -> "Then":
        """The value where the condition is true, and none before was."""
        given = unquoted(value)
        pairs = (*self.before, self.condition.tree, given.tree)
        return Then(_chosen(pairs, None), self.name if self.before else given.name)


class Then(Expression):
    """A choice that may go on; as it is, it is null where no condition is true."""

    __slots__ = ()

    def when(self, *conditions: Any) -> When:
        """Another condition, which counts where none before is true."""
        return When(self._pairs(), _all_of(conditions), self.name)

    def otherwise(self, value: Any) -> Expression:
        """The value where no condition is true."""
        return Expression(_chosen(self._pairs(), value), self.name)

    def _pairs(self) -> tuple[Tree, ...]:
        return self.tree.args[:-1]  # type: ignore[union-attr]


def when(*conditions: Any) -> When:
    """A value that depends: of the first conditions that are all true.

    A row never fails by a value that it does not take.

    >>> from anabranch.expressions.expression import col
    >>> when(col("n") > 0).then(col("sum") // col("n")).otherwise(0)
    when(n > 0).then(sum // n).otherwise(0)
    """
    return When((), _all_of(conditions))


def _all_of(conditions: tuple[Any, ...]) -> Expression:
    if not conditions:
        raise ExpressionError("when(…) takes a condition")
    first, *others = map(unquoted, conditions)
    for other in others:
        first = first & other
    return first


def _chosen(pairs: tuple[Tree, ...], otherwise: Any) -> Tree:
    last = lit(None) if otherwise is None else unquoted(otherwise)
    return checked_call("when", (*pairs, last.tree), {})
