"""Which case merges given inputs: the narrowest that all of them are within (LM IV-G)."""

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.model.output_policy import FollowLeader, OutputPolicy, Quorum
from anabranch.model.properties import Case, Fact, Properties

ORDERED = (Case.R0, Case.R1, Case.R2)


@dataclass(frozen=True, slots=True)
class Side:
    """What was declared about an input."""

    properties: Properties | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A case, and why it is this one."""

    case: Case
    reason: str


def choose(inputs: Mapping[str, Side], policy: OutputPolicy, forced: Case | None = None) -> Choice:
    """The case for these inputs under this policy.

    >>> ticks = Side(Properties.of(Fact.PERFECT))
    >>> choose({"a": ticks, "b": ticks}, OutputPolicy()).reason
    'R2, counting repeats: every input is perfect; deterministic ties are not declared for a'
    """
    lossy = [name for name, side in inputs.items() if not side.complete]
    if forced is not None:
        return _forced(forced, policy, lossy)
    if lossy:
        return Choice(Case.R4, f"R4: {_names(lossy)} lossy, and what is absent is decided by evidence")
    facts = {name: side.properties or Properties() for name, side in inputs.items()}
    if all(Fact.PERFECT in properties for properties in facts.values()) and facts:
        if not isinstance(policy, FollowLeader | Quorum):
            return _in_order(facts)
        why = f"every input is perfect, but the policy {policy.name!r} needs the index"
    else:
        why = _lacking(facts, Fact.PERFECT)
    if all(Fact.KEYED in properties for properties in facts.values()) and facts:
        return Choice(Case.R3, f"R3: payload and start are a key in every input; {why}")
    return Choice(Case.R4, f"R4: {_lacking(facts, Fact.KEYED)}")


def _forced(forced: Case, policy: OutputPolicy, lossy: list[str]) -> Choice:
    if lossy and forced is not Case.R4:
        error = ValueError(f"{forced.name} has no lossy inputs, {_names(lossy)}")
        error.add_note("Let the case be picked, or force R4: evidence of what was lost needs its ledgers.")
        raise error
    if forced in ORDERED and isinstance(policy, FollowLeader | Quorum):
        error = ValueError(f"{forced.name} has no index, and the policy {policy.name!r} needs one")
        error.add_note("Force R3 or R4, or take the policy 'first'.")
        raise error
    return Choice(forced, f"{forced.name}: forced")


def _in_order(facts: Mapping[str, Properties]) -> Choice:
    for case, fact, why in (
        (Case.R0, Fact.STRICTLY_INCREASING, "starts rise strictly in every input, which has no adjusts"),
        (Case.R1, Fact.DETERMINISTIC_TIES, "every input is perfect, and ties come in one order"),
    ):
        if all(case.admits(properties) for properties in facts.values()):
            return Choice(case, f"{case.name}: {why}")
        lacking = fact
    return Choice(Case.R2, f"R2, counting repeats: every input is perfect; {_lacking(facts, lacking)}")


def _lacking(facts: Mapping[str, Properties], fact: Fact) -> str:
    without = [name for name, properties in facts.items() if fact not in properties]
    verb = "are" if str(fact).endswith("s") else "is"
    return f"{fact} {verb} not declared for {without[0]}" if without else "there are no inputs yet"


def _names(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
