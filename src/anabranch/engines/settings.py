"""What a state was begun with, compared with what the plan or merge that is given it depends on."""

from collections.abc import Mapping

from anabranch.kernels.store.saved import StateFormatError
from anabranch.rows.layout import PAYLOAD_COLUMN

GAINS = "payloads may gain columns"
"""The setting of what has no operator but a merge of replicas: to it an absent column is one of nulls."""


def check_settings(before: Mapping[str, str], now: Mapping[str, str], *, state: str, reader: str) -> None:
    """Raise with the first difference where something else is meant now than when a state was begun.

    ``state`` names what was begun, ``reader`` what is given it.
    """
    gains = GAINS in before and GAINS in now
    added = [name for name in now if name not in before and not (gains and PAYLOAD_COLUMN in name)]
    for name in [*before, *added]:
        if now.get(name) != before.get(name):
            now_has = now[name] if name in before and name in now else _line(name, now)
            error = StateFormatError(
                f"the {state} was begun with {_line(name, before)}, this {reader} has {now_has}"
            )
            error.add_note(f"Go on as before, or begin a new {state}.")
            raise error


def _line(name: str, lines: Mapping[str, str]) -> str:
    return f"{name} {lines[name]}" if name in lines else f"no {name}"
