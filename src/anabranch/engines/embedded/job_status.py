"""What a job is doing: how far its sources and outputs are, and what its operators hold."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anabranch.kernels.kernel import Report
from anabranch.model.clock import Dial
from anabranch.model.clock_columns import dial_of
from anabranch.model.time import BEGINNING

if TYPE_CHECKING:
    from anabranch.engines.embedded.job import Job


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source: how much it has given, and how far each of its replicas is."""

    heard: int
    frontier: int
    """The least of its attached replicas."""
    replicas: dict[str, int]
    dial: Dial = field(default_factory=Dial, repr=False)
    """How its times are told."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job after its last push."""

    sources: dict[str, SourceStatus]
    outputs: dict[str, int]
    """The stable of each output; the only one of a plan is called ``""``."""
    operators: dict[str, Report]
    refused: dict[str, int]
    """How many rows broke each rule."""
    dials: dict[str, Dial] = field(default_factory=dict, repr=False)
    """How times of each output are told."""

    @property
    def live(self) -> int:
        """Events and partial results that are held."""
        return sum(report.live for report in self.operators.values())

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(report.nbytes for report in self.operators.values())

    def __str__(self) -> str:
        lines = [
            f"{name}: {one.heard:,} in, stable to {one.dial.text(one.frontier)}"
            for name, one in self.sources.items()
        ]
        for name, report in self.operators.items():
            counts = "".join(f", {n:,} {what.replace('_', ' ')}" for what, n in report.counts.items() if n)
            lines.append(f"{name}: {report.live:,} held in {report.nbytes:,} bytes{counts}")
        lines += [
            f"{name or 'output'}: stable to {self.dials.get(name, Dial()).text(time)}"
            for name, time in self.outputs.items()
        ]
        lines += [f"refused: {count:,} {rule}" for rule, count in self.refused.items()]
        return "\n".join(lines)


def status_of(job: "Job") -> JobStatus:
    """What a job is doing."""
    sources = {}
    for name, gate in job.gates.items():
        replicas = {who: gate.reached(who) for who in gate.frontiers}
        least = min(replicas.values(), default=BEGINNING)
        sources[name] = SourceStatus(job.heard[name], least, replicas, job.dials[name])
    outputs = {name: job.flow.frontier(name) for name in job.flow.output}
    dials = {name: dial_of(node.clock) for name, node in job.outputs.items()}
    return JobStatus(sources, outputs, job.flow.reports(), dict(job.refused), dials)
