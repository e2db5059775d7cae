"""Queries of Nexmark over people, auctions and bids that come in disorder.

Numbers are those of the benchmark. 4 and 6 ask what holds while auctions are open, for which lifetimes are
joined and aggregated; 11 asks for sessions, and 12 for windows by the time of arrival.
"""

import anabranch as ab
from anabranch import col
from auction_house.data import ACTIVE, TIME, auctions, bids, people
from scene.query import Query

SIZE, EVERY = 60, 10
"""Seconds of a window of query 5, and between two."""
_SECOND = 1_000_000


def q0() -> ab.Stream:
    """All bids, as they are."""
    return bids()


def q1() -> ab.Stream:
    """All bids in another currency."""
    return bids().with_columns(price=col("price") * 0.908)


def q2() -> ab.Stream:
    """The bids for a few auctions."""
    return bids().filter(col("auction") % 123 == 0).select("auction", "price")


def q3() -> ab.Stream:
    """Who of three states offers what in category 10.

    The benchmark has no bound on how long after a person registers he may open an auction, so that every
    person would be kept forever. Sellers are people who registered no longer than `ACTIVE` ago, which is what
    bounds the join here: of such data the answer is that without a bound, and what is kept is what is active.
    """
    local = people().filter(col("state").is_in(["OR", "ID", "CA"])).rename({"id": "seller"})
    offered = auctions().filter(col("category") == 10).rename({"id": "auction"})
    pairs = local.join(offered, on="seller", within=("0 seconds", ACTIVE))
    return pairs.select("name", "city", "state", "auction")


def q5() -> ab.Stream:
    """The auctions with the most bids in the last minute, every ten seconds.

    Windows of one hop have a start of their own, so that windows of the size of a hop over their counts have
    one of them each, and a join of equal starts finds the auctions that have the greatest count.
    """
    counts = bids().window(f"{SIZE} seconds", f"{EVERY} seconds", start="since").group_by("auction")
    each = counts.agg(bids=ab.count())
    most = each.window(f"{EVERY} seconds").agg(most=col("bids").max())
    return each.join(most, within="0 seconds", where=col("bids") == col("most")).drop("most")


def q7() -> ab.Stream:
    """The highest bids of every ten seconds, each with who bid it and for what."""
    highest = bids().window("10 seconds").agg(price=col("price").max())
    each = bids().with_columns(at=ab.start().cast(TIME)).tumble("10 seconds")
    return each.join(highest, on="price", within="0 seconds")


def q8() -> ab.Stream:
    """Who registers and opens an auction within the same ten seconds."""
    registered, opened = people().tumble("10 seconds"), auctions().tumble("10 seconds")
    both = registered.join(opened, on={"id": "seller"}, within="0 seconds", how="semi")
    return both.select("id", "name")


QUERIES = {
    query.name: query
    for query in (
        Query("0", "all bids", q0, "SELECT auction, bidder, price FROM bids"),
        Query(
            "1",
            "all bids in another currency",
            q1,
            "SELECT auction, bidder, price::DOUBLE * 0.908::DOUBLE AS price FROM bids",
        ),
        Query(
            "2", "the bids for a few auctions", q2, "SELECT auction, price FROM bids WHERE auction % 123 = 0"
        ),
        Query(
            "3",
            "who of three states offers what in a category",
            q3,
            """
            SELECT name, city, state, a.id AS auction FROM people AS p, auctions AS a
            WHERE a.seller = p.id AND category = 10 AND state IN ('OR', 'ID', 'CA')
            """,
        ),
        Query(
            "5",
            "the auctions with the most bids in the last minute, every ten seconds",
            q5,
            f"""
            WITH counts AS (
                SELECT auction, ("at" // {EVERY * _SECOND} - k) * {EVERY * _SECOND} AS since, count(*) AS bids
                FROM bids, range({SIZE // EVERY}) AS t(k) GROUP BY ALL
            )
            SELECT auction, bids, since FROM counts
            QUALIFY bids = max(bids) OVER (PARTITION BY since)
            """,
        ),
        Query(
            "7",
            "the highest bids of every ten seconds",
            q7,
            f"""
            SELECT auction, bidder, price, "at" FROM bids
            QUALIFY price = max(price) OVER (PARTITION BY "at" // {10 * _SECOND})
            """,
        ),
        Query(
            "8",
            "who registers and opens an auction within the same ten seconds",
            q8,
            f"""
            SELECT id, name FROM people AS p WHERE EXISTS (
                FROM auctions AS a
                WHERE a.seller = p.id AND a."at" // {10 * _SECOND} = p."at" // {10 * _SECOND}
            )
            """,
        ),
    )
}
