"""A real Kafka broker for tests and examples: fetched once, run on this machine, gone with its owner.

    with Broker() as broker:
        broker.make_topic("readings-east", partitions=2)
        ...                                     # broker.servers is where it listens

The broker is Apache Kafka itself, fetched by the Ivy that comes inside PySpark into a cache folder
(``ANABRANCH_CACHE``, or ``anabranch`` in the user's cache); it needs Java. It keeps what it was told over a
`kill` and a `start`, and loses it with `stop`.
"""

import ctypes
import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

VERSION = "4.3.1"
JARS = f"""<ivy-module version="2.0">
  <info organisation="anabranch" module="broker"/>
  <configurations><conf name="broker"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{VERSION}" conf="broker->default"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="broker->default"/>
  </dependencies>
</ivy-module>
"""
JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PORTS = range(20_000, 32_000)
"""Below those that systems hand out by themselves, which another process may be given at any moment."""
SECONDS = 60.0
_DEATH_OF_PARENT = 1
_SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "anabranch",
}
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Broker:
    """One broker, which is also its own controller; with a password, it wants that of its clients."""

    def __init__(self, *, password: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="anabranch-broker-"))
        self.port, self.controller = _free_ports(2)
        self.servers = f"127.0.0.1:{self.port}"
        self.config = {} if password is None else {**_SASL, "sasl.password": password}
        """What clients need besides the address."""
        self.process: subprocess.Popen[bytes] | None = None
        self.classpath = f"{fetched() / 'jars'}/*"

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, or start it again with all it had, and wait until it answers."""
        settings = self.folder / "server.properties"
        if not settings.exists():
            settings.write_text(self._settings())
            storage = [*self._command("kafka.tools.StorageTool"), "format", "-c", str(settings)]
            subprocess.run([*storage, "-t", uuid.uuid4().hex[:22]], capture_output=True, check=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self._command("kafka.Kafka"), str(settings)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it makes one system call
            )
        self._wait()

    def kill(self) -> None:
        """End it as a power failure would."""
        assert self.process is not None, "a broker runs before it is killed"
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it, and forget what it was told."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def make_topic(self, name: str, *, partitions: int = 1, config: dict[str, str] | None = None) -> None:
        """A topic that was not there."""
        from confluent_kafka.cimpl import NewTopic

        topic, admin = NewTopic(name, partitions, 1, config=config or {}), self._admin()
        admin.create_topics([topic])[name].result(SECONDS)

    def drop_topic(self, name: str) -> None:
        """The end of a topic and of all that is in it."""
        admin = self._admin()
        admin.delete_topics([name])[name].result(SECONDS)

    def ends(self, name: str) -> int:
        """How many offsets the partitions of a topic have had, all together."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        admin = self._admin()
        partitions = admin.list_topics(name, timeout=SECONDS).topics[name].partitions
        asked = {TopicPartition(name, number): OffsetSpec.latest() for number in partitions}
        return sum(answer.result(SECONDS).offset for answer in admin.list_offsets(asked).values())

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0, **self.config})

    def _wait(self) -> None:
        from confluent_kafka import KafkaException

        admin = self._admin()
        for _ in range(int(SECONDS)):
            if self.process is None or self.process.poll() is not None:
                break
            try:
                if admin.list_topics(timeout=1.0).brokers:
                    return
            except KafkaException:
                continue
        words = (self.folder / "log").read_text(errors="replace")[-2000:]
        error = OSError(f"the broker on {self.servers} does not answer")
        error.add_note(f"It said last: {words}")
        raise error

    def _command(self, main: str) -> list[str]:
        home = os.environ.get("JAVA_HOME")
        java = str(Path(home, "bin", "java")) if home else "java"
        return [java, *JAVA, "-cp", self.classpath, main]

    def _settings(self) -> str:
        protocol = self.config.get("security.protocol", "PLAINTEXT")
        lines = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller}",
            "listeners": f"{protocol}://{self.servers},CONTROLLER://127.0.0.1:{self.controller}",
            "advertised.listeners": f"{protocol}://{self.servers}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            "message.max.bytes": 64 << 20,
            "replica.fetch.max.bytes": 64 << 20,
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 200,
            "controller.quorum.election.timeout.ms": 200,
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocol}:{protocol}",
            "security.inter.broker.protocol": protocol,
        }
        if self.config:
            user, password = self.config["sasl.username"], self.config["sasl.password"]
            login = f'username="{user}" password="{password}" user_{user}="{password}";'
            lines |= {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": f"{_LOGIN} required {login}",
            }
        return "".join(f"{key}={value}\n" for key, value in lines.items())


def fetched() -> Path:
    """The folder with the broker's jars, fetched if they are not there; one process fetches at a time."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "anabranch")
    place = Path(os.environ.get("ANABRANCH_CACHE") or default) / f"kafka-{VERSION}"
    place.mkdir(parents=True, exist_ok=True)
    done = place / "complete"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            _fetch(place)
            done.touch()
    return place


def _fetch(place: Path) -> None:
    spec = find_spec("pyspark")
    assert spec is not None, "the broker comes through PySpark's Ivy"
    [folder] = spec.submodule_search_locations or []
    ivy = next(Path(folder, "jars").glob("ivy-*.jar"))
    (place / "ivy.xml").write_text(JARS)
    jars = str(place / "jars" / "[artifact]-[revision].[ext]")
    options = ["-warn", "-cache", str(place / "ivy"), "-ivy", str(place / "ivy.xml"), "-confs", "broker"]
    command = ["java", "-jar", str(ivy), *options, "-types", "jar", "bundle", "-retrieve", jars]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode:
        error = OSError(f"Kafka {VERSION} could not be fetched")
        error.add_note(f"Ivy said: {(said.stdout + said.stderr)[-1500:]}")
        error.add_note(f"It needs Java and the network, once; what is fetched is kept in {place}.")
        raise error
    shutil.rmtree(place / "ivy", ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    chance = random.SystemRandom()
    while len(found) < count:
        port = chance.choice(PORTS)
        with socket.socket() as trial:
            if port not in found and trial.connect_ex(("127.0.0.1", port)):
                found.append(port)
    return found


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)
