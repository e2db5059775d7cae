"""The state of a merge as bytes, and back (`state_bytes` has the form of the bytes)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.merge.choice import Choice, Side
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import R3
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.report import count_conduct
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.state_bytes import from_bytes, to_bytes
from anabranch.kernels.merge.status import Disagreement
from anabranch.kernels.merge.tally import Input, Tally
from anabranch.kernels.merge.trail import Trail
from anabranch.model.batch import Batch
from anabranch.model.output_policy import POLICIES, Pace, Quorum
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.rows import rows_of
from anabranch.model.schema import Columns

if TYPE_CHECKING:
    from anabranch.kernels.merge.merger import Merger


def dumped(merger: Merger) -> bytes:
    """The state as bytes, from which `load` goes on as if nothing had happened."""
    for name in merger.inputs:
        count_conduct(merger, name)
    values: dict[str, Any] = {
        "forced": merger.forced and merger.forced.name,
        "policy": {"name": merger.policy.name, "lag": merger.policy.ticks}
        | ({"fraction": merger.policy.fraction} if isinstance(merger.policy, Quorum) else {}),
        "pace": merger.pace.value,
        "identity": merger.identity,
        "remember": merger.remember,
        "attaches": merger.attaches,
        "sides": [column.astype(np.int64).tolist() for column in merger.sides],
        "inputs": {name: [one.number, one.said, one.forced] for name, one in merger.inputs.items()},
        "declared": {name: _side_values(side) for name, side in merger.declared.items()},
        "tallies": {
            name: [getattr(tally, field) for field in Tally.__slots__]
            for name, tally in merger.tallies.items()
        },
        "choice": merger.choice and [merger.choice.case.name, merger.choice.reason],
        "moves": merger.moves,
        "counts": merger.counts.tolist(),
        "decided": sorted(merger.columns.decided),
        "disagreements": [[d.input, d.start, d.shown, d.given, d.since] for d in merger.disagreements],
    }
    batches = [
        rows_of([d.payload for d in merger.disagreements]),
        pa.RecordBatch.from_pylist([], merger.columns.schema),
    ]
    for name, part in (("kernel", merger.kernel), ("cleanse", merger.cleanse), ("trail", merger.trail)):
        values[name], more = (None, []) if part is None else part.dump()
        values[f"{name} batches"] = len(more)
        batches += more
    values["kernel case"] = None if merger.kernel is None else merger.kernel.case.name
    return to_bytes(values, batches + ([] if merger.owed is None else [merger.owed.to_arrow()]))


def restore(merger: Merger, data: bytes) -> None:
    """Make a new merger the one that was dumped."""
    values, (examples, schema, *batches) = from_bytes(data)
    policy = dict(values["policy"])
    merger.forced = values["forced"] and Case[values["forced"]]
    merger.policy = POLICIES[policy.pop("name")](**policy)
    merger.pace = Pace(values["pace"])
    merger.identity = values["identity"] and tuple(values["identity"])
    merger.remember = values["remember"]
    merger.columns = Columns(schema.schema, frozenset(values["decided"]))
    merger.attaches = values["attaches"]
    merger.sides = Sides.restored(values["sides"])
    merger.declared = {name: _side_of(side) for name, side in values["declared"].items()}
    merger.inputs = {
        name: Input(number, merger.declared[name], said, forced)
        for name, (number, said, forced) in values["inputs"].items()
    }
    merger.tallies = {name: Tally(*counts) for name, counts in values["tallies"].items()}
    if values["choice"]:
        case, reason = values["choice"]
        merger.choice = Choice(Case[case], reason)
    merger.moves = values["moves"]
    merger.counts[:] = values["counts"]
    for row, (name, start, shown, given, since) in enumerate(values["disagreements"]):
        payload = {k: v for k, v in examples.slice(row, 1).to_pylist()[0].items() if v is not None}
        merger.disagreements.append(Disagreement(name, payload, start, shown, given, since))
    _restore_parts(merger, values, batches)
    if merger.can_move() and isinstance(merger.kernel, Ordered) and merger.trail is None:
        error = ValueError(
            f"{merger.kernel.case.name} kept nothing to generalise from, and was dumped like that"
        )
        error.add_note("Load it without Generalise(), or start the inputs anew with it.")
        raise error


def _restore_parts(merger: Merger, values: dict[str, Any], batches: list[pa.RecordBatch]) -> None:
    parts = {}
    for name in ("kernel", "cleanse", "trail"):
        parts[name], batches = batches[: values[f"{name} batches"]], batches[values[f"{name} batches"] :]
    match values["kernel case"]:
        case None:
            pass
        case "R3":
            merger.kernel = R3.load(
                merger.sides, merger.policy, merger.remember, values["kernel"], parts["kernel"]
            )
        case "R4":
            merger.kernel = R4.load(
                merger.sides, merger.policy, merger.pace, merger.remember, values["kernel"], parts["kernel"]
            )
        case _:
            merger.kernel = Ordered.load(merger.sides, merger.identity, values["kernel"], parts["kernel"])
    if batches:
        merger.owed = Batch.from_arrow(batches[0])
    if values["cleanse"] is not None:
        merger.cleanse = Cleanse.load(values["cleanse"], parts["cleanse"])
    if values["trail"] is not None:
        merger.trail = Trail.load(values["trail"], parts["trail"])


def _side_values(side: Side) -> list[Any]:
    return [None if side.properties is None else [fact.name for fact in side.properties], side.complete]


def _side_of(values: list[Any]) -> Side:
    facts, complete = values
    return Side(None if facts is None else Properties.of(*(Fact[fact] for fact in facts)), complete)
