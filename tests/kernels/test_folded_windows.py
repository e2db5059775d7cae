"""Sessions and windows of rows are what the oracle says at every stable, wherever the state is saved."""

from collections import Counter
from functools import cache, partial
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from kernels.windows import (
    CALLED,
    LIMITS,
    SCHEMA,
    drawn_elements,
    drawn_payload,
    elements_at_both_ends,
)
from quick import cases

import anabranch as ab
from anabranch import Adjust, Insert, PlanError, Stable, col
from anabranch.kernels import rows as rows_kernel
from anabranch.kernels import session as session_kernel
from anabranch.kernels.rows import Rows, RowWindows
from anabranch.kernels.session import Session, Sessions
from anabranch.kernels.store.entries import Entries
from anabranch.kernels.store.waiting import Waiting
from anabranch.model.identity import identities
from anabranch.model.time import FOREVER
from anabranch.oracle import rows as rows_oracle
from anabranch.oracle import session as session_oracle
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World


@cache
def identity(payload):
    return tuple(identities(pa.RecordBatch.from_pylist([dict(payload)], schema=columns()))[0].tolist())


def columns():
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in SCHEMA.items()])


GROUPS = (("k",), ("k",), (), ("text",), ("k", "text"), ("x",), ("u", "k"))


def payload_of(by, called, group, inside, start, end):
    """What is said of a window, or None where a sum does not fit."""
    said = dict(zip(by, group, strict=True)) | {"since": start, "until": None if end == FOREVER else end}
    for name, (_, means, column) in ((name, CALLED[name]) for name in called):
        values = [(begin, row[column]) for row, begin, _ in inside if row.get(column) is not None]
        said[name] = means(values)
        if name in LIMITS and said[name] is not None:
            low, high = LIMITS[name]
            if not low <= said[name] < high:
                return None
    return payload_key({name: value for name, value in said.items() if value is not None})


class Drawn:
    """Windows of a seed over a stream of a seed."""

    def __init__(self, seed):
        random = Random(seed)
        self.random, removals = random, random.random() < 0.7
        self.by = random.choice(GROUPS)
        if random.random() < 0.4:
            self.elements = elements_at_both_ends(random, removals=removals)
        else:
            self.elements = drawn_elements(random, 60, removals=removals)
        kept = random.choice(["insert only", ab.Fact.KEPT])
        given = ab.source("s", SCHEMA, properties=None if removals else kept)
        self.by_gap = random.random() < 0.5
        if self.by_gap:
            self.gap = random.choice([1, 2, 5, 30, 2**61, 2**62 - 1])
            windows = given.session(self.gap, start="since", end="until")
        else:
            self.size, self.every = random.randint(1, 6), random.randint(1, 6)
            windows = given.rows(self.size, self.every, start="since", end="until")
        of_others = [name for name, (_, _, column) in CALLED.items() if column not in self.by]
        self.called = random.sample(of_others, 4)
        made = {name: CALLED[name][0] for name in self.called}
        self.stream = (windows.group_by(*self.by) if self.by else windows).agg(**made)

    def group(self, payload):
        return tuple(payload.get(name) for name in self.by)

    def meant(self, rows, until):
        made = partial(payload_of, self.by, self.called)
        if self.by_gap:
            return session_oracle.session(rows, self.group, made, gap=self.gap, until=until)
        return rows_oracle.rows(rows, self.group, made, until=until, **self.numbers)

    def frontier(self, rows, until):
        if self.by_gap:
            return session_oracle.frontier(rows, self.group, self.gap, until)
        return rows_oracle.frontier(rows, self.group, until, **self.numbers)

    @property
    def numbers(self):
        return {"size": self.size, "every": self.every, "order": lambda row: identity(tuple(row[0].items()))}


def kernel_of(job):
    """The kernel of the one session, or window of rows."""
    (kernel,) = [
        stage.kernel
        for stage in job.passes.flow.stages
        if isinstance(getattr(stage, "kernel", None), (Rows, Session))
    ]
    return kernel


def there(elements):
    """The events that are there, as rows, whatever their ends."""
    found = []
    for one in elements:
        match one:
            case Insert(payload, start, end):
                found.append((payload, start, end))
            case Adjust(payload, start, old_end, _):
                found.remove((payload, start, old_end))
    return found


def judge(seed):
    """Push the stream of a seed piece by piece, and compare after each."""
    drawn = Drawn(seed)
    random, left, pushed = drawn.random, list(drawn.elements), []
    job, out, stable, emitted = drawn.stream.open(on_invalid=ab.Drop()), World(), None, 0
    while left:
        count = random.choice([1, 3, 20])
        piece, left = left[:count], left[count:]
        pushed += piece
        for one in job.push("s", piece):
            assert out.apply(one) is None, f"{one} is behind what was promised"
            emitted += isinstance(one, Insert)
        stable = max((one.time for one in pushed if isinstance(one, Stable)), default=None)
        if stable is not None:
            rows = there(pushed)
            meant = Counter(drawn.meant(rows, stable))
            assert Counter(out.rows) == meant
            assert out.stable == drawn.frontier(rows, stable)
        if random.random() < 0.2:
            job = drawn.stream.open(job.dump(), on_invalid=ab.Drop())
    assert out.stable == FOREVER
    status = job.status()
    assert status.live == 0
    kernel = kernel_of(job)
    assert kernel.report().counts["said"] == emitted
    used = kernel.spans if drawn.by_gap else kernel.windows
    assert kernel.groups.numbers.used == used.used == len(kernel.by_start) == 0


def judge_all(seeds):
    for seed in seeds:
        try:
            judge(seed)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("block", range(cases(24)))
def test_windows_are_what_the_oracle_says(block):
    judge_all(range(block * 4, block * 4 + 4))


def _at_the_gap_too(spans, session, slots, gap, passed):
    return _pass_pieces(spans, session, slots, gap + 1, passed)


def _never_followed(spans, slots, gap, found):
    return found


def _promises_all(kernel, name, time):
    result = _advance(kernel, name, time)
    kernel.frontier = time
    return result


def _promises_past_pieces(kernel, name, time):
    kernel.least = FOREVER
    return _advance(kernel, name, time)


def _forgets_counts(cls, *given):
    kernel = _load_rows(*given)
    kernel.count[:] = 0
    return kernel


def _forgets_ends(cls, *given):
    kernel = _load_session(*given)
    kernel.by_end.clear()
    return kernel


def _forgets_pieces(cls, *given):
    kernel = _load_session(*given)
    kernel.ahead.runs = []
    return kernel


def _as_it_came(self, start, payload, *, sign, words, end=None):
    return _wait(self, start, payload, sign=sign, words=words[::-1].copy())


def _cancels_nothing(self, start, payload, *, sign, words, end=None):
    keep = sign > 0
    return _wait(self, start[keep], payload.filter(pa.array(keep)), words=words[keep])


def _always_like_new(numbers, count, table, every, references, like_new):
    return _groups_like_new(numbers, count, table, 1, references, like_new)


def _after_the_first_start(self, *given):
    least = _least(self, *given)
    return None if least is None else least + 1


_pass_pieces, _advance = session_kernel.pass_pieces, Session.advance
_load_session, _load_rows = Session.load, Rows.load
_least, _wait, _groups_like_new = Entries.least, Waiting.add, rows_kernel.groups_like_new


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (session_kernel, "pass_pieces", _at_the_gap_too),
        (session_kernel, "followed_sessions", _never_followed),
        (Sessions, "ends", lambda self, last: last + 1),
        (RowWindows, "ends", lambda self, last: last),
        (rows_kernel, "groups_like_new", _always_like_new),
        (Session, "advance", _promises_all),
        (Session, "advance", _promises_past_pieces),
        (Rows, "load", classmethod(_forgets_counts)),
        (Session, "load", classmethod(_forgets_ends)),
        (Session, "load", classmethod(_forgets_pieces)),
        (Waiting, "add", _as_it_came),
        (Waiting, "add", _cancels_nothing),
        (Entries, "least", _after_the_first_start),
    ],
    ids=[
        "a gap joins",
        "sessions end before a piece that goes on",
        "sessions end with their last row",
        "windows end before their last row",
        "groups forgotten between windows",
        "frontier not held",
        "frontier not held by pieces",
        "counts forgotten",
        "ends forgotten",
        "pieces forgotten",
        "order of no identity",
        "removals cancel nothing",
        "held after the first start",
    ],
)
def test_a_wrong_variant_is_noticed(monkeypatch, owner, name, wrong):
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises((AssertionError, ValueError)):
        judge_all(range(80))


@pytest.mark.parametrize("seed", range(cases(8)))
def test_sessions_are_what_duckdb_says(seed):
    random = Random(seed)
    base, gap = random.choice([0, -50, 2**53 + 1, 2**61]), random.randint(1, 9)
    events = [
        Insert(drawn_payload(random) | {"i": random.randint(-9, 9)}, base + random.randint(0, 150), FOREVER)
        for _ in range(120)
    ]
    stream = ab.source("s", SCHEMA, properties="insert only")
    made = {"n": ab.count(), "s": col("i").sum(), "t": col("text").min(), "kinds": col("text").n_unique()}
    job = stream.session(gap, start="since", end="until").group_by("k").agg(**made).open()
    said = [one.payload for one in job.push("s", [*events, Stable(FOREVER)]) if isinstance(one, Insert)]
    given = pa.Table.from_pylist(
        [{**one.payload, "at": one.start} for one in events], pa.schema([*columns(), ("at", pa.int64())])
    )
    found = duckdb.sql(f"""
        SELECT k, count(*) AS n, sum(i)::BIGINT AS s, min(text) AS t, count(DISTINCT text) AS kinds,
            min("at") AS since, max("at") + {gap} AS until
        FROM (
            SELECT *, sum(new) OVER (PARTITION BY k ORDER BY "at") AS nth FROM (
                SELECT *, coalesce("at" - lag("at") OVER (PARTITION BY k ORDER BY "at") >= {gap}, true)::INT
                    AS new
                FROM given
            )
        ) GROUP BY k, nth
    """).to_arrow_table()
    assert given.num_rows == len(events)
    names = found.schema.names
    assert Counter(tuple(one.get(name) for name in names) for one in said) == Counter(
        tuple(one[name] for name in names) for one in found.to_pylist()
    )


def test_an_event_that_is_removed_while_it_waits_was_never_there():
    job = ab.source("s", {"k": "int64"}).session(5).agg(ab.count()).open()
    job.push("s", [Insert({"k": 1}, 3, 9), Insert({"k": 2}, 6, 9), Adjust({"k": 2}, 6, 9, 20)])
    assert job.push("s", [Adjust({"k": 2}, 6, 20, 6), Stable(7)]) == [Stable(3)]
    assert job.push("s", [Stable(8)]) == [Insert({"count": 1}, 3, 8), Stable(8)]


@pytest.mark.parametrize("gap", [1, 5, 2**61, 2**62 - 1])
@pytest.mark.parametrize("facts", [None, "insert only"], ids=["removals", "insert only"])
def test_all_is_promised_at_the_end_of_time_wherever_the_stable_was(gap, facts):
    job = ab.source("s", {"k": "int64"}, properties=facts).session(gap).agg(ab.count()).open()
    first = FOREVER - 2
    assert job.push("s", [Insert({"k": 1}, first, FOREVER), Stable(first)])[-1] == Stable(first)
    assert job.push("s", [Stable(FOREVER - 1)])[-1:] != [Stable(FOREVER)]
    assert job.push("s", [Stable(FOREVER)])[-1] == Stable(FOREVER)


@pytest.mark.parametrize("facts", [None, "insert only"], ids=["removals", "insert only"])
@pytest.mark.parametrize("windows", ["session", "rows"])
def test_the_promise_is_held_at_the_first_start_of_all_however_many_begin_later(windows, facts):
    given = getattr(ab.source("s", {"k": "int64"}, properties=facts), windows)(40)
    job = given.group_by("k").agg(ab.count()).open()
    goes_on = []
    for begun, first in ((20, 39), (6, 77), (1, 115)):
        keys = [100 * first + n for n in range(begun)]
        rows = [Insert({"k": k}, first - 1, first) for k in goes_on]
        rows += [Insert({"k": k}, first, first + 1) for k in keys]
        goes_on += keys
        assert job.push("s", [*rows, Stable(first + 6)]) == ([] if first > 39 else [Stable(39)])
    assert len(kernel_of(job).by_start.runs.runs) == 3


def held_bytes(state):
    """Bytes of all arrays that are attributes of a state, or of what it holds."""
    found, left, seen = {}, [state], set()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            owner = one if one.base is None else one.base
            found[id(owner)] = owner.nbytes if isinstance(owner, np.ndarray) else 0
        elif isinstance(one, tuple | list):
            left += one
        elif isinstance(one, dict):
            left += one.values()
        elif type(one).__module__.startswith("anabranch.kernels"):
            names = getattr(type(one), "__slots__", None) or vars(one)
            left += [getattr(one, name) for name in names if hasattr(one, name)]
    return sum(found.values())


@pytest.mark.parametrize("facts", [None, "insert only"], ids=["removals", "insert only"])
@pytest.mark.parametrize("windows", ["session", "rows"])
@pytest.mark.parametrize("stable", [0, 150], ids=["rows wait", "windows are open"])
def test_all_that_is_held_is_counted_in_bytes(windows, facts, stable):
    given = getattr(ab.source("s", {"k": "int64", "n": "int64"}, properties=facts), windows)(100)
    job = given.group_by("k").agg(ab.count(), col("n").sum()).open()
    rows = [Insert({"k": n % 300, "n": n}, n % 200, n % 200 + 1) for n in range(3_000)]
    job.push("s", [*rows, Stable(stable)])
    kernel = kernel_of(job)
    assert abs(held_bytes(kernel) - kernel.report().nbytes) <= 256


@pytest.mark.parametrize("windows", ["session", "rows"])
def test_what_was_saved_without_rows_has_no_groups(windows):
    plan = getattr(ab.source("s", {"k": "int64"}), windows)(3).agg(ab.count())
    job = plan.open(plan.open().dump())
    assert kernel_of(job).groups.numbers.used == 0


def test_the_order_of_arrival_is_not_seen_in_windows_of_rows():
    random = Random(0)
    rows = [Insert({"k": random.randint(0, 9)}, random.randint(0, 5), 10) for _ in range(40)]
    said = []
    for _ in range(5):
        random.shuffle(rows)
        job = ab.source("s", {"k": "int64"}).rows(7, 3).agg(col("k").sum(), n=ab.count()).open()
        said.append(job.push("s", [*rows, Stable(FOREVER)]))
    assert all(one == said[0] for one in said)


def test_sums_that_do_not_fit_are_refused_and_the_other_groups_said():
    job = ab.source("s", {"k": "int64", "n": "int64"}).rows(2).group_by("k").agg(col("n").sum())
    job = job.open(on_invalid=ab.Drop())
    rows = [Insert({"k": k, "n": 2**62}, t, t + 1) for t, k in enumerate([1, 2, 1])]
    (one, _) = job.push("s", [*rows, Stable(FOREVER)])
    assert one == Insert({"k": 2, "n": 2**62}, 1, 2)


def test_groups_come_and_go():
    job = ab.source("s", {"k": "int64"}).session(3).group_by("k").agg(ab.count()).open()
    for step in range(100):
        job.push("s", [Insert({"k": 10 * step + n}, step, step + 1) for n in range(10)])
        job.push("s", [Stable(step)])
    assert job.status().operators["session"].live <= 50
    kernel = kernel_of(job)
    assert kernel.groups.numbers.used <= 50
    assert kernel.spans.capacity <= 128


def test_one_long_session_keeps_nothing_of_short_ones_that_are_over():
    job = ab.source("s", {"k": "int64"}).session(3).group_by("k").agg(ab.count()).open()
    for step in range(150):
        short = [Insert({"k": 20 * step + n + 1}, step, step + 1) for n in range(20)]
        job.push("s", [Insert({"k": 0}, step, step + 1), *short, Stable(step)])
    kernel = kernel_of(job)
    assert kernel.frontier == 0
    assert len(kernel.by_start) < 1200


def test_what_cannot_be_a_session_or_a_window_of_rows_is_refused():
    stream = ab.source("s", {"k": "string", "n": "int64"})
    with pytest.raises(PlanError, match="the gap of sessions is a length of time above 0"):
        stream.session(0).agg(ab.count())
    with pytest.raises(PlanError, match=r"a number of rows from 1 on and below 2\*\*62, not 0"):
        stream.rows(0).agg(ab.count())
    with pytest.raises(PlanError, match=r"a number of rows from 1 on and below 2\*\*62, not '1 minute'"):
        stream.rows(3, "1 minute").agg(ab.count())
    for windows in (stream.session(3), stream.rows(3)):
        with pytest.raises(PlanError, match="none is said early"):
            windows.agg(ab.count(), early=True)
    never = ab.source("s", {"k": "string"}, properties="insert only")
    assert "session by gaps of 3 by k: count()" in never.session(3).group_by("k").agg(ab.count()).explain()
    assert "rows 3 every 2: count()" in never.rows(3, 2).agg(ab.count()).explain()
