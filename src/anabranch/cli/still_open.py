"""What a run leaves open where its inputs end and the stream does not: on Spark, and with ``--no-finish``."""

from collections.abc import Mapping

WAY_ON = "it comes out when later rows move the stable past it"


def open_text(held: Mapping[str, int]) -> str:
    """What operators hold at the end of a run, for people.

    >>> open_text({"window": 12, "filter": 0, "join": 1})
    'still open: window holds 12 events or partial results, join holds 1'
    """
    first, *others = (f"{name} holds {count:,}" for name, count in held.items() if count)
    return ", ".join([f"still open: {first} events or partial results", *others])
