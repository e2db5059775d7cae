"""Queries of Nexmark say what SQL says of all rows, and their page shows them."""

import inspect
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from auction_house.data import ACTIVE, LATE, happened
from auction_house.queries import QUERIES
from scene.query import answered, counted, judged

DOCS = Path(__file__).parents[2] / "docs"
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture(scope="module")
def tables():
    return happened(10_000, rate=50)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_what_sql_says_of_all_rows(name, tables):
    found, expected = answered(QUERIES[name], tables), judged(QUERIES[name], tables)
    assert expected.num_rows
    assert sorted(found.column_names) == sorted(expected.column_names)
    assert counted(found) == counted(expected)


def test_rows_repeat_exactly_and_are_no_later_than_they_may_be(tables):
    again = happened(10_000, rate=50)
    assert all(table.equals(again[name]) for name, table in tables.items())
    for table in tables.values():
        latest, late = 0, 0
        for at in table.column("at").cast(pa.int64()).to_pylist():
            latest = max(latest, at)
            late = max(late, latest - at)
        assert LATE // 2 < late * MICROSECOND <= LATE


def test_sellers_have_registered_within_the_bound_of_the_join(tables):
    ids, times = (tables["people"].column(name) for name in ("id", "at"))
    registered = dict(zip(ids.to_pylist(), times.cast(pa.int64()).to_pylist(), strict=True))
    sellers, opened = (tables["auctions"].column(name) for name in ("seller", "at"))
    waited = [
        (at - registered[seller]) * MICROSECOND
        for seller, at in zip(sellers.to_pylist(), opened.cast(pa.int64()).to_pylist(), strict=True)
    ]
    assert timedelta() <= min(waited)
    assert ACTIVE * 0.9 < max(waited) <= ACTIVE


@pytest.mark.parametrize("name", QUERIES)
def test_the_page_has_each_query_as_it_is(name):
    assert inspect.getsource(QUERIES[name].plan) in (DOCS / "nexmark.md").read_text(encoding="utf-8")
