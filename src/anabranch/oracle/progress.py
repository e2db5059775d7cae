"""Until when channels are stable, by all that was seen of them: what each model of progress means."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Channel: TypeAlias = tuple[str, str | None]
"""A replica and one of its channels, or the replica itself."""
Seen: TypeAlias = Mapping[Channel, Sequence[int]]
"""Of every channel that is known the starts of its valid events; of a replica itself none."""


def stated(seen: Seen) -> dict[Channel, int]:
    """Stables are in the data: events say nothing."""
    return {}


def disorder(seen: Seen, bound: int) -> dict[Channel, int]:
    """No event of a channel comes more than so much after one that starts later."""
    return {channel: max(starts) - bound for channel, starts in seen.items() if starts}
