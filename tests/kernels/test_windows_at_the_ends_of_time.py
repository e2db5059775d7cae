"""Windows of rows near the first and the last tick are what the oracle says, and nothing of them stays."""

from collections import Counter
from random import Random

import pytest
from quick import cases

import anabranch as ab
from anabranch import Adjust, Insert, Stable, col
from anabranch.kernels.aggregate.window_times import WindowTimes
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.relation import World
from anabranch.oracle.window import frontier, window, windows_of


def drawn(random):
    """A valid stream of rows near both ends of time, and of some near 0."""
    stable, elements, alive = BEGINNING, [], []
    for base in (BEGINNING, 0, FOREVER - 30):
        for _ in range(random.randint(0, 8)):
            start = max(stable, base + random.choice([0, 0, random.randint(0, 12), random.randint(0, 29)]))
            if alive and random.random() < 0.2:
                gone = alive.pop(random.randrange(len(alive)))
                elements.append(Adjust(gone.payload, gone.start, gone.end, gone.start))
            one = Insert({"k": random.choice("ab"), "v": random.randint(0, 3)}, start, start + 1)
            elements.append(one)
            alive.append(one)
            if random.random() < 0.2:
                stable = start + random.randint(0, 2)
                elements.append(Stable(stable))
                alive = [one for one in alive if one.start >= stable]
    return [*elements, Stable(FOREVER)]


def payload_of(group, rows, start, end):
    values = [dict(payload)["v"] for payload, _, _ in rows]
    return (("count", len(values)), ("k", group), ("v", sum(values)))


def rows_of(world):
    """The events of a world with plain payloads."""
    return [(tuple(sorted((n, v[1]) for n, v in key)), start, end) for key, start, end in world.rows]


def check(seed):
    random = Random(seed)
    every = random.choice([1, 2, 4, 5, 7, 2**40, 2**61, 2**62 - 1])
    size = min(random.choice([every, 3 * every, random.randint(1, 20)]), FOREVER)
    if every > 7:
        size = random.choice([every, max(every // 2, 1)])
    slide, early = (random.random() < 0.4 for _ in range(2))
    source = ab.source("s", {"k": "string", "v": "int64"})
    windows = source.window(size, every, lifetime="slide" if slide else "window").group_by("k")
    stream = windows.agg(ab.count(), v=col("v").sum(), early=early)
    job, received, emitted, outside = stream.open(), World(), World(), 0
    elements = drawn(random)
    while elements:
        cut = random.choice([1, 4])
        piece, elements = elements[:cut], elements[cut:]
        for element in piece:
            assert received.apply(element) is None
            inserted = isinstance(element, Insert)
            outside += inserted and not windows_of(element.start, size, every)
        for element in job.push("s", piece):
            assert emitted.apply(element) is None
        meant = window(
            rows_of(received),
            lambda payload: dict(payload)["k"],
            payload_of,
            size=size,
            every=every,
            slide=slide,
            until=FOREVER if early else received.stable,
        )
        assert Counter(rows_of(emitted)) == Counter(meant), f"{size} every {every}, early {early}"
        assert emitted.stable == frontier(received.stable, size, every, slide=slide)
        if random.random() < 0.2:
            job = stream.open(job.dump())
    (report,) = [one for name, one in job.status().operators.items() if "window" in name]
    assert report.live == 0
    assert report.counts["in_no_window"] == outside
    return outside


def check_all(seeds):
    """How many events were in no window."""
    return sum(check(seed) for seed in seeds)


@pytest.mark.parametrize("block", range(cases(3)))
def test_windows_at_both_ends_of_time_are_what_the_oracle_says_and_nothing_stays(block):
    assert check_all(range(60 * block, 60 * block + 60)) > 0


def test_rows_that_are_taken_into_no_window_s_pane_are_noticed(monkeypatch):
    monkeypatch.setattr(WindowTimes, "inside", lambda self, start: start == start)
    with pytest.raises(AssertionError):
        check_all(range(60))


def test_a_row_at_the_beginning_of_time_silences_no_window():
    job = ab.source("s", {"v": "int64"}).window(4).agg(ab.count()).open()
    rows = [Insert({"v": 3}, BEGINNING, BEGINNING + 1), Insert({"v": 4}, 1, 2)]
    assert job.push("s", [*rows, Stable(20)]) == [Insert({"count": 1}, 0, 4), Stable(20)]
    assert "1 in no window" in str(job.status())


def test_events_between_windows_that_leave_a_gap_are_counted():
    job = ab.source("s", {"v": "int64"}).window(2, 5).agg(ab.count()).open()
    rows = [Insert({"v": 1}, start, start + 1) for start in (0, 2, 3, 4, 6)]
    assert job.push("s", [*rows, Stable(10)])[:2] == [Insert({"count": 1}, 0, 2), Insert({"count": 1}, 5, 7)]
    assert "3 in no window" in str(job.status())
