"""The settings that the state of a shard was written with, beside those of the query that reads it."""

from collections.abc import Mapping

from anabranch.kernels.store.saved import StateFormatError


def check_settings(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise where a query means something else than the one whose state it is given."""
    for name, value in before.items():
        if now.get(name) != value:
            error = StateFormatError(
                f"the checkpoint was begun with {name} {value}, this query has {now.get(name)}"
            )
            error.add_note("Go on as before, or begin a new checkpoint.")
            raise error
