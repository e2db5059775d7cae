"""What every dialect's items check when they are built."""

from collections.abc import Mapping

from anabranch.model.time import checked_tick


def check_payload(payload: object) -> None:
    """A payload maps column names to values."""
    if not isinstance(payload, Mapping):
        error = TypeError(f"a payload maps column names to values, {payload!r} does not")
        error.add_note('Name its column: {"value": ' + repr(payload) + "}.")
        raise error


def check_ticks(item: object, kind: str, *names: str) -> None:
    """The named fields of a frozen item are ticks, and plain ints from here on."""
    for name in names:
        what = f"the {name.replace('_', ' ')} of {kind}"
        object.__setattr__(item, name, checked_tick(getattr(item, name), what))
