"""What a state depends on, compared with what the plan that is given it says now."""

from collections.abc import Mapping

from anabranch.kernels.store.saved import StateFormatError


def check_settings(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise where a plan means something else than the one whose state it is given."""
    for name in [*before, *(name for name in now if name not in before)]:
        if now.get(name) != before.get(name):
            error = StateFormatError(
                f"the state was begun with {name} {before.get(name, 'absent')}, this plan has "
                f"{now.get(name, 'none')}"
            )
            error.add_note("Go on with the plan as it was, or begin anew without the state.")
            raise error
