"""The nine queries over links of a network say what SQL says of all packets, and their page shows them."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from network.packets import packets
from network.queries import LINKS, QUERIES, link
from scene.query import answered, counted, judged

DOCS = Path(__file__).parents[2] / "docs"
CUTS = (1_000, 37)


@pytest.fixture(scope="module")
def tables():
    return packets(LINKS, count=200, hosts=2)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_what_sql_says_of_all_packets(name, tables):
    found = [answered(QUERIES[name], tables, rows=rows) for rows in CUTS]
    expected = counted(judged(QUERIES[name], tables))
    assert expected
    assert sorted(found[0].column_names) == sorted(judged(QUERIES[name], tables).column_names)
    assert [counted(table) for table in found] == [expected, expected]


def test_another_band_would_be_noticed(tables):
    def swapped():
        return link("main1").join(link("main2"), on={"srcIP": "destIP"}, within=("3 minutes", "2 minutes"))

    other = replace(QUERIES["Q2"], plan=swapped)
    assert counted(answered(other, tables)) != counted(judged(other, tables))


def test_packets_are_heard_in_disorder_and_repeat_exactly():
    one, again = packets(LINKS), packets(LINKS)
    assert all(one[name].equals(again[name]) for name in LINKS)
    for table in one.values():
        times = table.column("ts").to_pylist()
        assert times != sorted(times)
    assert not packets(LINKS, seed=2)["m"].equals(one["m"])


@pytest.mark.parametrize("name", QUERIES)
def test_the_page_has_each_query_as_it_is_and_its_picture(name):
    plan = QUERIES[name].plan
    assert inspect.getsource(plan) in (DOCS / "network.md").read_text(encoding="utf-8")
    picture = DOCS / "pictures" / "network" / f"{name.lower()}.svg"
    assert picture.read_text(encoding="utf-8") == plan().picture()
