"""What a merge is made with, checked."""

from typing import Any

from anabranch.model.properties import Case


def case_named(case: Case | str | None) -> Case | None:
    """A case, or the one of this name; None if it is to be picked."""
    if case is None or isinstance(case, Case):
        return case
    if str(case).upper() not in Case.__members__:
        error = ValueError(f"a case is one of {', '.join(Case.__members__)}, {case!r} is none")
        error.add_note("Leave it out, and it is picked from the properties of the inputs.")
        raise error
    return Case[str(case).upper()]


def checked(name: str, value: Any, *kinds: type) -> Any:
    """A setting that is of one of its kinds."""
    if not isinstance(value, kinds):
        known = " or ".join(kind.__name__ for kind in kinds)
        error = TypeError(f"{name} is a {known}, not {value!r}")
        if isinstance(value, type) and issubclass(value, kinds):
            error.add_note(f"Make one: {value.__name__}().")
        raise error
    return value


def check_name(name: Any) -> None:
    """Refuse what is no name of an input."""
    if not isinstance(name, str):
        error = TypeError(f"an input is named by a text, {name!r} is of {type(name).__name__}")
        error.add_note(f"Write {str(name)!r}: a name is the same in what is dumped, recorded and shown.")
        raise error
