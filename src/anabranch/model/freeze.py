"""What a stable leaves open about an event (LM III-C, with its boundaries spelled out).

| status | when | what may still happen |
|---|---|---|
| unfrozen | ``start >= stable`` | anything, removal included |
| half frozen | ``start < stable <= end`` | its end may move, to no earlier than the stable |
| fully frozen | ``end < stable`` | nothing |

An event whose end *equals* the stable is half frozen: it may still be extended. After ``stable(FOREVER)``
every event is fully frozen, those without an end included.
"""

from enum import IntEnum

from anabranch.model.time import FOREVER


class Freeze(IntEnum):
    """How much of an event can still change; later members leave less open."""

    UNFROZEN = 0
    HALF_FROZEN = 1
    FULLY_FROZEN = 2

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


def freeze(start: int, end: int, stable: int) -> Freeze:
    """The status of the lifetime ``[start, end)`` once ``stable`` has been said.

    >>> str(freeze(2, 16, 14)), str(freeze(3, 10, 14)), str(freeze(15, 20, 14)), str(freeze(0, 14, 14))
    ('half frozen', 'fully frozen', 'unfrozen', 'half frozen')
    """
    if stable == FOREVER or end < stable:
        return Freeze.FULLY_FROZEN
    if start < stable:
        return Freeze.HALF_FROZEN
    return Freeze.UNFROZEN
