"""When a logical merge says what it knows: output policies as values (LM III-D, V-A).

All of them give the same relation in the end, and none ever breaks a stable it has sent. They trade how soon
an event is out against how often what is out must be corrected.

``lag`` keeps the stable of the output that far behind what the inputs allow, under every policy: what waits
for a stable waits longer, and is corrected less. The stable at the end of time does not lag. It is a number
of ticks, or a length of time (``'5 minutes'``) where whoever merges knows how long a tick is.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from fractions import Fraction
from math import ceil
from typing import ClassVar

from anabranch.model.span import span, span_text
from anabranch.model.spelling import did_you_mean
from anabranch.model.time import BEGINNING, FOREVER, checked_tick

_LAG = "the lag of a policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPolicy:
    """What all policies share."""

    name: ClassVar[str]
    lag: int | timedelta | str = 0

    def __post_init__(self) -> None:
        if isinstance(self.lag, str):
            object.__setattr__(self, "lag", span(self.lag, _LAG))
        if isinstance(self.lag, timedelta):
            is_negative, unit = self.lag < timedelta(0), ""
        else:
            is_negative, unit = checked_tick(self.lag, _LAG) < 0, " ticks"
        if is_negative:
            error = ValueError(f"a stable lags by 0{unit} or more, not by {self._lag_text()}")
            error.add_note("An output cannot be stable beyond what its inputs have promised.")
            raise error

    @property
    def ticks(self) -> int:
        """The lag in ticks."""
        if isinstance(self.lag, int):
            return self.lag
        error = ValueError(f"elements are counted in ticks, the lag of the policy is {self._lag_text()}")
        error.add_note("Give it in ticks: microseconds, where the times of the elements are timestamps.")
        raise error

    @property
    def needs_all(self) -> bool:
        """What is said of an event depends on others that are shown: none may be in another place."""
        return False

    def lagging(self, stable: int) -> int:
        """The stable that the merge makes of one an input has said."""
        return stable if stable == FOREVER else max(stable - self.ticks, BEGINNING)

    def _lag_text(self) -> str:
        return span_text(self.lag) if isinstance(self.lag, timedelta) else str(self.lag)

    def __str__(self) -> str:
        return self.name + (f", {self._lag_text()} behind" if self.lag else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstThenFinal(OutputPolicy):
    """The first copy of an event at once; corrections when a stable would make them impossible. The default.

    LM's own choice: the soonest output, and no more corrections than are needed.
    """

    name: ClassVar[str] = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryChange(OutputPolicy):
    """Every change of every input at once, as far as stables allow.

    Where payload and start are a key (R3), the output follows whoever spoke last. Where they are not (R4), an
    adjust is followed if the output has the end that it moves: which of several events it means is unknown.
    """

    name: ClassVar[str] = "every-change"


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfFrozen(OutputPolicy):
    """An event once a stable has passed its start: what is out is never removed, its end may still move.

    In R0 to R2 no event is ever removed or moved, so there it is out at its first copy.
    """

    name: ClassVar[str] = "half-frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalOnly(OutputPolicy):
    """An event once it can never change: no adjusts at all.

    The stable of the output waits for the earliest start of an event whose end is still open, so one event
    without an end holds it until the end of time. In R0 to R2 an event is final, and out, at its first copy;
    unless the merge may generalise, which makes that a matter of stables again.
    """

    name: ClassVar[str] = "final"


class Lead(Enum):
    """What makes an input the one that is followed (LM V-A): the most of it; of equals the first attached."""

    STABLE = "stable"
    """The greatest stable: the leader, who decides at stables too."""
    LATEST = "latest"
    """The latest start of an insert, of those at or after the output's stable when they were said."""
    UNFROZEN = "unfrozen"
    """The most events that it shows now and that the output's stable leaves unfrozen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowLeader(OutputPolicy):
    """Every change of the input that is ahead, at once; of the others only what stables demand.

    ``by`` is what being ahead means: ``'stable'``, ``'latest'`` or ``'unfrozen'`` (`Lead`). Those come first
    that may decide at a stable: complete inputs that have joined, then others that have. By stable the lead
    changes at stables alone; otherwise any element may bring it, and that element is followed already. What
    an input has shown before it took the lead is not repeated: it waits for a stable, or for its next change.
    """

    name: ClassVar[str] = "leader"
    by: Lead | str = Lead.STABLE

    def __post_init__(self) -> None:
        OutputPolicy.__post_init__(self)
        words = [lead.value for lead in Lead]
        if not isinstance(self.by, Lead) and self.by not in words:
            known = f"{', '.join(words[:-1])} or {words[-1]}"
            raise ValueError(f"a leader is one by {known}, not by {self.by!r}{did_you_mean(self.by, words)}")
        object.__setattr__(self, "by", Lead(self.by))

    @property
    def needs_all(self) -> bool:
        """Who leads is told by all events together: with some of them in other places, others would."""
        return self.by is not Lead.STABLE

    def __str__(self) -> str:
        by = "" if self.by is Lead.STABLE else f" by {Lead(self.by).value}"
        return f"{self.name}{by}" + (f", {self._lag_text()} behind" if self.lag else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum(OutputPolicy):
    """An event once this share of the attached inputs shows it, or a stable has passed its start."""

    name: ClassVar[str] = "quorum"
    fraction: float = 0.5

    def __post_init__(self) -> None:
        OutputPolicy.__post_init__(self)
        if not 0 < self.fraction <= 1:
            raise ValueError(f"a quorum is a share above 0 and at most 1, not {self.fraction}")

    def votes(self, attached: int) -> int:
        """How many of the attached inputs make a quorum: the share as it is written, rounded up.

        >>> Quorum(fraction=0.28).votes(25)
        7
        """
        return max(1, ceil(Fraction(str(self.fraction)) * attached))

    def __str__(self) -> str:
        return f"{self.name} {self.fraction:g}" + (f", {self._lag_text()} behind" if self.lag else "")


class Pace(Enum):
    """Whose stable the output follows while no complete input decides what is absent."""

    SLOWEST = "slowest"
    """The least of the attached inputs that are not idle: each may fill the others' holes."""
    FASTEST = "fastest"
    """The greatest; combined with a lag, the others have that long to fill its holes."""


POLICIES: dict[str, type[OutputPolicy]] = {
    policy.name: policy
    for policy in (FirstThenFinal, EveryChange, HalfFrozen, FinalOnly, FollowLeader, Quorum)
}


def policy_named(text: str) -> OutputPolicy:
    """A policy by its name, for a quorum with its share, for a leader with what makes it one.

    >>> print(policy_named("quorum=0.6"), policy_named("leader=latest"), sep="; ")
    quorum 0.6; leader by latest
    """
    name, equals, word = text.partition("=")
    if name not in POLICIES or (equals and POLICIES[name] not in (Quorum, FollowLeader)):
        raise ValueError(
            f"a policy is one of {', '.join(POLICIES)}, and quorum=SHARE or leader=BY, not {text!r}"
            f"{did_you_mean(name, POLICIES)}"
        )
    if not equals:
        return POLICIES[name]()
    if POLICIES[name] is FollowLeader:
        return FollowLeader(by=word)
    try:
        return Quorum(fraction=float(word))
    except ValueError:
        raise ValueError(f"a quorum is a share above 0 and at most 1, not {word!r}") from None
