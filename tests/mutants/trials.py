"""Tests of faults: a process that has collected all tests forks for each fault, and the child runs some.

Children begin where the parent stands, so a fault costs the tests that it concerns and no more: nothing is
imported, compiled or collected again. The child exchanges the code of one function, wherever it is known, and
runs the tests that run the line, the fastest first, until one fails.
"""

import ctypes
import functools
import gc
import json
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import msgspec
import numpy as np
import pytest
from mutants.faults import Fault, faulty
from mutants.footprints import Footprint, TooSlowError, cpu_seconds, no_longer_than, traced

SLOWEST = 2.0
"""Seconds of a test that is worth running."""
VARIANTS = 24
"""Parameters of a test that are tried; with four, what one row of a table looks at seemed unlooked at."""
PATIENCE = 3.0
"""How many times as long as usual tests may take, before they count as never ending."""
MEMORY = 4 << 30
"""Bytes that a child may have more than its parent."""
CAUGHT, SURVIVED, UNFIT = 3, 4, 5
_ENDS_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


class Verdict(msgspec.Struct):
    """What became of a fault."""

    fault: str
    path: str
    number: int
    line: int
    result: str
    """caught, timed out, survived, unreached (no test runs the line), or unfit (Python does not take it)."""
    tests: int
    seconds: float
    """Of CPU."""
    by: str = ""
    """The test that caught it."""


@dataclass
class Trials:
    """A plugin of pytest that runs no test itself, but lets children run them."""

    root: Path
    faults: list[Fault]
    footprints: Path
    """Where what tests ran is kept, for the next time."""
    budget: float
    processes: int
    tell: Callable[[Verdict], None]
    grace: float = 5.0
    """Seconds of CPU that any fault may take."""
    known: list[Footprint] = field(default_factory=list)
    pipe: int | None = None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what starts Spark, and all but a few of many variants of a test."""
        variants: dict[str, list[pytest.Item]] = {}
        for item in items:
            if "spark" not in getattr(item, "fixturenames", ()):
                variants.setdefault(item.nodeid.split("[")[0], []).append(item)
        items[:] = [one for alike in variants.values() for one in alike[:: -(-len(alike) // VARIANTS)]]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self.known = self._footprints(items)
        functions = _functions(str(self.root / "src"))
        gc.freeze()
        waiting = iter(self.faults)
        running: list[_Child] = []
        while True:
            for fault in waiting if len(running) < self.processes else ():
                concerned = self._concerned(fault)
                if not concerned:
                    self.tell(Verdict(str(fault), fault.path, fault.number, fault.line, "unreached", 0, 0.0))
                    continue
                running.append(self._begun(fault, concerned, items, functions))
                if len(running) >= self.processes:
                    break
            if not running:
                return True
            for child in [child for child in running if child.ended()]:
                running.remove(child)
                self.tell(child.verdict)
            time.sleep(0.005)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.pipe is not None:
            os.write(self.pipe, report.nodeid.encode())
            os._exit(CAUGHT)

    def _concerned(self, fault: Fault) -> list[Footprint]:
        """The tests that run the line of a fault, the fastest first, as many as the budget allows."""
        path, (first, last) = str(self.root / fault.path), fault.lines
        found = [one for one in self.known if any(first <= n <= last for n in one.lines.get(path, ()))]
        found.sort(key=lambda one: one.seconds)
        spent, chosen = 0.0, []
        for one in found:
            spent += one.seconds
            if spent > self.budget and chosen:
                break
            chosen.append(one)
        return chosen

    def _begun(
        self,
        fault: Fault,
        concerned: list[Footprint],
        items: dict[str, pytest.Item],
        functions: dict[tuple[str, int, str], list[FunctionType]],
    ) -> "_Child":
        reading, self.pipe = os.pipe()
        usual = sum(one.seconds for one in concerned)
        verdict = Verdict(str(fault), fault.path, fault.number, fault.line, "", len(concerned), 0.0)
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(self._tried(fault, [items[one.test] for one in concerned], functions, usual))
            except BaseException:  # a child must not go on as if it were its parent
                os._exit(CAUGHT)
        os.close(self.pipe)
        self.pipe = None
        return _Child(pid, reading, verdict, time.monotonic() + 60 + 20 * usual)

    def _tried(
        self,
        fault: Fault,
        chosen: list[pytest.Item],
        functions: dict[tuple[str, int, str], list[FunctionType]],
        usual: float,
    ) -> int:
        """Run tests with a fault, in a child."""
        _alone(self.grace + PATIENCE * usual)
        path = self.root / fault.path
        try:
            code = _code(compile(faulty(path.read_text(), fault), str(path), "exec"), fault)
            for function in functions[str(path), fault.first, fault.function]:
                function.__code__ = code
        except (ValueError, KeyError, SyntaxError):
            return UNFIT
        for n, item in enumerate(chosen):
            following = chosen[n + 1] if n + 1 < len(chosen) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return SURVIVED

    def _footprints(self, items: dict[str, pytest.Item]) -> list[Footprint]:
        """What each test runs, found out by running each of them once."""
        self.footprints.touch()
        while names := sorted(items.keys() - {one.test for one in self._kept_footprints()}):
            parts = [names[n :: self.processes] for n in range(self.processes)]
            for child in [self._walking([items[name] for name in part]) for part in parts]:
                os.waitpid(child, 0)
        return [one for one in self._kept_footprints() if one.passed and one.test in items]

    def _walking(self, items: list[pytest.Item]) -> int:
        """A child that runs tests and keeps what they run; one that it does not come back from has failed."""
        pid = os.fork()
        if pid:
            return pid
        _alone(None)
        file = os.open(self.footprints, os.O_WRONLY | os.O_APPEND)
        with suppress(BaseException):
            for item in items:
                unknown = Footprint(item.nodeid, 0.0, False, {}, "the process ended")
                os.write(file, msgspec.json.encode(unknown) + b"\n")
                os.write(file, msgspec.json.encode(self._footprint(item)) + b"\n")
        os._exit(0)

    def _kept_footprints(self) -> Iterable[Footprint]:
        """The last of each test."""
        lines = self.footprints.read_bytes().splitlines()
        found = [_footprint_of(line) for line in lines]
        return {one.test: one for one in found}.values()

    def _footprint(self, item: pytest.Item) -> Footprint:
        reports: list[pytest.TestReport] = []
        begun = cpu_seconds()

        class Watch:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                reports.append(report)

        watch = Watch()
        item.config.pluginmanager.register(watch)
        try:
            with traced(str(self.root / "src")) as tracer, no_longer_than(SLOWEST):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            passed = all(report.passed for report in reports)
        except TooSlowError:
            passed = False
        finally:
            item.config.pluginmanager.unregister(watch)
        lines = {path: sorted(numbers) for path, numbers in tracer.lines.items()}
        why = next((str(report.longrepr)[-300:] for report in reports if not report.passed), "")
        return Footprint(item.nodeid, cpu_seconds() - begun, passed, lines if passed else {}, why)


@dataclass
class _Child:
    """State: a process that tries a fault."""

    pid: int
    reading: int
    verdict: Verdict
    until: float

    def ended(self) -> bool:
        """Whether it has, as the verdict then says."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0 and time.monotonic() < self.until:
            return False
        if pid == 0:
            os.killpg(self.pid, signal.SIGKILL)
            _, status, usage = os.wait4(self.pid, 0)
        self.verdict.seconds = round(usage.ru_utime + usage.ru_stime, 2)
        self.verdict.by = os.read(self.reading, 1000).decode()
        os.close(self.reading)
        codes = {
            SURVIVED: "survived",
            UNFIT: "unfit",
            -signal.SIGXCPU: "timed out",
            -signal.SIGKILL: "timed out",
        }
        self.verdict.result = codes.get(os.waitstatus_to_exitcode(status), "caught")
        return True


def _alone(seconds: float | None) -> None:
    """Let a child write nothing, end with its parent, and have so much of the processor and of memory."""
    os.setsid()
    ctypes.CDLL(None).prctl(_ENDS_WITH_PARENT, signal.SIGKILL)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    if seconds is not None:
        limit = int(seconds + cpu_seconds()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _functions(folder: str) -> dict[tuple[str, int, str], list[FunctionType]]:
    """The functions of source files, by the path, first line and name of each."""
    found: dict[tuple[str, int, str], list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(folder):
            code = one.__code__
            found.setdefault((code.co_filename, code.co_firstlineno, code.co_qualname), []).append(one)
    return found


def _code(module: CodeType, fault: Fault) -> CodeType:
    """The code of the function that has the fault."""
    return next(
        code
        for code in _codes(module)
        if (code.co_firstlineno, code.co_qualname) == (fault.first, fault.function)
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def uncompiled(package: str, compiled_modules: tuple[str, ...]) -> None:
    """Let the loops of a package run as they are written, but for some modules: a fault compiles nothing.

    Instructions of the machine outside those modules only read ahead, which changes nothing: they do nothing.
    """
    import numba.extending

    real, intrinsic = numba.njit, numba.extending.intrinsic

    def instruction(*arguments: Any, **options: Any) -> Any:
        module = getattr(arguments[0], "__module__", "") if arguments else ""
        ours = module.split(".")[0] == package and module not in compiled_modules
        return _nothing if ours else intrinsic(*arguments, **options)

    numba.extending.intrinsic = instruction

    def njit(*arguments: Any, **options: Any) -> Any:
        if arguments:
            return real(*arguments, **options)
        entrance = "inline" not in options and "no_cpython_wrapper" not in options

        def chosen(function: Any) -> Any:
            if function.__module__.split(".")[0] != package or function.__module__ in compiled_modules:
                return real(**options)(function)
            return _with_plain_results(function) if entrance else function

        return chosen

    numba.njit = njit


def _nothing(*_: Any) -> None:
    pass


def _with_plain_results(function: Any) -> Any:
    """Compiled loops give Python numbers to Python."""

    def plain(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(plain, value))
        return value.item() if isinstance(value, np.generic) else value

    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        return plain(function(*arguments))

    return called


def left_out(path: Path) -> list[str]:
    """How many tests no fault was tried on, by why."""
    last = {one.test: one for one in map(_footprint_of, path.read_bytes().splitlines())}
    why = Counter(one.why.rsplit("\n", 1)[-1] or "too slow" for one in last.values() if not one.passed)
    return [f"{count} tests left out: {reason}" for reason, count in why.most_common()]


def _footprint_of(line: bytes) -> Footprint:
    return msgspec.json.decode(line, type=Footprint)


def read_verdicts(path: Path) -> list[Verdict]:
    """What became of faults that have been tried."""
    if not path.exists():
        return []
    return [msgspec.convert(json.loads(line), Verdict) for line in path.read_text().splitlines()]
