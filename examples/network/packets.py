"""Packets on the links of a network, as a monitor hears them: in disorder.

Conversations go both ways: some links have the packets that go back, with addresses and ports swapped.
Connections begin with SYN on one link and SYN_ACK on another.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

import anabranch as ab

TIME = "timestamp[us, tz=UTC]"
COLUMNS = {
    "srcIP": "string",
    "srcPort": "int64",
    "destIP": "string",
    "destPort": "int64",
    "len": "int64",
    "flag": "string",
    "ts": TIME,
}
SPARSE = ("control", "c")
"""Links that have a tenth of the packets."""
ANSWERING = ("main2", "s1", "m2", "c", "d")
"""Links on which packets go back."""
LATE = "30 seconds"
"""How late a packet is at most, behind the latest of its link."""
_SECOND = 1_000_000
_BEGIN = 1_767_225_600 * _SECOND


def link(name: str) -> ab.Stream:
    """The packets of a link."""
    stream: ab.Stream = ab.source(name, COLUMNS, start="ts", disorder=LATE)
    return stream


def packets(
    links: Iterable[str], *, count: int = 1_000, length: int = 900, hosts: int = 4, seed: int = 1
) -> dict[str, pa.Table]:
    """Packets of each link in ``length`` seconds, in the order in which they are heard; whole seconds."""
    random = np.random.default_rng(seed)
    return {
        name: _heard(random, count // 10 if name in SPARSE else count, length, hosts, back=name in ANSWERING)
        for name in links
    }


def _heard(random: np.random.Generator, count: int, length: int, hosts: int, *, back: bool) -> pa.Table:
    at = np.sort(random.integers(0, length, count))
    near, far = random.integers(0, hosts, count), random.integers(0, hosts, count)
    port, service = 1024 + random.integers(0, 2, count), np.full(count, 443)
    flags = random.choice(["SYN_ACK", "ACK"] if back else ["SYN", "ACK"], count)
    ends = (_address(near, "10.0.0"), port), (_address(far, "10.0.1"), service)
    source, destination = reversed(ends) if back else ends
    table = pa.table(
        {
            "srcIP": source[0],
            "srcPort": source[1],
            "destIP": destination[0],
            "destPort": destination[1],
            "len": random.integers(40, 1500, count),
            "flag": pa.array(flags, pa.string()),
            "ts": pa.array(_BEGIN + at * _SECOND, pa.timestamp("us", "UTC")),
        }
    )
    return table.take(np.argsort(at + random.integers(0, 30, count), kind="stable"))


def _address(hosts: np.ndarray, net: str) -> pa.Array:
    return pa.array([f"{net}.{host}" for host in hosts.tolist()])
