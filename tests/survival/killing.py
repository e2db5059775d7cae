"""Kills at given places of running queries: which process it is, when it is struck, and how it went on.

A `Kill` waits until each of its points is reached; the calls that reached them are not answered until it has
struck (or, with a delay, are answered just before). So the moment of a kill is an event, never a time.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from survival.places import ADDRESS

TESTS = Path(__file__).resolve().parents[1]
ARMED = Path(__file__).with_name("armed")
PROGRAM = Path(__file__).with_name("killed_queries.py")
PATIENCE = 300.0
"""Seconds in which some query says something; where none does, they hang."""
TOO_SLOW = "Python worker failed to connect back"
"""What Spark says of a worker that takes more than ten seconds to start, which is a matter of the machine."""


@dataclass(frozen=True)
class Point:
    """The n-th call from a place of a subject's query, in a micro-batch or after it."""

    subject: str
    batch: int
    place: str
    arrival: int = 1


@dataclass
class Kill:
    """What is killed when all points are reached, and what came of it."""

    number: int
    victim: str
    points: tuple[Point, ...]
    delay: float = 0.0
    calls: dict[str, dict] = field(default_factory=dict)
    struck: float | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)
    failed: set[str] = field(default_factory=set)
    recovered: set[str] = field(default_factory=set)
    seconds: float = 0.0

    @property
    def when(self) -> str:
        """Where each subject was."""
        return ", ".join(f"{name} {call['batch']} {call['place']}" for name, call in self.calls.items())

    @property
    def went_on(self) -> str:
        """Who saw to it that the query went on."""
        if self.victim == "driver":
            return "new process"
        return "query started again" if self.failed else "by itself"


class StuckError(Exception):
    """No query says anything any more, or one failed that nobody had killed."""


class Killing:
    """A session of queries and the kills it is to survive."""

    def __init__(self, folder: Path, plan: dict, kills: list[Kill]) -> None:
        self.folder, self.plan, self.kills = folder, plan, kills
        self.sinks = {plan["sinks"][subject]: subject for subject in plan["subjects"]}
        self.points = {
            subject: deque((kill, p) for kill in kills for p in kill.points if p.subject == subject)
            for subject in plan["subjects"]
        }
        self.arrivals: dict[int, int] = {}
        self.failures = dict.fromkeys(plan["subjects"], 0)
        self.done: set[str] = set()
        self.process: asyncio.subprocess.Process | None = None
        self.problem: str | None = None
        self.heard = time.monotonic()

    async def run(self) -> None:
        """Start the queries, again after each kill of the driver, until all are done."""
        (self.folder / "plan.json").write_text(json.dumps(self.plan))
        address = self.folder / "s"
        path = os.pathsep.join([str(ARMED), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {ADDRESS: str(address), "PYTHONPATH": path}
        server = await asyncio.start_unix_server(self._called, address)
        try:
            while True:
                before = self._struck()
                with (self.folder / "log").open("ab") as log:
                    self.process = await asyncio.create_subprocess_exec(
                        *(sys.executable, str(PROGRAM), str(self.folder)),
                        env=environment,
                        stdout=log,
                        stderr=log,
                    )
                code = await self._end(self.process)
                if code == 0:
                    return
                if self.problem or "driver" not in {kill.victim for kill in self._since(before)}:
                    raise StuckError(self.problem or f"the queries ended by themselves, with {code}")
        finally:
            self._kill_driver()
            server.close()

    async def _end(self, process: asyncio.subprocess.Process) -> int:
        """How the process ends."""
        while True:
            with suppress(TimeoutError):
                return await asyncio.wait_for(process.wait(), 10)
            if time.monotonic() - self.heard > PATIENCE:
                raise StuckError(f"nothing has happened for {PATIENCE:g} s")

    def _struck(self) -> set[int]:
        return {kill.number for kill in self.kills if kill.struck}

    def _since(self, before: set[int]) -> list[Kill]:
        return [kill for kill in self.kills if kill.struck and kill.number not in before]

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        with suppress(ConnectionError, ValueError):
            said = json.loads(line)
            self.heard = time.monotonic()
            subject = self._subject(said["query"])
            answer = b"+"
            if subject is not None and self.process and self.process.pid in ancestors(said["pid"]):
                answer = await self._at(subject, said)
            writer.write(answer)
            await writer.drain()
        writer.close()

    def _subject(self, query: str) -> str | None:
        """Whose query it is, by its sink or by what Spark calls it."""
        if query in self.sinks:
            return self.sinks[query]
        for subject in self.plan["subjects"]:
            known = self.folder / f"{subject}-checkpoint" / "metadata"
            if known.exists() and query in known.read_text():
                return subject
        return None

    async def _at(self, subject: str, said: dict) -> bytes:
        place = said["place"]
        self._note_recovery(subject, said)
        if place == "failed":
            return self._answer_failure(subject, said["words"])
        if place == "done":
            self.done.add(subject)
            left = [kill for kill, _ in self.points[subject]]
            self.points[subject].clear()
            for kill in left:
                await self._strike_if_complete(kill)
        elif self.points[subject]:
            kill, point = self.points[subject][0]
            if place == point.place and said["batch"] >= point.batch:
                arrived = self.arrivals[id(point)] = self.arrivals.get(id(point), 0) + 1
                if arrived >= point.arrival:
                    self.points[subject].popleft()
                    kill.calls[subject] = said
                    await self._strike_if_complete(kill)
                    await kill.released.wait()
        return b"+"

    def _note_recovery(self, subject: str, said: dict) -> None:
        """A later micro-batch, or the end, shows that the query has gone on."""
        for kill in self.kills:
            if not kill.struck or subject not in kill.calls or subject in kill.recovered:
                continue
            if said["place"] == "failed":
                kill.failed.add(subject)
            elif said["place"] == "done" or said["batch"] > kill.calls[subject]["batch"]:
                kill.recovered.add(subject)
                kill.seconds = max(kill.seconds, time.monotonic() - kill.struck)

    def _answer_failure(self, subject: str, words: str) -> bytes:
        """A failure is ours where something has been killed since the last."""
        self.failures[subject] += TOO_SLOW not in words
        if self.failures[subject] <= len(self._struck()):
            return b"+"
        self.problem = f"the query of {subject} failed, and nothing had been killed: {words}"
        return b"-"

    async def _strike_if_complete(self, kill: Kill) -> None:
        awaited = {point.subject for point in kill.points} - self.done
        if kill.struck or not kill.calls or awaited - set(kill.calls):
            return
        [first, *_] = kill.calls.values()
        victims = self._victims(kill.victim, first["pid"])
        kill.struck = time.monotonic()
        if kill.delay:
            kill.released.set()
            await asyncio.sleep(kill.delay)
            kill.struck = time.monotonic()
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        kill.released.set()

    def _victims(self, victim: str, caller: int) -> list[int]:
        daemon = parent(caller)
        match victim:
            case "driver":
                assert self.process is not None
                return [*children(self.process.pid), self.process.pid]
            case "worker":
                return [caller]
            case "other worker":
                others = [pid for one in children(parent(daemon)) for pid in children(one) if pid != caller]
                return others[:1] or [caller]
            case _:
                return [parent(daemon)]

    def _kill_driver(self) -> None:
        if self.process is not None and self.process.returncode is None:
            for pid in self._victims("driver", self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def parent(pid: int) -> int:
    """The process that started another, or took it over; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def ancestors(pid: int) -> list[int]:
    """A process, the one that started it, and so on."""
    line = [pid]
    while line[-1]:
        line.append(parent(line[-1]))
    return line


def children(pid: int) -> list[int]:
    """The processes that one has started and that are there."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, file.read_text().split())
    return found
