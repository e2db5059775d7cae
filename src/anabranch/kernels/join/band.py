"""Which starts of two streams are near, until when one can be near another to come, what may be promised.

With l and r the starts of the left and the right: ``l - before <= r <= l + after``. Either may be negative.
As in OOP 5.3, with its ranges the right way round (errata): how long one side is kept is said by how far the
*other* is stable.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from anabranch.model.time import BEGINNING, FOREVER

At: TypeAlias = Literal["later", "earlier", "left", "right"]
LEFT, RIGHT = 0, 1
_STRETCHES = 4
"""Stretches of time that a band spans, where a key has many events: a walk is a quarter of it too long."""
_LONGEST = 2**62


@dataclass(frozen=True, slots=True)
class Band:
    """Starts of the right from ``before`` ticks before one of the left to ``after`` ticks after it.

    >>> Band(2, 5).limit(LEFT, 100), Band(2, 5).limit(RIGHT, 100)
    (95, 98)
    >>> Band(2, 5).frontier("later", 100, 90), Band(2, 5).frontier("left", 100, 90)
    (90, 85)
    """

    before: int
    after: int

    def reach(self, side: int) -> tuple[int, int]:
        """How long before and after a start of a side one of the other may be, to be near."""
        return (self.before, self.after) if side == LEFT else (self.after, self.before)

    def limit(self, side: int, stable: int) -> int:
        """The least start of a side that one to come of the other, stable until then, may be near."""
        ticks = self.after if side == LEFT else self.before
        return FOREVER if stable == FOREVER else min(max(stable - ticks, BEGINNING), FOREVER)

    def frontier(self, at: At, left: int, right: int) -> int:
        """The least time at which a pair may still be said, or taken back; exact, whatever is kept."""
        match at:
            case "left":
                return min(left, promise(right, -self.after))
            case "right":
                return min(right, promise(left, -self.before))
            case "later":
                return min(promise(left, max(0, -self.before)), promise(right, max(0, -self.after)))
            case "earlier":
                return min(promise(left, min(0, -self.before)), promise(right, min(0, -self.after)))

    @property
    def stretch(self) -> int:
        """How long the stretches are in which a key with many events is kept."""
        return min(max(1, -(-(self.before + self.after + 1) // _STRETCHES)), _LONGEST)


def promise(stable: int, ticks: int) -> int:
    """A promise that is moved; at either end of time it stays there."""
    return stable if stable in (BEGINNING, FOREVER) else min(max(stable + ticks, BEGINNING), FOREVER)
