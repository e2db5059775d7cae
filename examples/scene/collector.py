"""A collector in a process of its own: readings come in as lines and go to a topic, ten at a time.

usage: python -m scene.collector SERVERS TOPIC SPOOL NOW

A line is the time, in milliseconds, and a reading. What has come in since the last full minute is also in a
file, the spool; a collector that is started again, at the time NOW, sends what it finds there, some of it for
the second time. Each line is answered by how many readings are in hand, not yet sent.
"""

import sys
from pathlib import Path

from confluent_kafka import Producer

TOGETHER = 10
MINUTE = 60_000


class Collector:
    """What it has in hand, and where that goes."""

    def __init__(self, servers: str, topic: str, spool: Path) -> None:
        self.producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "log_level": 0})
        self.topic = topic
        self.spool = spool
        self.hand = spool.read_text().splitlines() if spool.exists() else []

    def hear(self, now: int, reading: str) -> None:
        """Take a reading; send when there are enough."""
        self.hand.append(reading)
        with self.spool.open("a") as spool:
            spool.write(f"{reading}\n")
        if len(self.hand) == TOGETHER:
            self.send(now)

    def send(self, now: int) -> None:
        """Send what is in hand, and wait until the broker has it."""
        for reading in self.hand:
            self.producer.produce(self.topic, reading, timestamp=now)
        if self.producer.flush(60):
            raise OSError(f"the broker did not take what was sent to {self.topic}")
        self.hand = []


def main(servers: str, topic: str, spool: str, begin: str) -> None:
    """Collect until there are no more lines."""
    now = int(begin)
    collector = Collector(servers, topic, Path(spool))
    collector.send(now)
    for line in sys.stdin:
        before, (time, reading) = now, line.rstrip("\n").split(" ", 1)
        now = int(time)
        if now // MINUTE > before // MINUTE:
            collector.send(before)
            collector.spool.unlink(missing_ok=True)
        collector.hear(now, reading)
        print(len(collector.hand), flush=True)
    collector.send(now)


if __name__ == "__main__":
    main(*sys.argv[1:])
