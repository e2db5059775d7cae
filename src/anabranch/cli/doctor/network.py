"""What Spark needs of the network, even where it does not leave this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

from anabranch.cli.doctor.finding import Finding, Request, ok, trouble

LOOPBACK = "127.0.0.1"


def address(asked: Request) -> Iterator[Finding]:
    """The driver can listen where it would."""
    where = asked.setting("spark.driver.bindAddress") or LOOPBACK
    try:
        with socket.create_server((where, 0)):
            yield ok("address", f"{where} can be listened on")
    except OSError as reason:
        yield trouble(
            "address",
            f"the driver of Spark listens on {where}, and that cannot be: {reason.strerror or reason}",
            "Bring the interface up (ip link set lo up), or set spark.driver.bindAddress",
            "in [spark] config to an address of this machine.",
        )


def host_name(asked: Request) -> Iterator[Finding]:
    """The name of this machine has an address, which Spark looks up when it starts."""
    fixed = os.environ.get("SPARK_LOCAL_IP")
    name = fixed or socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None)[0][4][0]
    except OSError as reason:
        yield trouble(
            "host name",
            f"Spark looks up {name!r}, and it has no address: {reason.strerror or reason}",
            f"Add '{LOOPBACK} {name}' to /etc/hosts, or set SPARK_LOCAL_IP={LOOPBACK}.",
        )
        return
    yield ok("host name", f"{name} is {found}" + (", by SPARK_LOCAL_IP" if fixed else ""))
