"""Python and the packages: those that are needed, in versions that go together, and those that some need."""

from __future__ import annotations

import operator
import platform
import re
import sys
from collections.abc import Collection, Iterator
from importlib import import_module, metadata

from anabranch.cli.doctor.finding import Finding, Request, note, ok, trouble
from anabranch.extras import SPARK

OPTIONAL = {
    **dict.fromkeys(SPARK, ("spark", "queries on Spark")),
    "confluent-kafka": ("kafka", "Kafka topics"),
    "fastavro": ("kafka", "rows in Avro"),
    "deltalake": ("delta", "Delta tables"),
}
"""The packages that some jobs need: the extra that brings them, and what they are for."""
MODULES = SPARK
"""What is imported, where it is not the package's name."""

_LIMITS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def python(asked: Request) -> Iterator[Finding]:
    """The interpreter of this command."""
    wanted = metadata.metadata("anabranch")["Requires-Python"] or ""
    found = f"{platform.python_version()}, {sys.executable}"
    if allows(wanted, platform.python_version()):
        yield ok("python", found)
    else:
        yield trouble(
            "python",
            f"{found}; anabranch needs {wanted}",
            "Make an environment with such a Python, and install anabranch in it.",
        )


def needed(asked: Request) -> Iterator[Finding]:
    """The packages that anabranch always needs."""
    for name, (limits, extra) in _requirements().items():
        if extra is None:
            yield package(name, limits)


def optional(asked: Request) -> Iterator[Finding]:
    """The packages that some jobs need."""
    limits = {name: limits for name, (limits, _) in _requirements().items()}
    needed = _needed_by(asked)
    for name in OPTIONAL:
        yield package(name, limits.get(name, ""), is_needed=name in needed)


def _needed_by(asked: Request) -> Collection[str]:
    spark = SPARK if asked.spark else ()
    if asked.job is None:
        return spark
    from anabranch.jobs.beforehand import needed_packages

    return {*spark, *needed_packages(asked.job, embedded=False)}


def package(name: str, limits: str, *, is_needed: bool = False) -> Finding:
    """One package: there, in a version that will do, and it imports."""
    install = f"pip install '{name}{limits}'"
    extra, what_for = OPTIONAL.get(name, (None, ""))
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        if extra is None:
            return trouble(name, "not installed, and anabranch needs it", install)
        if is_needed:
            return trouble(name, "not installed, and it is needed", f"pip install 'anabranch[{extra}]'")
        return note(name, f"not installed; {what_for} need it: pip install 'anabranch[{extra}]'")
    if not allows(limits, version):
        return trouble(name, f"{version}; anabranch needs {limits}", install)
    try:
        import_module(MODULES.get(name, name.replace("-", "_")))
    except Exception as reason:
        words = f"{type(reason).__name__}: {reason}".strip().split("\n")[0]
        again = f"pip install --force-reinstall '{name}{limits}'"
        return trouble(name, f"{version} does not import: {words}", again)
    return ok(name, f"{version} ({limits})" if limits else version)


def compiled_code(asked: Request) -> Iterator[Finding]:
    """The folder in which Numba keeps what it has compiled, or each start would compile it anew."""
    try:
        from anabranch.kernels.store.heap import push
    except RuntimeError as reason:
        yield trouble(
            "compiled code",
            f"Numba has no folder to keep it in: {reason}",
            "Set NUMBA_CACHE_DIR to a folder that this user may write to, for workers as well.",
        )
        return
    yield ok("compiled code", f"kept in {push.stats.cache_path}")  # type: ignore[attr-defined]


def allows(limits: str, version: str) -> bool:
    """Is a version within limits such as ``>=4.2,<4.4``; only the numbers it begins with count."""
    have = _numbers(version)
    return all(
        _LIMITS[sign](have, _numbers(limit)) for sign, limit in re.findall(r"([<>=!]+)([\d.]+)", limits)
    )


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in found.group().split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _requirements() -> dict[str, tuple[str, str | None]]:
    """The packages that this one says it requires: their limits, and the extra they belong to, if to one."""
    found: dict[str, tuple[str, str | None]] = {}
    for line in metadata.requires("anabranch") or []:
        requirement, _, condition = line.partition(";")
        name, limits = re.fullmatch(
            r"([\w.-]+)(?:\[.*?\])?\s*(?:\(?([^)]*)\)?)", requirement.strip()
        ).groups()  # type: ignore[union-attr]
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", condition)
        if extra is None or name not in found:
            found[name] = limits.replace(" ", ""), extra.group(1) if extra else None
    return found
