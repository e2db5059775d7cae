"""People who open auctions and bid in them, in the proportions of Nexmark: 1 person, 3 auctions, 46 bids.

What happens does so at an even pace, and is heard up to some seconds later. Half of all bids are for the
latest hot auction. A seller is one of the people who registered last, so that nobody opens an auction later
than `ACTIVE` after he registered.
"""

from datetime import timedelta

import numpy as np
import pyarrow as pa

import anabranch as ab

TIME = "timestamp[us, tz=UTC]"
PEOPLE = {"id": "int64", "name": "string", "city": "string", "state": "string", "at": TIME}
AUCTIONS = {"id": "int64", "seller": "int64", "category": "int64", "initial": "int64", "at": TIME}
BIDS = {"auction": "int64", "bidder": "int64", "price": "int64", "at": TIME}
LATE = timedelta(seconds=10)
"""How late anything is heard, at most, behind the latest of its kind."""
ACTIVE = timedelta(minutes=2)
"""How long after they register people open auctions, at most."""
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Portland", "Boise", "Bend", "Seattle", "Cheyenne", "Redmond")
CATEGORIES = 5
FIRST_ID, FIRST_CATEGORY = 1_000, 10
_SECOND = 1_000_000
_BEGIN = 1_767_225_600 * _SECOND


def people() -> ab.Stream:
    """Who registers."""
    stream: ab.Stream = ab.source("people", PEOPLE, start="at", disorder=LATE)
    return stream


def auctions() -> ab.Stream:
    """What is offered, and by whom."""
    stream: ab.Stream = ab.source("auctions", AUCTIONS, start="at", disorder=LATE)
    return stream


def bids() -> ab.Stream:
    """What is bid, for which auction."""
    stream: ab.Stream = ab.source("bids", BIDS, start="at", disorder=LATE)
    return stream


def happened(count: int = 10_000, *, rate: int = 100, seed: int = 1) -> dict[str, pa.Table]:
    """So many events, ``rate`` a second, in the order in which they are heard, by source."""
    random = np.random.default_rng(seed)
    number = np.arange(count)
    place, at = number % 50, number * _SECOND // rate
    is_person, is_auction, is_bid = place == 0, (place > 0) & (place < 4), place >= 4
    persons_before, auctions_before = np.cumsum(is_person), np.cumsum(is_auction)
    tables = {
        "people": _people(random, at[is_person]),
        "auctions": _auctions(random, at[is_auction], at[is_person], persons_before[is_auction]),
        "bids": _bids(random, at[is_bid], persons_before[is_bid], auctions_before[is_bid]),
    }
    return {name: _heard(random, table) for name, table in tables.items()}


def _people(random: np.random.Generator, at: np.ndarray) -> pa.Table:
    ids = FIRST_ID + np.arange(len(at))
    chosen = random.integers(0, len(STATES), len(at)), random.integers(0, len(CITIES), len(at))
    return _table(
        PEOPLE,
        id=ids,
        name=[f"person {one}" for one in ids.tolist()],
        state=[STATES[one] for one in chosen[0].tolist()],
        city=[CITIES[one] for one in chosen[1].tolist()],
        at=at,
    )


def _auctions(
    random: np.random.Generator, at: np.ndarray, registered: np.ndarray, people: np.ndarray
) -> pa.Table:
    """Each by one of the people before it who registered within `ACTIVE`."""
    oldest = np.searchsorted(registered, at - ACTIVE // timedelta(microseconds=1))
    return _table(
        AUCTIONS,
        id=FIRST_ID + np.arange(len(at)),
        seller=FIRST_ID + random.integers(oldest, people),
        category=FIRST_CATEGORY + random.integers(0, CATEGORIES, len(at)),
        initial=random.integers(1, 1_000, len(at)),
        at=at,
    )


def _bids(random: np.random.Generator, at: np.ndarray, people: np.ndarray, auctions: np.ndarray) -> pa.Table:
    """Half for the latest auction whose number is round, the others for one of the last hundred."""
    hot = (np.maximum(auctions, 1) - 1) // 20 * 20
    other = random.integers(np.maximum(auctions - 100, 0), np.maximum(auctions, 1))
    return _table(
        BIDS,
        auction=FIRST_ID + np.where(random.random(len(at)) < 0.5, hot, other),
        bidder=FIRST_ID + random.integers(np.maximum(people - 1_000, 0), people),
        price=np.rint(10 ** (random.random(len(at)) * 6) * 100).astype(np.int64),
        at=at,
    )


def _heard(random: np.random.Generator, table: pa.Table) -> pa.Table:
    at = table.column("at").cast(pa.int64()).to_numpy()
    late = random.integers(0, LATE // timedelta(microseconds=1), len(at))
    return table.take(np.argsort(at + late, kind="stable"))


def _table(columns: dict[str, str], *, at: np.ndarray, **values: object) -> pa.Table:
    values["at"] = pa.array(_BEGIN + at, pa.timestamp("us", "UTC"))
    return pa.table({name: values[name] for name in columns})
