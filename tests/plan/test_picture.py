from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan.plans import PLANS, STRANGE, diamond, merged, readings, replicas, strange

from anabranch.plan.build import merge, union
from anabranch.plan.card import ROOM, mono_width, wrapped
from anabranch.plan.explain import explained, one_line
from anabranch.plan.graph import Graph
from anabranch.plan.layers import Box, Line, laid_out
from anabranch.plan.picture import picture
from anabranch.plan.stream import outputs_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn(stream):
    return ElementTree.fromstring(picture({"": stream.node}))


def texts(root, kind=None):
    return [one.text for one in root.iter(f"{SVG}text") if kind is None or one.get("class") == kind]


def boxes(root):
    found = [one for one in root.iter(f"{SVG}rect") if one.get("class").startswith("box ")]
    return [tuple(float(one.get(name)) for name in ("x", "y", "width", "height")) for one in found]


def overlap(one, other):
    (x, y, width, height), (left, top, wide, high) = one, other
    return x < left + wide and left < x + width and y < top + high and top < y + height


@pytest.mark.parametrize("plan", PLANS)
class TestEveryPicture:
    def test_is_of_the_size_that_it_says_and_tells_the_plan_in_words(self, plan):
        root = drawn(plan())
        assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
        assert root.get("role") == "img"
        assert root[0].tag == f"{SVG}title"
        assert root[0].text.startswith("Plan: ")
        assert root.find(f"{SVG}desc").text == explained({"": plan().node})

    def test_has_a_box_for_every_operator_and_every_output(self, plan):
        nodes = Graph([plan().node]).nodes
        titles = [one.find(f"{SVG}title").text for one in drawn(plan()).iter(f"{SVG}g")]
        for node in nodes:
            said = one_line(node.words())
            assert any(one.startswith(said if node.word != "tap" else "tap ") for one in titles)
        assert "output" in texts(drawn(plan()), "word")

    def test_has_no_box_on_another_and_none_outside(self, plan):
        root = drawn(plan())
        assert not [pair for pair in combinations(boxes(root), 2) if overlap(*pair)]
        for x, y, width, height in boxes(root):
            assert x > 0
            assert y > 0
            assert x + width < float(root.get("width"))
            assert y + height < float(root.get("height"))

    def test_has_all_words_within_boxes(self, plan):
        root = drawn(plan())
        for one in root.iter(f"{SVG}text"):
            if one.get("class") in ("word", "says", "known"):
                x, y = float(one.get("x")), float(one.get("y"))
                around = [
                    box
                    for box in boxes(root)
                    if box[0] < x < box[0] + box[2] and box[1] < y < box[1] + box[3]
                ]
                assert len(around) == 1
                if one.get("class") == "says":
                    assert x + mono_width(one.text, size=11) < around[0][0] + around[0][2]

    def test_is_the_same_each_time(self, plan):
        assert picture({"": plan().node}) == picture({"": plan().node})

    def test_leaves_the_styles_of_its_page_alone(self, plan):
        style = drawn(plan()).find(f"{SVG}style").text
        rules = [line for line in style.splitlines() if "{" in line and "@" not in line]
        assert all(
            one.strip().startswith(".anabranch-plan ")
            for line in rules
            for one in line.split("{")[0].split(",")
        )


def test_operators_have_the_words_that_the_user_said():
    assert {"sensors", "filter", "select", "merge", "tumble", "final", "windows"} <= {
        *texts(drawn(replicas()), "word")
    }


def test_what_users_named_is_never_markup():
    text = picture({STRANGE: strange().node})
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert any(one.startswith("<&>\"'\\n") for one in texts(ElementTree.fromstring(text), "word"))


@given(st.text(min_size=1))
def test_any_name_makes_well_formed_xml(name):
    root = ElementTree.fromstring(picture({name: readings(name).node}))
    assert one_line(name) in root[0].text


def test_a_merge_shows_its_case():
    assert texts(drawn(merged()), "case") == ["R3"]


def test_an_input_of_a_merge_has_its_name_where_that_is_not_its_source():
    root = drawn(merge({"readings": readings(), "backup": readings("old")}))
    assert "backup" in texts(root, "kind")
    assert "readings" not in texts(root, "kind")


def test_lines_are_three_until_a_merge_ends_the_replicas():
    lines = [one for one in drawn(replicas()).iter(f"{SVG}path") if one.get("class") == "head"]
    assert len(lines) == 3 * 3 + 4


def test_what_is_known_stands_where_it_changes():
    root = drawn(diamond())
    assert texts(root, "known").count("perfect") == 1
    assert len(boxes(root)) == 7


def test_an_output_that_is_tapped_is_drawn_once():
    root = ElementTree.fromstring(picture(outputs_of({"all": replicas()})))
    assert texts(root, "word").count("windows") == 1
    assert texts(root, "kind").count("output") == 2, "with that of the legend"


def test_a_stream_that_meets_itself_has_two_lines():
    start = readings()
    heads = [one for one in drawn(union(start, start)).iter(f"{SVG}path") if one.get("class") == "head"]
    assert len(heads) == 3


def test_a_plan_of_nothing_is_a_picture_too():
    assert ElementTree.fromstring(picture({}))[0].text == "Plan of nothing"


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 14))
    sizes = st.integers(30, 200)
    boxes = [Box(float(draw(sizes)), float(draw(sizes))) for _ in range(count)]
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).map(sorted)
    lines = [Line(a, b) for a, b in draw(st.lists(pairs, max_size=24)) if a < b]
    ends = {line.source for line in lines}
    return [Box(one.width, one.height, last=n not in ends) for n, one in enumerate(boxes)], lines


@given(graphs())
def test_boxes_stand_apart_and_lines_run_between_them(graph):
    sizes, lines = graph
    layout = laid_out(sizes, lines)
    places = [
        (x, y, width, box.height)
        for (x, y), width, box in zip(layout.corners, layout.widths, sizes, strict=True)
    ]
    assert not [pair for pair in combinations(places, 2) if overlap(*pair)]
    for line, route in zip(lines, layout.routes, strict=True):
        assert places[line.source][0] + places[line.source][2] <= places[line.target][0]
        assert [x for x, _ in route] == sorted(x for x, _ in route)
        for x, y in route[1:-2]:
            assert not [
                box for box in places if box[0] <= x <= box[0] + box[2] and box[1] < y < box[1] + box[3]
            ]
    for x, y, width, height in places:
        assert x >= 0
        assert y >= 0
        assert x + width <= layout.width
        assert y + height <= layout.height + 0.1


@given(st.text(), st.integers(1, 5))
def test_words_are_cut_where_there_is_no_room(words, most):
    lines = wrapped(words, ROOM, lambda line: mono_width(line, size=11), most)
    assert len(lines) <= most
    assert all(mono_width(line, size=11) <= ROOM for line in lines)
