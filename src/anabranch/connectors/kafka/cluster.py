"""What a cluster says of its topics: who they are, how many partitions they have, from where to where.

A question is asked again until it is answered or the patience is over, so a broker that is restarted is
waited for. Settings of a connection may hold passwords: they are in no message and no log of ours.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from anabranch.errors import AnabranchError
from anabranch.extras import check_installed

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

Answer = TypeVar("Answer")
Positions = dict[int, int]
"""Of each partition an offset."""
SECONDS = 60.0
_ASKING = 5.0
_OURS = {"log_level": 0}


class TopicError(AnabranchError, ValueError):
    """A topic that is not there, or not the one that was read before."""


class BrokerError(AnabranchError, OSError):
    """A cluster that does not answer, or refuses."""


@dataclass(frozen=True)
class Topic:
    """A topic of a cluster."""

    name: str
    servers: str | None = None
    """Where the cluster is, host:port and others after a comma; None: where the others are."""
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of librdkafka: security.protocol, sasl.username, ssl.ca.location, …"""

    def __hash__(self) -> int:
        return hash((self.name, self.servers))

    def settings(self, **ours: Any) -> dict[str, Any]:
        """Settings for a client; those of the user have the last word."""
        dotted = {key.replace("_", "."): value for key, value in ours.items()}
        return {**_OURS, "bootstrap.servers": self.servers, **dotted, **self.config}


def check_packages() -> None:
    """Raise where what Kafka is reached through is not installed."""
    check_installed("confluent_kafka", "confluent-kafka", "kafka", "Kafka is reached through")


class Cluster:
    """A connection for questions about topics."""

    def __init__(self, topic: Topic, patience: float = SECONDS) -> None:
        self.topic, self.patience = topic, patience
        self._last, self._refused = "", False
        self._client: AdminClient | None = None

    def identity(self) -> str:
        """What tells a topic from another of the same name, made later."""
        return str(self._description().topic_id)

    def partitions(self) -> list[int]:
        """The numbers of the partitions of the topic."""
        return sorted(partition.id for partition in self._description().partitions)

    def begins(self, partitions: Iterable[int]) -> Positions:
        """The first offset of each partition that is still there."""
        from confluent_kafka.admin import OffsetSpec

        return self._positions({p: OffsetSpec.earliest() for p in partitions})

    def ends(self, partitions: Iterable[int]) -> Positions:
        """The offset after the last record of each partition that is committed."""
        from confluent_kafka.admin import OffsetSpec

        return self._positions({p: OffsetSpec.latest() for p in partitions})

    def since(self, time: datetime, partitions: Iterable[int]) -> Positions:
        """The offset of the first record of each partition that is not older, its end if there is none."""
        from confluent_kafka.admin import OffsetSpec

        partitions = list(partitions)
        milliseconds = int(time.astimezone(UTC).timestamp() * 1000)
        found = self._positions({p: OffsetSpec.for_timestamp(milliseconds) for p in partitions})
        ends = self.ends([p for p in partitions if found[p] < 0])
        return {p: ends.get(p, found[p]) for p in partitions}

    def _description(self) -> Any:
        from confluent_kafka import KafkaError, TopicCollection

        name = self.topic.name

        def ask(client: "AdminClient") -> Any:
            return client.describe_topics(TopicCollection([name]), request_timeout=_ASKING)[name].result()

        return self._asked(ask, {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION})

    def _positions(self, wanted: Mapping[int, Any]) -> Positions:
        from confluent_kafka import IsolationLevel, TopicPartition

        def ask(client: "AdminClient") -> Positions:
            asked = {TopicPartition(self.topic.name, p): spec for p, spec in wanted.items()}
            answers = client.list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_ASKING
            )
            return {key.partition: answer.result().offset for key, answer in answers.items()}

        return self._asked(ask, set()) if wanted else {}

    def _asked(self, ask: "Callable[[AdminClient], Answer]", unknown: set[int]) -> Answer:
        """The answer to a question, asked until it comes."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        if self._client is None:
            self._client = AdminClient({**self.topic.settings(), "error_cb": self._note})
        until = time.monotonic() + self.patience
        while True:
            try:
                return ask(self._client)
            except KafkaException as raised:
                code = raised.args[0]
                if code.code() in unknown:
                    raise self._unknown() from None
                self._client.poll(0.05)
                if self._refused or not _passes(code) or time.monotonic() >= until:
                    raise self._silent(code.str()) from None

    def _note(self, error: Any) -> None:
        """Hear why nobody answers; a wrong password stays wrong, and is what counts."""
        if not self._refused:
            self._last, self._refused = error.str(), error.code() == error._AUTHENTICATION

    def _unknown(self) -> TopicError:
        error = TopicError(f"there is no topic {self.topic.name!r} at {self.topic.servers}")
        error.add_note("Make it first, or mend its name; topics are not made by being read.")
        return error

    def _silent(self, words: str) -> BrokerError:
        error = BrokerError(f"the cluster at {self.topic.servers} does not answer: {self._last or words}")
        error.add_note("Is the broker up, the address right, and do config's security settings fit it?")
        return error


def _passes(error: Any) -> bool:
    """Whether a failure may be over soon: of the network, or of a broker that has just been told a thing."""
    from confluent_kafka import KafkaError

    passing = {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
    }
    return bool(error.retriable()) or error.code() in passing
