"""How much of its sources a micro-batch left unread, where offsets tell.

A source of ours that counts rows has offsets ``{replica: {"next": {channel: place}}}``; Spark's progress has
the offsets at which a micro-batch ended, and the latest that there were.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def unread(sources: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Of each replica the rows that are there and not read yet."""
    counts: Counter[str] = Counter()
    for source in sources:
        end, latest = (_places(source.get(name)) for name in ("endOffset", "latestOffset"))
        for (replica, channel), there in latest.items():
            counts[replica] += max(there - end.get((replica, channel), 0), 0) if end else 0
    return dict(counts)


def _places(offset: Any) -> dict[tuple[str, str], int]:
    """The place in each channel of each replica; none in offsets of other sources."""
    try:
        found = json.loads(offset) if isinstance(offset, str) else offset
        return {
            (replica, channel): int(place)
            for replica, one in (found or {}).items()
            for channel, place in one["next"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
