"""What a shard of a level of a plan says about a micro-batch."""

from collections.abc import Mapping

from anabranch.engines.spark.query.status import Replica, ShardStatus
from anabranch.engines.spark.shard import Shard, ShardResult
from anabranch.kernels.merge.status import Comparing
from anabranch.model.batch import KINDS
from anabranch.model.clock_columns import clock_of


def shard_status(
    shard: Shard, result: ShardResult, before: int, refused: int, state_bytes: int, dropped: int = 0
) -> ShardStatus:
    """How a shard is after the micro-batch that it has run, with how the inputs of its merges are doing."""
    said = dict.fromkeys(KINDS[:2], 0)
    for batch in (batch for output in result.outputs.values() for batch in output):
        adjusts = int((batch.kind == 1).sum())
        said["insert"] += len(batch) - adjusts
        said["adjust"] += adjusts
    comparing = {name: kernel for name, _, kernel in shard.flow.kernels() if isinstance(kernel, Comparing)}
    told = {name: kernel.status() for name, kernel in comparing.items()}
    reports = shard.flow.reports()
    return ShardStatus(
        shard.number,
        " and ".join(one.case for one in told.values()),
        shard.frontier,
        shard.frontier > before,
        dict(result.received),
        said,
        refused,
        sum(report.live for report in reports.values()),
        state_bytes,
        _replicas(shard, comparing),
        next((one.stuck for one in told.values() if one.stuck), None),
        dropped + result.dropped,
        clock=_clock(shard),
        operators={
            name: {"live": report.live, "bytes": report.nbytes, **report.counts}
            for name, report in reports.items()
        },
        before=before,
    )


def _replicas(shard: Shard, comparing: Mapping[str, Comparing]) -> dict[str, Replica]:
    """The inputs of operators that compare them, after the name of the operator where there are several."""
    left_out: dict[str, int] = {}
    for (edge, name), count in shard.left_out.items():
        left_out[name or edge] = left_out.get(name or edge, 0) + count
    found = {}
    for operator, kernel in comparing.items():
        snapshots = kernel.snapshots()
        for name, one in kernel.status().inputs.items():
            found[name if len(comparing) == 1 else f"{operator}: {name}"] = Replica(
                one.frontier,
                one.lag,
                one.attached,
                one.joined,
                one.elements,
                one.led,
                one.disagreements,
                one.holes,
                one.filled,
                one.late,
                one.refused + left_out.get(name, 0),
                one.removed,
                one.complete,
                one.holds,
                *snapshots.get(name, (None, 0)),
            )
    return found


def _clock(shard: Shard) -> str:
    return clock_of(shard.assignment.clock).name
