"""What people write of a merge, as its node has it."""

from collections.abc import Iterable
from typing import Any

from anabranch.kernels.merge.settings import Generalise, OnBroken, case_named, checked, note_value, policy_of
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Case
from anabranch.model.validity import Policy, check_policy
from anabranch.rows.layout import names_of


def merge_settings(
    *,
    case: Case | str | None,
    policy: OutputPolicy | str | None,
    pace: Pace,
    identity: str | Iterable[str] | None = None,
    remember: int,
    on_broken: OnBroken | None,
    on_late: Policy | None,
) -> dict[str, Any]:
    """The fields of a merge's node; raises where one is not of its kind."""
    given = {"on_broken": on_broken, "on_late": on_late, "pace": pace}
    try:
        return _checked(case, policy, pace, identity, remember, on_broken, on_late)
    except TypeError as error:
        for name, value in given.items():
            note_value(error, name, value)
        raise


def _checked(
    case: Case | str | None,
    policy: OutputPolicy | str | None,
    pace: Pace,
    identity: str | Iterable[str] | None,
    remember: int,
    on_broken: OnBroken | None,
    on_late: Policy | None,
) -> dict[str, Any]:
    check_policy("on_broken", on_broken, Generalise)
    check_policy("on_late", on_late)
    generalises = isinstance(on_broken, Generalise)
    return {
        "case": case_named(case),
        "policy": policy_of(policy),
        "pace": checked("pace", pace, Pace),
        "identity": names_of(identity),
        "remember": checked("remember", remember, int),
        "generalise": generalises,
        "on_broken": None if generalises else on_broken,
        "on_late": on_late,
    }
