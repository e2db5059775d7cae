"""What a merge is made with, checked."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.model.output_policy import FirstThenFinal, OutputPolicy, Pace, policy_named
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.validity import Drop, Policy, Quarantine, Raise


@dataclass(frozen=True, slots=True)
class Generalise:
    """Where an input breaks a property, go on in the next case that does not need it, with nothing lost.

    What the output had made stable before, relying on the promise, stays as it is. To be able to move, R0, R1
    and R2 keep every event that is not final instead of a few counts.
    """


REMEMBER = 16_384
"""Final events that are kept to be compared with slower inputs."""
OnBroken: TypeAlias = Policy | Generalise
Promised: TypeAlias = Properties | Fact | str | Iterable[Fact | str]


def properties_of(promised: Promised | None) -> Properties | None:
    """What an input promises, however it is written."""
    if isinstance(promised, str | Fact):
        promised = [promised]
    return promised if isinstance(promised, Properties | None) else Properties.of(*promised)


def columns_named(identity: Sequence[str] | None) -> tuple[str, ...] | None:
    """The payload columns that tell events apart; None: all."""
    if isinstance(identity, str):
        error = TypeError(f"identity is a list of column names, {identity!r} is one name")
        error.add_note(f"Write identity=[{identity!r}].")
        raise error
    return None if identity is None else tuple(identity)


def case_named(case: Case | str | None) -> Case | None:
    """A case, or the one of this name; None if it is to be picked."""
    if case is None or isinstance(case, Case):
        return case
    if str(case).upper() not in Case.__members__:
        error = ValueError(f"a case is one of {', '.join(Case.__members__)}, {case!r} is none")
        error.add_note("Leave it out, and it is picked from the properties of the inputs.")
        raise error
    return Case[str(case).upper()]


def policy_of(value: OutputPolicy | str | None) -> OutputPolicy:
    """An output policy, or the one that a word such as ``"final"`` names; None: `FirstThenFinal`."""
    if isinstance(value, str):
        return policy_named(value)
    return checked("policy", FirstThenFinal() if value is None else value, OutputPolicy)


def checked(name: str, value: Any, *kinds: type) -> Any:
    """A setting that is of one of its kinds."""
    if not isinstance(value, kinds):
        known = " or ".join(kind.__name__ for kind in kinds)
        error = TypeError(f"{name} takes a value of {known}, not {value!r}")
        if isinstance(value, type) and issubclass(value, kinds):
            error.add_note(f"Make one: {value.__name__}().")
        raise error
    return value


def note_value(error: TypeError, name: str, given: object) -> None:
    """Where a setting is a word, note the value that it stands for in job files, or all there are."""
    if not isinstance(given, str):
        return
    answers = (Raise, Drop, Quarantine, Generalise) if name == "on_broken" else (Raise, Drop, Quarantine)
    values = {kind.__name__.lower(): f"{kind.__name__}()" for kind in answers}
    if name == "pace":
        values = {pace.value: str(pace) for pace in Pace}
    meant = values.get(given.lower())
    if meant is None:
        error.add_note(f"{name} is one of {', '.join(values.values())}, all of them names of anabranch.")
    else:
        error.add_note(f"Write {name}={meant}, after: from anabranch import {re.split('[(.]', meant)[0]}")


def check_name(name: Any) -> None:
    """Refuse what is no name of an input."""
    if not isinstance(name, str):
        error = TypeError(f"an input is named by a text, {name!r} is of {type(name).__name__}")
        error.add_note(f"Write {str(name)!r}: a name is the same in what is dumped, recorded and shown.")
        raise error
