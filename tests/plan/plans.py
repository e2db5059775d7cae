"""Plans that pictures and words are made of."""

import pyarrow as pa

from anabranch.expressions.expression import col
from anabranch.plan.build import merge, source, union
from anabranch.plan.stream import Stream

TIME = pa.timestamp("us")
READINGS = {"at": TIME, "till": TIME, "room": "string", "value": "double"}
STRANGE = "<&>\"'\n]]></svg><script>" + "wide" * 50


def readings(name: str = "readings") -> Stream:
    return source(name, READINGS, start="at", end="till", disorder="10 seconds", properties="ordered")


def filtered() -> Stream:
    return readings().filter(col("value") > 30)


def merged() -> Stream:
    east, west = (source(name, {"room": "string", "value": "int64"}, key="room") for name in ("east", "west"))
    return merge(east, west)


def diamond() -> Stream:
    start = readings()
    hot = start.filter(col("value") > 30).select("room")
    return union(hot, start.select("room").lasting("5 minutes"))


def replicas() -> Stream:
    columns = {"at": TIME, "who": "string", "room": "string", "celsius": "double"}
    sensors = source("sensors", columns, start="at", replica="who", disorder="30 seconds", lossy=False)
    warm = sensors.filter(col("celsius") > 20).select("room", fahrenheit=col("celsius") * 9 / 5 + 32)
    return warm.merge().tumble("1 minute").tap("windows").final(ordered=True)


def of_many() -> Stream:
    sites = [readings(f"site {n}") for n in range(5)]
    near = col("value") * col("value") < 100
    return union(*(one.filter(near & (col("room") != f"unknown-{n}")) for n, one in enumerate(sites))).sort()


def strange() -> Stream:
    start = source(STRANGE, {STRANGE: "string", "x": "int64"})
    return start.filter(col(STRANGE) == STRANGE).tap(STRANGE)


PLANS = [filtered, merged, diamond, replicas, of_many, strange]
