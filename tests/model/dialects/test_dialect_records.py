"""Dialect items as plain dicts."""

import json

import pytest
from dialect_streams import TABLE, stream
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.dialects import (
    DIALECTS,
    DialectError,
    cedr,
    change_rows,
    external_cti,
    modify,
    open_close,
)
from anabranch.model.elements import Insert, Stable
from anabranch.model.time import BEGINNING, FOREVER

P = {"v": "A", "w": [1, {"x": None}]}

RECORDS = [
    ("modify", modify.Add(P, 6, 7), {"kind": "a", "payload": P, "start": 6, "end": 7}),
    ("modify", modify.Modify(P, 6, FOREVER), {"kind": "m", "payload": P, "start": 6, "end": None}),
    ("modify", modify.Finalize(11), {"kind": "f", "time": 11}),
    ("open-close", open_close.Open({}, 1), {"kind": "open", "payload": {}, "start": 1}),
    ("open-close", open_close.Close(P, FOREVER), {"kind": "close", "payload": P, "end": None}),
    ("open-close", Stable(BEGINNING), {"kind": "stable", "time": BEGINNING}),
    ("cedr", Insert(P, 1, FOREVER), {"kind": "insert", "payload": P, "start": 1, "end": None}),
    (
        "cedr",
        cedr.Retraction(P, 1, FOREVER, 10),
        {"kind": "retraction", "payload": P, "start": 1, "end": None, "new_end": 10},
    ),
    ("cedr", cedr.Cti(FOREVER), {"kind": "cti", "time": None}),
    ("external-cti", Insert(P, -1, 4), {"kind": "insert", "payload": P, "start": -1, "end": 4}),
    (
        "external-cti",
        cedr.Retraction(P, 1, 9, 1),
        {"kind": "retraction", "payload": P, "start": 1, "end": 9, "new_end": 1},
    ),
    (
        "external-cti",
        external_cti.ExternalCti(0, FOREVER, 4),
        {"kind": "external_cti", "start": 0, "end": None, "count": 4},
    ),
    ("change-rows", change_rows.Change("insert", 3, after=P), {"op": "insert", "time": 3, "after": P}),
    (
        "change-rows",
        change_rows.Change("update", 5, {"v": 1}, P),
        {"op": "update", "time": 5, "before": {"v": 1}, "after": P},
    ),
    ("change-rows", change_rows.Change("update", 5, None, P), {"op": "update", "time": 5, "after": P}),
    ("change-rows", change_rows.Change("delete", 9, P), {"op": "delete", "time": 9, "before": P}),
    ("change-rows", change_rows.Progress(FOREVER), {"op": "progress", "time": None}),
]


@pytest.mark.parametrize(("name", "item", "record"), RECORDS)
def test_an_item_is_written_as_its_record_and_read_from_it(name, item, record):
    dialect = DIALECTS[name]
    assert dialect.to_record(item) == record
    assert list(dialect.to_record(item)) == list(record)
    assert dialect.from_record(json.loads(json.dumps(record))) == item


@given(st.sampled_from(sorted(DIALECTS)), st.randoms(use_true_random=False))
def test_whatever_is_written_round_trips_through_json(name, random):
    dialect = DIALECTS[name]
    written = []
    try:
        for item in dialect.write(stream(random, payloads=TABLE)):
            written.append(item)
    except DialectError:
        pass
    for item in written:
        assert dialect.from_record(json.loads(json.dumps(dialect.to_record(item)))) == item


@pytest.mark.parametrize(("name", "item", "record"), RECORDS)
def test_a_missing_field_is_named(name, item, record):
    for field in record:
        rest = {key: value for key, value in record.items() if key != field}
        if record.get("op") == "update" and field == "before":
            continue
        with pytest.raises(DialectError, match=f"`{field}`"):
            DIALECTS[name].from_record(rest)


@pytest.mark.parametrize(("name", "item", "record"), RECORDS)
def test_an_unknown_field_is_named(name, item, record):
    with pytest.raises(DialectError, match="`extra`") as caught:
        DIALECTS[name].from_record({**record, "extra": 1})
    assert "has the fields" in caught.value.__notes__[0]


@pytest.mark.parametrize("wrong", ["6", 6.5, True, 2**63, [6]])
@pytest.mark.parametrize(("name", "item", "record"), RECORDS)
def test_a_field_of_another_type_is_named(name, item, record, wrong):
    for field in list(record)[1:]:
        with pytest.raises(DialectError, match=rf"\$\.{field}`"):
            DIALECTS[name].from_record({**record, field: wrong})


@pytest.mark.parametrize("field", ["start", "count", "payload", "after"])
def test_only_an_end_or_a_time_may_be_null(field):
    for name, _, record in RECORDS:
        if field in record:
            with pytest.raises(DialectError, match=rf"\$\.{field}`"):
                DIALECTS[name].from_record({**record, field: None})


@pytest.mark.parametrize("name", DIALECTS)
def test_a_kind_that_the_dialect_does_not_have_is_named_with_those_it_has(name):
    tag = "op" if name == "change-rows" else "kind"
    with pytest.raises(DialectError, match="adjust") as caught:
        DIALECTS[name].from_record({tag: "adjust"})
    assert f"The field '{tag}' of a record is one of" in caught.value.__notes__[0]


def test_what_is_no_record_is_shown():
    with pytest.raises(DialectError, match=r"the record \[1\] is no item"):
        modify.from_record([1])


def test_a_record_of_an_item_that_cannot_be_is_refused():
    with pytest.raises(DialectError, match="commits at the end of time"):
        change_rows.from_record({"op": "insert", "time": None, "after": P})
    with pytest.raises(DialectError, match="moves the end to 9"):
        cedr.from_record({"kind": "retraction", "payload": P, "start": 1, "end": 4, "new_end": 9})
