"""Queries of Nexmark say on Spark, where streams go on, what one process says before the end."""

import pytest

from auction_house.data import happened
from auction_house.queries import QUERIES
from scene.query import answered, answered_by_spark, counted


@pytest.mark.parametrize("name", ["3", *(pytest.param(name, marks=pytest.mark.slow) for name in "012578")])
def test_a_query_says_on_spark_what_one_process_says_before_the_end(spark, name):
    tables = happened(10_000)
    found = answered_by_spark(QUERIES[name], tables, spark)
    assert found.num_rows
    assert counted(found) == counted(answered(QUERIES[name], tables, finish=False))
