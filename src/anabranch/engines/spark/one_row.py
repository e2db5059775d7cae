"""One open row per key: what a history of a table is, and which output policies keep it.

A change of a row is its end and the row that follows. Whoever shows the second before the first shows two
open rows of one key, until a stable has passed the end. `EveryChange` shows both at once; where payload and
start are a key (R3) it goes back, though, to what a slower replica says, which opens a row again that has
ended. There `FollowLeader` keeps one.
"""

import re

from anabranch.kernels.merge.choice import Side, choose
from anabranch.model.output_policy import (
    EveryChange,
    FinalOnly,
    FollowLeader,
    HalfFrozen,
    OutputPolicy,
)
from anabranch.model.properties import Case, Properties

SEVERAL = "anabranch.several_open_rows"
"""Metadata of the column kind: why a merge of changes may show several open rows of a key."""

SCD = "A slowly changing dimension of type 2 (SCD2) is kind 'history': valid_from, and valid_to or null."


def is_scd(kind: str) -> bool:
    """Whether a word for a kind of table means a slowly changing dimension."""
    return re.sub(r"[\W_]", "", kind.lower()) in ("scd", "scd2", "scdtype2", "type2", "slowlychanging")


def policy_of_changes(case: Case | None, properties: Properties | None) -> OutputPolicy:
    """The policy of changes where none is given: the soonest that keeps one open row per key."""
    return FollowLeader() if _is_keyed(EveryChange(), case, properties) else EveryChange()


def several_open_rows(policy: OutputPolicy, case: Case | None, properties: Properties | None) -> str | None:
    """Why a merge of changes may show several open rows of a key; None: it does not."""
    match policy:
        case HalfFrozen() | FinalOnly() | FollowLeader():
            return None
        case EveryChange():
            if not _is_keyed(policy, case, properties):
                return None
            return "EveryChange opens a row again that a slower replica has not ended, where they are keyed"
    return f"{type(policy).__name__} shows the row after a change before it ends the one before"


def _is_keyed(policy: OutputPolicy, case: Case | None, properties: Properties | None) -> bool:
    return choose({"": Side(properties)}, policy, case).case is not Case.R4


def check_one_row(several: str | None) -> None:
    """Raise where a history table would have several open rows of a key."""
    if several is None:
        return
    error = ValueError(f"a history of changes has one open row for each key, and {several}")
    error.add_note("Leave policy out, and one is kept; so do HalfFrozen() and FollowLeader().")
    error.add_note("To see elements as they come out, write kind='elements'.")
    raise error
