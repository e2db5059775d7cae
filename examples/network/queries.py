"""The nine queries of Li and others, "Out-of-order processing" (VLDB 2008), over links that are in disorder.

Each is a plan, and beside it the SQL that says the same of all packets once they are there.
"""

import anabranch as ab
from anabranch import col
from network.packets import TIME, link
from scene.query import Query

ANSWERS = {"srcIP": "destIP", "destIP": "srcIP", "srcPort": "destPort", "destPort": "srcPort"}
"""A packet and the one that goes back: addresses and ports the other way round."""
_ANSWERS = "l.srcIP = r.destIP AND l.destIP = r.srcIP AND l.srcPort = r.destPort AND l.destPort = r.srcPort"
BAND = 5
"""How many seconds packets of Q7 are apart, at most."""
_MINUTE = 60_000_000


def q1() -> ab.Stream:
    """How many packets there are on three links, minute by minute."""
    links = ab.union(link("control"), link("main1"), link("main2"))
    return links.window("1 minute", start="since").agg(packets=ab.count())


def q2() -> ab.Stream:
    """Packets to whom a packet of the other link comes from, up to 2 minutes before it or 3 after."""
    return link("main1").join(link("main2"), on={"srcIP": "destIP"}, within=("2 minutes", "3 minutes"))


def q3() -> ab.Stream:
    """Connections by the seconds of their SYN and of their SYN_ACK.

    Pairs stand at the second of the SYN_ACK, and a window of that second is grouped by the other. It closes
    when both links have passed the SYN_ACK; to close a pair when each link has passed its own time, which is
    sooner, takes a consumer of what the join knows of both times together, and windows ask for one time.
    """
    asked = link("s0").filter(col("flag") == "SYN")
    told = link("s1").filter(col("flag") == "SYN_ACK")
    both = asked.join(
        told,
        on={"destIP": "srcIP", "destPort": "srcPort"},
        within=("-1 second", "2 minutes"),
        at="right",
        starts=("syn", None),
    )
    return both.window("1 second", start="ack").group_by("syn").agg(connections=ab.count())


def q4() -> ab.Stream:
    """How many packets each pair of addresses has on one link, minute by minute."""
    return link("m").window("1 minute", start="since").group_by("srcIP", "destIP").agg(packets=ab.count())


def q5() -> ab.Stream:
    """The same of two links together."""
    links = ab.union(link("m1"), link("m2"))
    return links.window("1 minute", start="since").group_by("srcIP", "destIP").agg(packets=ab.count())


def q6() -> ab.Stream:
    """Packets that are answered within the same ten seconds.

    `tumble` moves starts to the multiple of ten seconds before them, and two are equal if and only if
    ``ts / 10`` is; so a join of equal starts has the pairs of the query, and `lasting` their lifetimes.
    """
    sent = ab.union(link("a"), link("b")).with_columns(ts=ab.start().cast(TIME)).tumble("10 seconds")
    back = ab.union(link("c"), link("d")).tumble("10 seconds")
    return (
        sent.join(back, on=ANSWERS, within="0 seconds").lasting("10 seconds").select("srcIP", "destIP", "ts")
    )


def q7() -> ab.Stream:
    """How many pairs of packet and answer there are, minute by minute of the first."""
    band = f"{BAND} seconds"
    pairs = link("m1").join(link("m2"), on=ANSWERS, within=(band, band), at="left")
    return pairs.window("1 minute", start="since").agg(pairs=ab.count())


def q8() -> ab.Stream:
    """Packets and answers of one second, where the answers are of two links and one of them is late.

    Packets are points, so that their lifetimes meet if and only if their starts are equal.
    """
    sent = link("m1").with_columns(ts=ab.start().cast(TIME))
    back = ab.union(link("m2"), link("c"))
    return sent.join(back, on=ANSWERS, within="0 seconds").select("srcIP", "destIP", "ts")


def q9() -> ab.Stream:
    """How many packets there were in the last five minutes, every minute."""
    links = ab.union(link("m1"), link("m2"), link("c"))
    return links.window("5 minutes", "1 minute", start="since").agg(packets=ab.count())


QUERIES = {
    query.name: query
    for query in (
        Query(
            "Q1",
            "packets on three links, minute by minute",
            q1,
            f"""
            SELECT ts // {_MINUTE} * {_MINUTE} AS since, count(*) AS packets
            FROM (FROM control UNION ALL FROM main1 UNION ALL FROM main2) GROUP BY since
            """,
        ),
        Query(
            "Q2",
            "packets of two links between the same hosts, 2 minutes before to 3 after",
            q2,
            f"""
            SELECT l.* EXCLUDE ts, r.srcIP AS srcIP_right, r.srcPort AS srcPort_right,
                r.destIP AS destIP_right, r.destPort AS destPort_right, r.len AS len_right,
                r.flag AS flag_right
            FROM main1 AS l, main2 AS r
            WHERE l.srcIP = r.destIP AND r.ts BETWEEN l.ts - 2 * {_MINUTE} AND l.ts + 3 * {_MINUTE}
            """,
        ),
        Query(
            "Q3",
            "connections by the second of SYN and of SYN_ACK",
            q3,
            f"""
            SELECT l.ts AS syn, r.ts AS ack, count(*) AS connections FROM s0 AS l, s1 AS r
            WHERE l.destIP = r.srcIP AND l.destPort = r.srcPort AND l.flag = 'SYN' AND r.flag = 'SYN_ACK'
                AND l.ts < r.ts AND r.ts <= l.ts + 2 * {_MINUTE}
            GROUP BY l.ts, r.ts
            """,
        ),
        Query(
            "Q4",
            "packets of each pair of addresses, minute by minute",
            q4,
            f"""
            SELECT srcIP, destIP, ts // {_MINUTE} * {_MINUTE} AS since, count(*) AS packets
            FROM m GROUP BY ALL
            """,
        ),
        Query(
            "Q5",
            "the same of two links together",
            q5,
            f"""
            SELECT srcIP, destIP, ts // {_MINUTE} * {_MINUTE} AS since, count(*) AS packets
            FROM (FROM m1 UNION ALL FROM m2) GROUP BY ALL
            """,
        ),
        Query(
            "Q6",
            "packets that are answered within the same ten seconds",
            q6,
            f"""
            SELECT l.srcIP, l.destIP, l.ts
            FROM (FROM a UNION ALL FROM b) AS l, (FROM c UNION ALL FROM d) AS r
            WHERE l.ts // 10000000 = r.ts // 10000000 AND {_ANSWERS}
            """,
        ),
        Query(
            "Q7",
            f"pairs of packet and answer at most {BAND} seconds apart, minute by minute",
            q7,
            f"""
            SELECT l.ts // {_MINUTE} * {_MINUTE} AS since, count(*) AS pairs FROM m1 AS l, m2 AS r
            WHERE l.ts BETWEEN r.ts - {BAND} * 1000000 AND r.ts + {BAND} * 1000000 AND {_ANSWERS}
            GROUP BY since
            """,
        ),
        Query(
            "Q8",
            "packets and answers of one second, the answers of two links",
            q8,
            f"""
            SELECT l.srcIP, l.destIP, l.ts FROM m1 AS l, (FROM m2 UNION ALL FROM c) AS r
            WHERE l.ts = r.ts AND {_ANSWERS}
            """,
        ),
        Query(
            "Q9",
            "packets of the last five minutes, every minute",
            q9,
            f"""
            SELECT (ts // {_MINUTE} - k) * {_MINUTE} AS since, count(*) AS packets
            FROM (FROM m1 UNION ALL FROM m2 UNION ALL FROM c), range(5) AS t(k) GROUP BY since
            """,
        ),
    )
}
LINKS = ("control", "main1", "main2", "s0", "s1", "m", "m1", "m2", "a", "b", "c", "d")
