"""One open row per key: what a history of a table is, and which output policies keep it.

A change of a row is its end and the row that follows. Whoever shows the second before the first shows two
open rows of one key, until a stable has passed the end. `EveryChange` shows both at once; where payload and
start are a key (R3) it goes back, though, to what a slower replica says, which opens a row again that has
ended. There `FollowLeader` keeps one.
"""

from anabranch.kernels.merge.choice import Side, choose
from anabranch.model.output_policy import (
    EveryChange,
    FinalOnly,
    FollowLeader,
    HalfFrozen,
    Lead,
    OutputPolicy,
)
from anabranch.model.properties import Case, Properties


def policy_of_changes(case: Case | None, properties: Properties | None) -> OutputPolicy:
    """The policy of changes where none is given: the soonest that keeps one open row per key."""
    return FollowLeader() if _is_keyed(EveryChange(), case, properties) else EveryChange()


def several_open_rows(policy: OutputPolicy, case: Case | None, properties: Properties | None) -> str | None:
    """Why a merge of changes may show several open rows of a key; None: it does not."""
    match policy:
        case HalfFrozen() | FinalOnly() | FollowLeader(by=Lead.STABLE):
            return None
        case FollowLeader():
            return (
                f"{policy} follows a replica from the row on that brings it the lead, not the end before it"
            )
        case EveryChange():
            if not _is_keyed(policy, case, properties):
                return None
            return "EveryChange opens a row again that a slower replica has not ended, where they are keyed"
    return f"{type(policy).__name__} shows the row after a change before it ends the one before"


def _is_keyed(policy: OutputPolicy, case: Case | None, properties: Properties | None) -> bool:
    return choose({"": Side(properties)}, policy, case).case is not Case.R4
