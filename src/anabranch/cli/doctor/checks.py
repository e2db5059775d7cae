"""All checks, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anabranch.cli.doctor import disk, java, job, kafka, memory, network, packages, session, tables, workers
from anabranch.cli.doctor.finding import Check, Finding, Request, failed

CHECKS: tuple[Check, ...] = (
    packages.python,
    packages.needed,
    packages.optional,
    packages.compiled_code,
    java.runtime,
    workers.interpreter,
    network.address,
    network.host_name,
    memory.available,
    disk.space,
    job.source,
    job.merge,
    tables.fed,
    job.sink,
    kafka.topics,
    tables.of_job,
    job.checkpoint,
    kafka.brokers,
    tables.delta,
    session.merges,
)


def findings(asked: Request, checks: Sequence[Check] = CHECKS) -> Iterator[Finding]:
    """What the checks find, one after the other; one that breaks is trouble, and the others go on."""
    for check in checks:
        try:
            yield from check(asked)
        except Exception as error:
            yield failed(check.__name__.replace("_", " "), error)
