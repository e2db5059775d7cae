"""Where a merge of changes is written as a history, which has one open row per key."""

import re

SEVERAL = "anabranch.several_open_rows"
"""Metadata of the column kind: why a merge of changes may show several open rows of a key."""

SCD = "A slowly changing dimension of type 2 (SCD2) is kind 'history': valid_from, and valid_to or null."


def is_scd(kind: str) -> bool:
    """Whether a word for a kind of table means a slowly changing dimension."""
    return re.sub(r"[\W_]", "", kind.lower()) in ("scd", "scd2", "scdtype2", "type2", "slowlychanging")


def check_one_row(several: str | None) -> None:
    """Raise where a history table would have several open rows of a key."""
    if several is None:
        return
    error = ValueError(f"a history of changes has one open row for each key, and {several}")
    error.add_note("Leave policy out, and one is kept; so do HalfFrozen() and FollowLeader().")
    error.add_note("To see elements as they come out, write kind='elements'.")
    raise error
