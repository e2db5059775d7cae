"""What the columns of rows mean: lifetimes, kinds, who says them, and what does not fit."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Stable
from anabranch.model.clock_columns import clock_of, times
from anabranch.model.schema import SchemaError
from anabranch.rows.layout import SINGLE, Layout, names_of
from anabranch.rows.reading import Place, read_rows

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)
HERE = Place("task 3", 100)
INSTANT, LOCAL = pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us")


def rows_of(**columns) -> pa.RecordBatch:
    """A record batch from columns, each values or values with a type."""
    arrays = [pa.array(*c) if isinstance(c, tuple) else pa.array(c) for c in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def read(layout: Layout, rows: pa.RecordBatch):
    layout.check(rows.schema)
    return read_rows(layout, rows, HERE)


def elements(layout: Layout, rows: pa.RecordBatch) -> list[object]:
    found = read(layout, rows)
    assert not found.refused
    return [found.batch.element(n) for n in range(len(found.batch))]


class TestLifetimes:
    def test_an_event_without_an_end_is_a_point(self):
        rows = rows_of(at=[3, 5], v=["a", "b"])
        assert elements(Layout("at"), rows) == [Insert({"v": "a"}, 3, 4), Insert({"v": "b"}, 5, 6)]

    def test_an_end_column_ends_it_and_null_means_never(self):
        rows = rows_of(at=[3, 5], until=([9, None], pa.int64()), v=["a", "b"])
        layout = Layout("at", "until")
        assert elements(layout, rows) == [Insert({"v": "a"}, 3, 9), Insert({"v": "b"}, 5, FOREVER)]

    def test_a_duration_ends_it(self):
        assert elements(Layout("at", duration=7), rows_of(at=[3])) == [Insert({}, 3, 10)]

    def test_timestamps_are_microseconds_wherever_their_zone_is(self):
        rows = rows_of(at=([NOON], INSTANT), until=([NOON + timedelta(seconds=2)], pa.timestamp("us", "UTC")))
        tick = int(NOON.timestamp()) * 10**6
        assert elements(Layout("at", "until"), rows) == [Insert({}, tick, tick + 2 * 10**6)]
        seconds = rows_of(at=([NOON], pa.timestamp("s", "UTC")))
        assert elements(Layout("at"), seconds) == [Insert({}, tick, tick + 1)]

    def test_local_times_are_microseconds_as_if_here_were_utc(self):
        rows = rows_of(at=([NOON.replace(tzinfo=None)], LOCAL))
        tick = int(NOON.timestamp()) * 10**6
        lasting = Layout("at", duration=timedelta(minutes=1))
        assert elements(lasting, rows) == [Insert({}, tick, tick + 60 * 10**6)]

    @pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
    def test_dates_are_days(self, kind):
        rows = rows_of(on=([date(1970, 1, 11)], kind))
        assert elements(Layout("on"), rows) == [Insert({}, 10, 11)]
        assert elements(Layout("on", duration=timedelta(weeks=1)), rows) == [Insert({}, 10, 17)]

    @pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
    def test_integers_of_any_width_are_ticks(self, kind):
        assert elements(Layout("at"), rows_of(at=([-3], kind))) == [Insert({}, -3, -2)]

    def test_the_latest_event_that_fits_is_used_and_a_later_one_refused(self):
        found = read(Layout("at", duration=5), rows_of(at=[FOREVER - 5, FOREVER - 4]))
        assert [found.batch.element(0)] == [Insert({}, FOREVER - 5, FOREVER)]
        assert [one.reason for one in found.refused] == ["an event of duration 5 ends before time does"]

    def test_no_rows_are_no_elements(self):
        layout = Layout("at", kind="kind", replica="who", channel="part", sequence="n")
        texts = dict.fromkeys(("kind", "who", "part"), ([], pa.string()))
        numbers = dict.fromkeys(("at", "n", "v"), ([], pa.int64()))
        found = read(layout, rows_of(**texts, **numbers))
        assert len(found.batch) == len(found.replica) == 0
        assert found.batch.payload.schema.names == ["v"]


class TestKinds:
    LAYOUT = Layout("at", "until", "was", kind="kind")

    def rows(self, *rows):
        columns = zip(*rows, strict=True)
        kinds = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.string())
        names = ("kind", "at", "until", "was", "v")
        return rows_of(**{n: (list(c), k) for n, c, k in zip(names, columns, kinds, strict=True)})

    def test_a_row_is_what_its_kind_says_in_any_case(self):
        rows = self.rows(
            ("insert", 1, 5, None, "a"),
            ("Adjust", 1, 7, 5, "a"),
            ("STABLE", 4, None, None, None),
            ("attach", 3, None, None, None),
            ("detach", 9, 9, 9, "x"),
            (None, 6, None, 3, "b"),
        )
        assert elements(self.LAYOUT, rows) == [
            Insert({"v": "a"}, 1, 5),
            Adjust({"v": "a"}, 1, 5, 7),
            Stable(4),
            Attach(3),
            Detach(),
            Insert({"v": "b"}, 6, FOREVER),
        ]

    def test_a_time_that_is_null_is_infinite(self):
        rows = self.rows(
            ("stable", None, None, None, None),
            ("attach", None, None, None, None),
            ("detach", None, None, None, None),
            ("adjust", 1, None, 5, "a"),
            ("adjust", 1, 5, None, "a"),
        )
        assert elements(self.LAYOUT, rows) == [
            Stable(FOREVER),
            Attach(BEGINNING),
            Detach(),
            Adjust({"v": "a"}, 1, 5, FOREVER),
            Adjust({"v": "a"}, 1, FOREVER, 5),
        ]

    def test_a_dictionary_of_kinds_is_read_like_text(self):
        kinds = pa.array(["stable", None, "insert", "stable"]).dictionary_encode()
        rows = pa.RecordBatch.from_arrays([kinds, pa.array([1, 2, 3, 4])], names=["kind", "at"])
        assert elements(Layout("at", kind="kind"), rows) == [
            Stable(1),
            Insert({}, 2, 3),
            Insert({}, 3, 4),
            Stable(4),
        ]

    def test_a_kind_that_is_none_is_refused(self):
        found = read(self.LAYOUT, self.rows(("insert", 1, 5, None, "a"), ("upsert", 2, 5, None, "b")))
        assert [found.batch.element(0)] == [Insert({"v": "a"}, 1, 5)]
        (refused,) = found.refused
        assert (
            refused.reason
            == "kind is one of insert, adjust, stable, attach, detach or null, this one is 'upsert'"
        )

    def test_an_adjust_needs_the_end_that_it_changes(self):
        rows = rows_of(kind=["adjust", "insert"], at=[1, 2], v=["a", "b"])
        found = read(Layout("at", kind="kind"), rows)
        assert len(found.batch) == 1
        assert "no column is old_end" in found.refused[0].reason


class TestRefusals:
    def test_rows_without_a_start_are_refused_and_the_others_used(self):
        rows = rows_of(at=([3, None, 5], pa.int64()), who=["a", "b", "a"], v=["x", "y", "z"])
        found = read(Layout("at", replica="who"), rows)
        assert [found.batch.element(n) for n in range(2)] == [
            Insert({"v": "x"}, 3, 4),
            Insert({"v": "z"}, 5, 6),
        ]
        assert [found.replicas[code] for code in found.replica] == ["a", "a"]
        (refused,) = found.refused
        assert (refused.rule, refused.replica, refused.place) == ("malformed", "b", "task 3 row 101")
        assert refused.reason == "an event has a start, column 'at' is null"
        assert json.loads(refused.raw) == {"at": None, "who": "b", "v": "y"}

    @pytest.mark.parametrize("kind", [None, "stable", "attach", "detach"])
    def test_rows_that_are_nobodys_are_refused(self, kind):
        rows = rows_of(at=[3, 4], kind=([kind] * 2, pa.string()), who=(["a", None], pa.string()))
        found = read(Layout("at", kind="kind", replica="who"), rows)
        assert len(found.batch) == 1
        (refused,) = found.refused
        assert refused.reason == "a row says whose it is, column 'who' is null"
        assert refused.replica == ""

    def test_rows_may_all_be_nobodys(self):
        found = read(Layout("at", replica="who"), rows_of(at=[3, 4], who=([None, None], pa.string())))
        assert len(found.batch) == 0
        assert [one.replica for one in found.refused] == ["", ""]

    def test_rows_without_a_place_in_their_channel_are_refused(self):
        rows = rows_of(at=[3, 4], n=([None, 7], pa.int64()), part=["x", "x"])
        found = read(Layout("at", channel="part", sequence="n"), rows)
        assert found.sequence.tolist() == [7]
        assert found.refused[0].reason == "a row has a place in its channel, column 'n' is null"

    def test_the_first_reason_counts(self):
        rows = rows_of(at=([None], pa.int64()), kind=["nonsense"], who=([None], pa.string()))
        (refused,) = read(Layout("at", kind="kind", replica="who"), rows).refused
        assert refused.reason.startswith("kind is one of")

    def test_any_row_can_be_shown(self):
        row = {
            "at": None,
            "data": b"\x00\xff",
            "price": Decimal("1.20"),
            "seen": NOON,
            "on": date(2026, 1, 1),
            "took": timedelta(seconds=1),
            "nan": float("nan"),
            "list": [{"x": [1, None]}],
            "map": [("k", 2)],
            "a.b": "é",
        }
        kinds = {"at": pa.int64(), "map": pa.map_(pa.string(), pa.int64())}
        rows = rows_of(**{name: ([value], kinds.get(name)) for name, value in row.items()})
        (refused,) = read(Layout("at"), rows).refused
        shown = json.loads(refused.raw)
        assert list(shown) == list(row)
        assert shown["price"] == "1.20"
        assert shown["list"] == [{"x": [1, None]}]
        assert shown["a.b"] == "é"


class TestText:
    """Text that is not UTF-8 is in no JSON and no table: its row is set aside, whichever column has it."""

    BROKEN = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 3, 4], np.int32)), pa.py_buffer(b"a\xff\xfeb")]
    )

    @pytest.mark.parametrize("name", ["who", "kind", "v", "inside", "many"])
    def test_a_row_is_refused_for_it_and_shown_as_far_as_it_can_be(self, name):
        columns = {
            "at": pa.array([1, 2, 3]),
            "who": pa.array(["east"] * 3),
            "kind": pa.array(["insert"] * 3),
            "v": self.BROKEN if name == "v" else pa.array(["x", "y", "z"]),
            "inside": pa.StructArray.from_arrays([pa.array(["x", "y", "z"])], ["x"]),
            "many": pa.array([["x"], [], None], pa.list_(pa.string())),
        }
        texts = {
            "inside": pa.StructArray.from_arrays([self.BROKEN], ["x"]),
            "many": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), self.BROKEN),
            "kind": pa.concat_arrays([pa.array(["insert"]), self.BROKEN[1:2], pa.array(["insert"])]),
        }
        columns[name] = texts.get(name, self.BROKEN)
        layout = Layout("at", kind="kind", replica="who")
        read = read_rows(layout, pa.RecordBatch.from_pydict(columns), Place("rows"))
        assert read.batch.start.tolist() == [1, 3]
        [refused] = read.refused
        assert (refused.rule, refused.place) == ("malformed", "rows row 1")
        assert refused.reason == f"text is UTF-8, and in column {name!r} it is not"
        assert "\ufffd" in refused.raw

    def test_columns_that_are_not_read_are_not_looked_at(self):
        rows = pa.RecordBatch.from_pydict({"at": [1, 2, 3], "v": [1, 2, 3], "comment": self.BROKEN})
        read = read_rows(Layout("at", payload=("v",)), rows, Place("rows"))
        assert not read.refused


class TestWhoSpeaks:
    def test_rows_that_nothing_tells_apart_are_of_one_replica(self):
        found = read(Layout("at"), rows_of(at=[1, 2]))
        assert (found.replicas, found.channels) == ([SINGLE], [""])
        assert found.sequence.tolist() == [0, 1]

    def test_names_may_be_of_any_type(self):
        rows = rows_of(at=[1, 2], who=[7, 8], part=([date(2026, 1, 1)] * 2, pa.date32()))
        found = read(Layout("at", replica="who", channel="part"), rows)
        assert [found.replicas[code] for code in found.replica] == ["7", "8"]
        assert found.channels == ["2026-01-01"]

    def test_places_go_on_from_those_before(self):
        found = read_rows(Layout("at"), rows_of(at=[1, 2]), Place("x", 5, 1 << 40))
        assert found.sequence.tolist() == [1 << 40, (1 << 40) + 1]

    def test_a_sequence_without_a_channel_is_that_of_the_replica(self):
        assert Layout("at", replica="who", sequence="n").channel == "who"
        assert Layout("at", replica="who", channel="part", sequence="n").channel == "part"


class TestPayload:
    NAMES = ("my col", "_x", "class", "a.b", "kind", "end")

    def test_it_is_every_column_that_is_nothing_else(self):
        rows = rows_of(at=[1], who=["a"], **{name: [1] for name in self.NAMES})
        (element,) = elements(Layout("at", replica="who"), rows)
        assert list(element.payload) == list(self.NAMES)

    def test_it_may_be_chosen_and_have_columns_that_are_something_else_too(self):
        rows = rows_of(at=[1], who=["a"], v=[2])
        assert elements(Layout("at", replica="who", payload=("v", "at")), rows)[0].payload == {
            "v": 2,
            "at": 1,
        }

    def test_it_may_be_nothing(self):
        assert elements(Layout("at", payload=()), rows_of(at=[1, 2], v=[3, 4])) == [
            Insert({}, 1, 2),
            Insert({}, 2, 3),
        ]


class TestChecks:
    def refused(self, layout: Layout, schema, error=SchemaError):
        with pytest.raises(error) as found:
            layout.check(pa.schema(schema))
        return str(found.value), "".join(getattr(found.value, "__notes__", []))

    @pytest.mark.parametrize("role", ["end", "old_end", "kind", "replica", "channel"])
    def test_a_column_that_is_not_there_is_named_with_its_role(self, role):
        message, note = self.refused(
            Layout("at", **{role: "nowhere"}), [("at", pa.int64()), ("v", pa.int64())]
        )
        assert message == f"{role} is column 'nowhere', and there is none"
        assert note == "The columns are 'at', 'v'."

    @pytest.mark.parametrize("role", ["payload", "identity"])
    def test_so_is_one_of_several(self, role):
        message, _ = self.refused(Layout("at", **{role: ("at", "nowhere")}), [("at", pa.int64())])
        assert message == f"{role} is column 'nowhere', and there is none"

    def test_a_start_that_is_not_there_is_named(self):
        assert self.refused(Layout("from"), [("at", pa.int64())])[0].startswith("start is column 'from'")

    def test_two_columns_of_one_name_are_refused(self):
        columns = [("at", pa.int64()), ("v", pa.int64()), ("v", pa.string())]
        assert self.refused(Layout("at"), columns)[0] == "two columns are called 'v'"

    def test_what_tells_events_apart_is_payload(self):
        message, _ = self.refused(Layout("at", identity=("at",)), [("at", pa.int64()), ("v", pa.int64())])
        assert message == "what tells events apart is payload, and column 'at' is not"

    @pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.decimal128(10, 0), pa.bool_()])
    def test_a_time_is_a_timestamp_a_date_or_an_integer(self, kind):
        message, note = self.refused(Layout("at"), [("at", kind)])
        assert message == f"a time is a timestamp, a date or an integer, column 'at' holds {kind}"
        assert "to_timestamp" in note

    @pytest.mark.parametrize(
        ("start", "end"), [(INSTANT, LOCAL), (pa.int64(), pa.date32()), (pa.date32(), INSTANT)]
    )
    @pytest.mark.parametrize("role", ["end", "old_end"])
    def test_times_are_on_one_clock(self, start, end, role):
        message, note = self.refused(Layout("at", **{role: "x"}), [("at", start), ("x", end)])
        assert message == f"column 'at' holds {start} and column 'x' holds {end}"
        assert "one clock" in note

    @pytest.mark.parametrize("what", ["duration", "disorder"])
    def test_a_length_of_time_fits_the_clock(self, what):
        layout = Layout("at", **{what: timedelta(hours=30)})
        layout.check(pa.schema([("at", INSTANT)]))
        message, note = self.refused(layout, [("at", pa.int64())], ValueError)
        assert message == f"{what} is 1 day 6 hours, and times are numbers"
        assert note == "Give an int of ticks."
        assert self.refused(layout, [("at", pa.date32())], ValueError)[1] == "Give whole days."

    @pytest.mark.parametrize("what", ["duration", "disorder"])
    @pytest.mark.parametrize(
        ("kind", "clock", "unit"),
        [(INSTANT, "instant", "seconds"), (LOCAL, "local time", "seconds"), (pa.date32(), "day", "days")],
    )
    def test_a_number_without_a_unit_is_a_span_only_where_times_are_numbers(self, what, kind, clock, unit):
        layout = Layout("at", **{what: 60})
        layout.check(pa.schema([("at", pa.int64())]))
        message, note = self.refused(layout, [("at", kind)], ValueError)
        assert message == f"{what} is 60 without a unit, and times are {clock}s"
        assert note == f"Write '60 {unit}', if that is meant."

    def test_no_disorder_at_all_needs_no_unit(self):
        Layout("at", disorder=0).check(pa.schema([("at", INSTANT)]))

    def test_a_struct_has_one_field_of_each_name(self):
        twice = pa.struct([pa.field("x", pa.int64()), pa.field("x", pa.int64())])
        assert "has two called 'x'" in self.refused(Layout("at"), [("at", pa.int64()), ("v", twice)])[0]

    def test_an_event_ends_by_a_column_or_after_a_duration(self):
        with pytest.raises(ValueError, match="by a column or after a duration, not both"):
            Layout("at", "until", duration=5)

    @pytest.mark.parametrize("what", ["duration", "disorder"])
    @pytest.mark.parametrize("value", [-1, timedelta(seconds=-1)])
    def test_spans_are_not_negative(self, what, value):
        with pytest.raises(ValueError, match=f"{what} is not negative"):
            Layout("at", **{what: value})

    @pytest.mark.parametrize("value", [0, timedelta(0)])
    def test_an_event_lasts_longer_than_nothing(self, value):
        with pytest.raises(ValueError, match="lasts longer than nothing"):
            Layout("at", duration=value)
        assert Layout("at", disorder=value).disorder == value

    @pytest.mark.parametrize(
        ("roles", "said"),
        [
            ({"end": "at"}, "column 'at' is start and end"),
            ({"old_end": "at"}, "column 'at' is start and old_end"),
            ({"end": "x", "old_end": "x"}, "column 'x' is end and old_end"),
            ({"kind": "x", "replica": "x"}, "column 'x' is kind and replica"),
            ({"replica": "x", "sequence": "x"}, "column 'x' is replica and sequence"),
            ({"key": ("id",), "kind": "at"}, "column 'at' is time and op"),
        ],
    )
    def test_a_column_has_one_role(self, roles, said):
        with pytest.raises(ValueError, match=said) as found:
            Layout("at", **roles)
        assert "leave it out" in found.value.__notes__[0]

    def test_a_replica_may_be_its_channel_and_rows_may_be_in_the_order_of_their_times(self):
        assert Layout("at", replica="x", channel="x").channel == "x"
        assert Layout("at", replica="x", sequence="at").sequence == "at"
        assert Layout("at", kind="op", key=("id",), channel="x", sequence="at").sequence == "at"

    @pytest.mark.parametrize("kind", [pa.int32(), pa.bool_(), pa.timestamp("us"), pa.list_(pa.string())])
    def test_a_kind_is_a_word(self, kind):
        message, note = self.refused(Layout("at", kind="x"), [("at", pa.int64()), ("x", kind)])
        assert message == f"kind is a word, and column 'x' holds {kind}"
        assert "insert, adjust, stable" in note

    @pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
    def test_words_are_text_of_any_sort(self, kind):
        Layout("at", kind="x").check(pa.schema([("at", pa.int64()), ("x", kind)]))

    def test_an_op_is_a_word_or_a_number(self):
        layout = Layout("at", kind="op", key=("id",))
        columns = [("at", pa.int64()), ("id", pa.int64())]
        layout.check(pa.schema([*columns, ("op", pa.int32())]))
        assert self.refused(layout, [*columns, ("op", pa.float64())])[0].startswith("op is a word")


class TestSettings:
    """What a checkpoint holds of a layout: shards compare what was there before with what is there now."""

    SCHEMA = pa.schema([("at", INSTANT), ("who", pa.string()), ("v", pa.int32()), ("w", pa.string())])
    LAYOUT = Layout("at", duration=timedelta(seconds=1), replica="who")

    def changed(self, layout: Layout, schema=SCHEMA, before=LAYOUT) -> set[str]:
        """The settings that another layout would break."""
        now = layout.settings(schema)
        return {name for name, value in before.settings(self.SCHEMA).items() if now.get(name) != value}

    def test_they_say_what_each_column_is(self):
        assert self.LAYOUT.settings(self.SCHEMA) == {
            "start": "'at' (instant)",
            "end": "None",
            "duration": "1 second",
            "replica": "'who'",
            "channel": "None",
            "payload": "None",
            "payload column 'v'": "number",
            "payload column 'w'": "text",
        }

    def test_other_columns_and_other_types_break_them(self):
        schema = self.SCHEMA.append(pa.field("until", INSTANT))
        assert self.changed(replace(self.LAYOUT, duration=timedelta(seconds=2))) == {"duration"}
        assert self.changed(replace(self.LAYOUT, duration=None, end="until"), schema) == {"duration", "end"}
        assert self.changed(replace(self.LAYOUT, start="until"), schema) == {"start"}
        assert self.changed(replace(self.LAYOUT, replica=None)) == {"replica"}
        assert self.changed(replace(self.LAYOUT, sequence="until"), schema) == {"channel"}
        assert self.changed(replace(self.LAYOUT, payload=("v", "w"))) == {"payload"}
        assert self.changed(self.LAYOUT, self.SCHEMA.remove(3)) == {"payload column 'w'"}
        texts = self.SCHEMA.set(2, pa.field("v", pa.string()))
        assert self.changed(self.LAYOUT, texts) == {"payload column 'v'"}
        local = self.SCHEMA.set(0, pa.field("at", LOCAL))
        assert self.changed(self.LAYOUT, local) == {"start"}

    def test_wider_numbers_another_zone_another_bound_and_new_columns_do_not(self):
        wider = self.SCHEMA.set(2, pa.field("v", pa.int64())).set(
            0, pa.field("at", pa.timestamp("us", "UTC"))
        )
        assert not self.changed(self.LAYOUT, wider)
        assert not self.changed(self.LAYOUT, self.SCHEMA.append(pa.field("more", pa.string())))
        assert not self.changed(replace(self.LAYOUT, disorder=timedelta(seconds=5)))
        point = replace(self.LAYOUT, duration=None)
        assert not self.changed(replace(point, duration=timedelta(microseconds=1)), before=point)

    def test_of_a_payload_with_an_identity_only_that_counts(self):
        before = replace(self.LAYOUT, identity=("v",))
        assert not self.changed(before, self.SCHEMA.remove(3), before)
        assert not self.changed(replace(before, payload=("v",)), before=before)
        assert self.changed(before, self.SCHEMA.set(2, pa.field("v", pa.string())), before) == {
            "payload column 'v'"
        }

    def test_changes_of_a_table_have_a_time_and_no_ends(self):
        layout = Layout("at", kind="w", key=("v",))
        assert set(layout.settings(self.SCHEMA)) == {
            "time", "replica", "channel", "payload", "payload column 'v'", "payload column 'who'"
        }  # fmt: skip


class TestClocks:
    @pytest.mark.parametrize("kind", [INSTANT, LOCAL, pa.date32(), pa.int64()])
    def test_ticks_come_back_in_the_type_they_came_in(self, kind):
        ticks = np.array([-5, 0, 20_000, FOREVER, BEGINNING])
        column = times(ticks, np.array([False, False, False, True, True]), kind)
        assert column.type == kind
        rows = pa.RecordBatch.from_arrays([column], names=["at"])
        found = read_rows(Layout("at"), rows, HERE)
        assert found.batch.start.tolist() == [-5, 0, 20_000]
        assert len(found.refused) == 2

    def test_each_clock_has_a_name(self):
        kinds = (INSTANT, LOCAL, pa.date64(), pa.int16())
        assert [clock_of(kind, "at").word for kind in kinds] == ["instant", "local time", "day", "number"]


def test_one_name_or_several_are_names():
    assert names_of(None) is None
    assert names_of("a b") == ("a b",)
    assert names_of(["a", "b"]) == ("a", "b")
    assert names_of(()) == ()


def test_a_layout_that_was_put_in_ticks_still_reads_and_tells_its_duration():
    rows = pa.record_batch({"v": [1], "at": pa.array([60_000_000], INSTANT)})
    layout = Layout("at", duration=timedelta(minutes=1))
    layout.check(rows.schema)
    planned = replace(layout, duration=layout.ticks(layout.duration, rows.schema, "duration"))
    assert planned.settings(rows.schema) == layout.settings(rows.schema)
    assert read_rows(planned, rows, Place("rows")).batch.end.tolist() == [120_000_000]
