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


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowLeader(OutputPolicy):
    """Every change of the input whose stable is furthest, at once; of the others only what stables demand."""

    name: ClassVar[str] = "leader"


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
    """A policy by its name, for a quorum with its share."""
    name, equals, share = text.partition("=")
    if name not in POLICIES or (equals and POLICIES[name] is not Quorum):
        raise ValueError(f"a policy is one of {', '.join(POLICIES)}, and quorum=SHARE, not {text!r}")
    if not equals:
        return POLICIES[name]()
    try:
        return Quorum(fraction=float(share))
    except ValueError:
        raise ValueError(f"a quorum is a share above 0 and at most 1, not {share!r}") from None
