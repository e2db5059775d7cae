"""Several streams that mean the same as one: streams of a plan, or the replicas of a source."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from anabranch.kernels.kernel import Kernel, State
from anabranch.kernels.merge.choice import Choice, Side, choose
from anabranch.kernels.merge.merge import Merge as MergeKernel
from anabranch.kernels.merge.settings import REMEMBER
from anabranch.model.clock import check_unit, in_ticks
from anabranch.model.clock_columns import clock_of
from anabranch.model.identity import check_types
from anabranch.model.output_policy import (
    FinalOnly,
    FirstThenFinal,
    HalfFrozen,
    OutputPolicy,
    Pace,
)
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.spelling import did_you_mean
from anabranch.model.time import LONGEST_SPAN
from anabranch.model.validity import Policy
from anabranch.plan.graph import Graph
from anabranch.plan.node import Node, PlanError

LAG = "the lag of the policy"
_ORDERED = (Case.R0, Case.R1, Case.R2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Merge(Node):
    """What the inputs mean together, in the case that their properties allow."""

    word: ClassVar[str] = "merge"
    compares: ClassVar[bool] = True
    looks_up: ClassVar[bool] = True

    names: tuple[str, ...] = ()
    """Of the inputs; none where the one input is of replicas."""
    case: Case | None = None
    """The case that is forced; None: it is picked."""
    policy: OutputPolicy = field(default_factory=FirstThenFinal)
    pace: Pace = Pace.SLOWEST
    identity: tuple[str, ...] | None = None
    remember: int = REMEMBER
    generalise: bool = False
    """Where an input breaks a promise, go on in a case that does not need it."""
    on_broken: Policy | None = None
    on_late: Policy | None = None

    def check(self) -> None:
        """Raise where what tells events apart is no column, or the case is not theirs."""
        if self.identity == ():
            error = PlanError("what tells events apart is a column or more, and none is given")
            error.add_note("Leave identity out, and it is the whole payload.")
            raise error
        if not 0 <= self.remember < LONGEST_SPAN:
            raise PlanError(
                f"a merge remembers 0 final events or more, and fewer than 2**62, not {self.remember}"
            )
        for name in self.identity or ():
            if name not in self.schema.names:
                error = PlanError(
                    f"what tells events apart is a column, and {name!r} is none"
                    f"{did_you_mean(name, self.schema.names)}"
                )
                error.add_note(f"The columns are {', '.join(map(repr, self.schema.names))}.")
                raise error
        check_types(pa.schema([self.schema.field(name) for name in self.identity or self.schema.names]))
        if not any(Fact.PUNCTUATED in node.properties for node in self.inputs):
            error = PlanError(
                "a merge keeps what no input has promised to be past, and none ever promises anything"
            )
            error.add_note("Give sources disorder=…, or stables in their rows.")
            raise error
        self._check_holes()
        clock = clock_of(self.clock)
        check_unit(self.policy.lag, clock, LAG)  # type: ignore[arg-type]
        in_ticks(self.policy.lag, clock, LAG)  # type: ignore[arg-type]
        _ = self.choice

    def _check_holes(self) -> None:
        """Raise where inputs that mean the same need not come to the same, as each lacks rows of its own."""
        for name, node in zip(self.names if len(self.names) > 1 else (), self.inputs, strict=False):
            unsure = _unsure(node)
            if unsure is not None:
                error = PlanError(
                    f"streams that are merged mean the same, and {name!r} may not: rows of it may be missing "
                    f"where it is ({unsure.words()}), so that two results would stand for one for good; "
                    "merge the lossy sources first, and do that over what is merged"
                )
                error.add_note("Over one feed that may have lost rows, without a merge, it may stay.")
                raise error

    @property
    def replicated(self) -> bool:
        """The output is one stream."""
        return False

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return self.names if self.names else ("",)

    @property
    def told_apart_by(self) -> tuple[str, ...] | None:
        """The columns that are an event's identity."""
        return self.identity

    def check_channels(self) -> None:
        """Raise where a case is forced that needs one order."""
        if self.case is not None and not self.case.admits(self.case.value.spread()):
            error = ValueError(
                f"{self.case.name} is forced, and needs the rows of a replica in one order; "
                "they come by several channels, and are in order within each"
            )
            error.add_note("Let the case be picked, or force R3 or R4.")
            raise error

    def for_sinks(self) -> dict[str, Any]:
        """The kind of the policy, by which sinks tell what they may be given."""
        by_all = " by what inputs show" if self.policy.needs_all else ""
        return {"policy": type(self.policy).__name__ + by_all}

    @cached_property
    def choice(self) -> Choice:
        """The case that merges the inputs, and why."""
        return choose(self._sides(), self.policy, self.case)

    @property
    def mark(self) -> str:
        """The case."""
        return self.choice.case.name

    @property
    def policy_in_ticks(self) -> OutputPolicy:
        """The policy with its lag in ticks of the clock."""
        lag = in_ticks(self.policy.lag, clock_of(self.clock), LAG)  # type: ignore[arg-type]
        return replace(self.policy, lag=lag)

    def _sides(self) -> dict[str, Side]:
        names = self.names or (_replicas_text(self.inputs[0]),)
        orders = {_tie_order(node) for node in self.inputs}
        alike = not self.names or (len(orders) == 1 and None not in orders)
        return {
            name: Side(_of_ties(node.properties, alike), Fact.COMPLETE in node.properties)
            for name, node in zip(names, self.inputs, strict=True)
        }

    @cached_property
    def properties(self) -> Properties:
        """What the case promises, and what all inputs do."""
        common = self.inputs[0].properties
        for node in self.inputs[1:]:
            common &= node.properties
        case, facts = self.choice.case, {Fact.PUNCTUATED, Fact.COMPLETE}
        stays = {Fact.DISJOINT, Fact.KEYED} if Fact.KEYED in common else set()
        if case in _ORDERED:
            facts |= {
                Fact.INSERT_ONLY,
                Fact.ORDERED,
                *({Fact.DETERMINISTIC_TIES} if case is not Case.R2 else ()),
            }
            facts |= {Fact.STRICTLY_INCREASING} if case is Case.R0 else set()
        elif isinstance(self.policy, FinalOnly):
            facts |= {Fact.INSERT_ONLY}
        elif isinstance(self.policy, HalfFrozen):
            facts |= {Fact.KEPT}
        if case is Case.R4 and self.identity is None:
            stays = set()
        kept = common.keep(*stays)
        return Properties(kept.facts | facts, kept.key, common.longest)

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel, with the streams of the plan attached."""
        if state is not None:
            return MergeKernel.load(state, generalise=self.generalise)
        kernel = MergeKernel(
            self.case,
            self.policy_in_ticks,
            pace=self.pace,
            identity=self.identity,
            remember=self.remember,
            generalise=self.generalise,
        )
        sides = self._sides()
        for name, node in zip(self.names, self.inputs, strict=False):
            kernel.attach(name, None, sides[name].properties, complete=Fact.COMPLETE in node.properties)
        return kernel

    def settings(self) -> dict[str, str]:
        """What a merge goes by."""
        names = ("case", "policy", "pace", "identity", "names")
        return {name: str(getattr(self, name)) for name in names}

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """What tells events apart; nothing where who leads is told by all events together."""
        if self.policy.needs_all:
            return ((),) * len(self.inputs)
        return (self.identity or tuple(self.schema.names),) * len(self.inputs)

    def words(self) -> str:
        """The policy and the case."""
        return f"merge, policy {self.policy}; {self.choice.reason}"


def _unsure(node: Node) -> Node | None:
    """The first operator that makes other events of what has holes, on the way to a node that has some."""
    if Fact.COMPLETE in node.properties:
        return None
    for one in Graph([node]).nodes:
        for rests, given in zip(one.rests_on_absence(), one.inputs, strict=True):
            if rests and Fact.COMPLETE not in given.properties:
                return one
    return None


def _replicas_text(node: Node) -> str:
    """The replicas of a source as people read of them: those that are lossy by name, or every one."""
    while node.inputs:
        node = node.inputs[0]
    lossy = getattr(node, "lossy", False)
    if isinstance(lossy, bool) or not lossy:
        return "every replica"
    return ("each of " if len(lossy) > 1 else "") + ", ".join(sorted(lossy))


def _tie_order(node: Node) -> str | None:
    """By what elements of one sync time are ordered; None: it is not the same for another plan."""
    while node.word in ("filter", "tap"):
        node = node.inputs[0]
    return {"source": "as declared", "sort": "by identity", "final": "by identity"}.get(node.word)


def _of_ties(properties: Properties, alike: bool) -> Properties:
    """What is known of an input beside others: ties that each has in an order of its own are in none."""
    if alike or Fact.STRICTLY_INCREASING in properties:
        return properties
    return properties.keep(*(fact for fact in properties if fact is not Fact.DETERMINISTIC_TIES))
