"""Who is attached, by all that ever happened: the meaning of attendance, written as a look at the past."""

from collections.abc import Sequence
from typing import NamedTuple

from anabranch.model.elements import Attach, Control, Detach
from anabranch.model.validity import Rule


class Happening(NamedTuple):
    """A replica sends rows (None), or an attach or a detach."""

    name: str
    what: Control | None


def rule_broken(past: Sequence[Happening], now: Happening, expected: Sequence[str] = ()) -> Rule | None:
    """The rule that what happens now breaks, where ``expected`` are awaited from the beginning.

    The last attach or detach of a replica says whether it is attached; before the first of them rows do. An
    attach that was refused changes nothing, a detach that was refused lets the replica stay away.
    """
    own = [one.what for one in past if one.name == now.name]
    controls = [what for what in own if what is not None]
    left = bool(controls) and isinstance(controls[-1], Detach)
    attached = bool(own) and not left
    match now.what:
        case None:
            return Rule.DETACHED_INPUT if left else None
        case Attach():
            return Rule.ALREADY_ATTACHED if attached else None
        case Detach():
            waited_for = now.name in expected and not own
            return None if attached or waited_for else Rule.DETACHED_INPUT
