"""Which replicas of a source are attached: one rule, for rows and controls, on both engines.

A replica is attached by its first rows or by an attach, and once: an attach of one that is attached is
refused. One that is detached sends nothing that is used until it is attached again, and then it begins anew.
A detach of one that is not attached is refused, and it stays away. A replica that is *expected* is attached
before anything of it has come: its own attach is its first. One that is *idle* is not waited for; it is idle
until it sends again.
"""

from collections.abc import Iterable
from enum import Enum

from anabranch.model.validity import Rule


class Presence(Enum):
    """What a replica is that is known."""

    EXPECTED = "expected"
    ATTACHED = "attached"
    LEFT = "left"


class Change(Enum):
    """What a source does about a replica when it sends something."""

    NONE = "none"
    ENTERS = "enters"
    BEGINS_ANEW = "begins anew"
    LEAVES = "leaves"


class Attendance:
    """State: the presence of each replica that is known, and which are idle."""

    def __init__(self, awaited: Iterable[str] = ()) -> None:
        """``awaited``: replicas that the plan expects, so that they may be detached before they send."""
        self.awaited = frozenset(awaited)
        self.known: dict[str, Presence] = {}
        self.idle: set[str] = set()

    def is_here(self, name: str) -> bool:
        """It is attached or expected."""
        return self.known.get(name, Presence.LEFT) is not Presence.LEFT

    def is_attached(self, name: str) -> bool:
        """It is attached, and something of it has come, so that an attach is refused."""
        return self.known.get(name) is Presence.ATTACHED

    def has_left(self, name: str) -> bool:
        """Rows of it are refused."""
        return self.known.get(name) is Presence.LEFT

    def met(self) -> set[str]:
        """Those of which something has come."""
        return {name for name, presence in self.known.items() if presence is not Presence.EXPECTED}

    def expect(self, name: str) -> Change:
        """A replica is waited for before anything of it has come."""
        if self.is_here(name):
            return Change.NONE
        self.known[name] = Presence.EXPECTED
        return Change.ENTERS

    def send(self, name: str) -> Change | Rule:
        """Rows come."""
        before = self.known.get(name)
        if before is Presence.LEFT:
            return Rule.DETACHED_INPUT
        self.known[name] = Presence.ATTACHED
        self.idle.discard(name)
        return Change.ENTERS if before is None else Change.NONE

    def attach(self, name: str, *, guarantee: bool = False) -> Change | Rule:
        """An attach comes, perhaps with a guarantee, which one that is expected has not given yet."""
        before = self.known.get(name)
        if before is Presence.ATTACHED:
            return Rule.ALREADY_ATTACHED
        self.known[name] = Presence.ATTACHED
        if before is not Presence.EXPECTED:
            return Change.ENTERS
        return Change.BEGINS_ANEW if guarantee else Change.NONE

    def detach(self, name: str) -> Change | Rule:
        """A detach comes, which is refused where nothing has come of one that the plan does not await."""
        before = self.known.get(name)
        if before is Presence.ATTACHED or (before is Presence.EXPECTED and name in self.awaited):
            return self.leave(name)
        self.leave(name)
        return Rule.DETACHED_INPUT

    def leave(self, name: str) -> Change:
        """It leaves, whatever it is."""
        self.known[name] = Presence.LEFT
        self.idle.discard(name)
        return Change.LEAVES

    def copy(self) -> "Attendance":
        """Another that is alike."""
        other = Attendance(self.awaited)
        other.known, other.idle = dict(self.known), set(self.idle)
        return other

    def saved(self) -> dict[str, str]:
        """What each replica is."""
        return {name: presence.value for name, presence in self.known.items()}

    def resume(self, saved: dict[str, str]) -> None:
        """Go on from what was saved."""
        self.known = {name: Presence(word) for name, word in saved.items()}
