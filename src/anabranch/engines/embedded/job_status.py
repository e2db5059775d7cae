"""What a job is doing: how far its sources and outputs are, and what its operators hold."""

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from anabranch.kernels.aggregate.window_times import outside_windows
from anabranch.kernels.kernel import Report
from anabranch.kernels.merge.status import Comparing, removals
from anabranch.model.clock import Dial
from anabranch.model.clock_columns import clock_of, dial_of
from anabranch.model.time import BEGINNING
from anabranch.plan.unmerged import unmerged_lossy
from anabranch.rows.replica_names import named_in, names_without_rows

if TYPE_CHECKING:
    from anabranch.engines.embedded.passes import Passes

EXAMPLES = 3
"""How many disagreements are written out in the text of a status."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source: how much it has given, and how far each of its replicas is."""

    received: int
    frontier: int
    """The least of its attached replicas."""
    replicas: dict[str, int]
    dial: Dial = field(default_factory=Dial, repr=False)
    """How its times are told."""
    remarks: tuple[str, ...] = ()
    """What a person should look at: names in settings that no row was of, keys that are no columns."""


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
    removed: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of each merge, by input: events that the output lacks, as a complete one never showed them."""
    disagreements: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of each merge, by input: events that the output has otherwise, when both are final about them."""
    disagreeing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each merge the first of these, in words."""

    def remarks(self) -> list[str]:
        """What a person should look at, and what to do about it."""
        found = [f"{name}: {words}" for name, one in self.sources.items() for words in one.remarks]
        for operator, removed in self.removed.items():
            found += [
                f"{operator}: {words}; if replicas may lose rows, they are lossy (lossy=True)"
                for words in removals(removed)
            ]
        for operator, counts in self.disagreements.items():
            for name, count in counts.items():
                if count:
                    events = f"{count:,} {'events' if count > 1 else 'event'}"
                    found.append(f"{operator}: {name} disagrees with the output about {events}")
            found += [f"{operator}: {words}" for words in self.disagreeing[operator][:EXAMPLES]]
        return found + outside_windows({name: report.counts for name, report in self.operators.items()})

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
            f"{name}: {one.received:,} in, stable to {one.dial.text(one.frontier)}"
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
        lines += self.remarks()
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def status_of(passes: "Passes") -> JobStatus:
    """What a plan that runs in this process is doing."""
    passes.check_usable()
    sources = {}
    unmerged = unmerged_lossy(passes.outputs.values())
    for name, gate in passes.gates.items():
        replicas = {who: gate.stable(who) for who in gate.replicas}
        least = min(replicas.values(), default=BEGINNING)
        lossy = [unmerged[name]] if name in unmerged else []
        remarks = (*_unmet(passes, name), *_odd_keys(passes, name), *lossy)
        sources[name] = SourceStatus(passes.received[name], least, replicas, passes.dials[name], remarks)
    outputs = {name: passes.flow.frontier(name) for name in passes.flow.output}
    dials = {name: dial_of(node.clock) for name, node in passes.outputs.items()}
    removed, disagreements, disagreeing = {}, {}, {}
    for name, node, kernel in passes.flow.kernels():
        if isinstance(kernel, Comparing):
            status = kernel.status()
            removed[name] = {who: one.removed for who, one in status.inputs.items()}
            disagreements[name] = {who: one.disagreements for who, one in status.inputs.items()}
            disagreeing[name] = tuple(one.text(clock_of(node.clock)) for one in status.disagreements)
    reports = passes.flow.reports()
    return JobStatus(
        sources, outputs, reports, dict(passes.refused), dials, removed, disagreements, disagreeing
    )


def _odd_keys(passes: "Passes", name: str) -> list[str]:
    """Keys of rows that are no columns, and columns that no row had, in words."""
    source = passes.sources[name]
    if source.layout is None or source.columns is None:
        return []
    return passes.keys[name].remarks(source.columns.names, (source.layout.replica,))


def _unmet(passes: "Passes", name: str) -> tuple[str, ...]:
    """What settings of a source name and no row was of, in words."""
    source, gate = passes.sources[name], passes.gates[name]
    if not source.replicated or not passes.received[name]:
        return ()
    there = sorted(gate.attendance.met())
    named = named_in(source.lossy, source.silent, source.awaited)
    return tuple(names_without_rows(named, there, passes.received[name]))
