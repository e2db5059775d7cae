"""The state of a merge as data, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anabranch.kernels.cleanse import VERSION as CLEANSE_VERSION
from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.kernel import State
from anabranch.kernels.merge.choice import Choice, Side
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import R3
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.report import count_conduct
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.status import Disagreement
from anabranch.kernels.merge.tally import Input, Tally
from anabranch.kernels.merge.trail import Trail
from anabranch.kernels.store.saved import version_of
from anabranch.model.output_policy import POLICIES, FollowLeader, Lead, OutputPolicy, Pace, Quorum
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.rows import rows_of
from anabranch.model.schema import Columns

if TYPE_CHECKING:
    from anabranch.kernels.merge.merge import Merge


VERSION = 3


def saved(merge: Merge) -> State:
    """All there is to know, from which `restore` goes on as if nothing had happened."""
    for name in merge.inputs:
        count_conduct(merge, name)
    values: dict[str, Any] = {
        "forced": merge.forced and merge.forced.name,
        "policy": {"name": merge.policy.name, "lag": merge.policy.ticks} | _own_settings(merge.policy),
        "pace": merge.pace.value,
        "identity": merge.identity,
        "remember": merge.remember,
        "attaches": merge.attaches,
        "sides": [column.astype(np.int64).tolist() for column in merge.sides],
        "inputs": {name: [one.number, one.frontier, one.forced] for name, one in merge.inputs.items()},
        "declared": {name: _side_values(side) for name, side in merge.declared.items()},
        "tallies": {
            name: [getattr(tally, field) for field in Tally.__slots__]
            for name, tally in merge.tallies.items()
        },
        "choice": merge.choice and [merge.choice.case.name, merge.choice.reason],
        "moves": merge.moves,
        "counts": merge.counts.tolist(),
        "agreed": merge.agreed,
        "decided": sorted(merge.columns.decided),
        "disagreements": [[d.input, d.start, d.shown, d.given, d.since] for d in merge.disagreements],
    }
    batches = [
        rows_of([d.payload for d in merge.disagreements]),
        pa.RecordBatch.from_pylist([], merge.columns.schema),
    ]
    more: list[pa.RecordBatch]
    for name, part in (("kernel", merge.kernel), ("cleanse", merge.cleanse), ("trail", merge.trail)):
        match part:
            case None:
                values[name], more = None, []
            case Cleanse():
                _, values[name], more = part.saved()
            case _:
                values[name], more = part.dump()
        values[f"{name} batches"] = len(more)
        batches += more
    values["kernel case"] = None if merge.kernel is None else merge.kernel.case.name
    return State(VERSION, values, batches)


def restore(merge: Merge, state: State) -> None:
    """Make a new merge the one whose state was saved."""
    _, values, (examples, schema, *batches) = version_of(state, VERSION, "a merge")
    policy = dict(values["policy"])
    merge.forced = values["forced"] and Case[values["forced"]]
    merge.policy = POLICIES[policy.pop("name")](**policy)
    merge.pace = Pace(values["pace"])
    merge.identity = values["identity"] and tuple(values["identity"])
    merge.remember = values["remember"]
    merge.columns = Columns(schema.schema, frozenset(values["decided"]))
    merge.attaches = values["attaches"]
    merge.sides = Sides.restored(values["sides"])
    merge.declared = {name: _side_of(side) for name, side in values["declared"].items()}
    merge.inputs = {
        name: Input(number, merge.declared[name], frontier, forced)
        for name, (number, frontier, forced) in values["inputs"].items()
    }
    merge.tallies = {name: Tally(*counts) for name, counts in values["tallies"].items()}
    if values["choice"]:
        case, reason = values["choice"]
        merge.choice = Choice(Case[case], reason)
    merge.moves = values["moves"]
    merge.counts[:] = values["counts"]
    merge._agreed = values["agreed"]
    for row, (name, start, shown, given, since) in enumerate(values["disagreements"]):
        payload = {k: v for k, v in examples.slice(row, 1).to_pylist()[0].items() if v is not None}
        merge.disagreements.append(Disagreement(name, payload, start, shown, given, since))
    _restore_parts(merge, values, batches)
    if merge.generalise and isinstance(merge.kernel, Ordered) and merge.trail is None:
        error = ValueError(
            f"{merge.kernel.case.name} kept nothing to generalise from, and was dumped like that"
        )
        error.add_note("Load it without Generalise(), or start the inputs anew with it.")
        raise error


def _restore_parts(merge: Merge, values: dict[str, Any], batches: list[pa.RecordBatch]) -> None:
    parts = {}
    for name in ("kernel", "cleanse", "trail"):
        parts[name], batches = batches[: values[f"{name} batches"]], batches[values[f"{name} batches"] :]
    match values["kernel case"]:
        case None:
            pass
        case "R3":
            merge.kernel = R3.load(
                merge.sides, merge.policy, merge.remember, values["kernel"], parts["kernel"]
            )
        case "R4":
            merge.kernel = R4.load(
                merge.sides, merge.policy, merge.pace, merge.remember, values["kernel"], parts["kernel"]
            )
        case _:
            merge.kernel = Ordered.load(merge.sides, merge.identity, values["kernel"], parts["kernel"])
    if values["cleanse"] is not None:
        merge.cleanse = Cleanse.load(State(CLEANSE_VERSION, values["cleanse"], parts["cleanse"]))
    if values["trail"] is not None:
        merge.trail = Trail.load(values["trail"], parts["trail"])


def _own_settings(policy: OutputPolicy) -> dict[str, Any]:
    match policy:
        case Quorum(fraction=fraction):
            return {"fraction": fraction}
        case FollowLeader(by=by):
            return {"by": Lead(by).value}
    return {}


def _side_values(side: Side) -> list[Any]:
    return [None if side.properties is None else [fact.name for fact in side.properties], side.complete]


def _side_of(values: list[Any]) -> Side:
    facts, complete = values
    return Side(None if facts is None else Properties.of(*(Fact[fact] for fact in facts)), complete)
