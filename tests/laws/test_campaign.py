"""Six thousand random merges and plans, each judged batch by batch; `./run campaign` runs millions."""

from dataclasses import replace

import numpy as np
import pytest
from laws.campaign import breaks_promises, failures, is_flood, is_plan, report
from laws.trial import Trial, fault_of, is_valid, shrunk
from quick import cases

from anabranch import Insert, Merger, read
from anabranch.engines.embedded import merger as merging
from anabranch.kernels.merge import ordered
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.trail import Trail
from anabranch.model.batch import concat
from anabranch.model.output_policy import Lead
from anabranch.oracle.indexed_merge import IndexedMerge

CHUNK = 1_000


@pytest.mark.parametrize("number", range(cases(6)))
def test_a_merge_gives_what_the_oracle_gives(number, tmp_path):
    found = failures(range(number * CHUNK, (number + 1) * CHUNK))
    assert not found, report(*found[0], tmp_path)


def test_a_failure_is_made_small_and_can_be_replayed(tmp_path, monkeypatch):
    """The campaign's own test: a merge that loses an element is caught, and what is written shows it."""
    push = Merger.push

    def loses_inserts_at_one(self, name, elements):
        return push(self, name, [e for e in elements if not (isinstance(e, Insert) and e.start == 1)])

    monkeypatch.setattr(merging.Merger, "push", loses_inserts_at_one)
    seed, wrong = next(found for found in failures(range(200)) if drawn_as_trial(found[0]))
    trial = shrunk(Trial.drawn(seed))
    assert len(trial.scenario.recording) <= 3
    assert is_valid(trial.scenario.recording)
    shown = report(seed, wrong, tmp_path)
    assert f"seed {seed}" in shown
    (batch,) = read(str(tmp_path / f"merge-{seed}.jsonl"))
    assert list(batch.tagged()) == trial.scenario.recording
    seed, wrong = next(found for found in failures(range(200)) if is_flood(found[0]))
    shown = report(seed, wrong, tmp_path)
    _, _, smallest = shown.partition("smallest flood")
    assert 1 <= smallest.count("Insert(") <= 3


def drawn_as_trial(seed: int) -> bool:
    return not (breaks_promises(seed) or is_flood(seed) or is_plan(seed))


def caught(seeds: range) -> tuple[int, str]:
    for seed in seeds:
        if found := failures(range(seed, seed + 1)):
            return found[0]
    raise AssertionError("the campaign does not see it")


def test_a_merge_that_forgets_repeats_when_it_moves_is_caught(tmp_path, monkeypatch):
    events = Trail.events

    def once(self, i, stable):
        found = events(self, i, stable)
        rows = {(str(element), element.start): n for n, element in enumerate(found.elements())}
        return found.take(np.array(sorted(rows.values()), np.int64))

    monkeypatch.setattr(Trail, "events", once)
    seed, wrong = caught(range(7, 8_000, 8))
    shown = report(seed, wrong, tmp_path)
    assert "generalising" in shown
    assert "--on-broken generalise" in shown
    (batch,) = read(str(tmp_path / f"merge-{seed}.jsonl"))
    assert len(batch) < 12


def test_a_merge_that_loses_what_it_owes_is_caught(monkeypatch):
    given = merging.Merger._given

    def forgetful(self, name, result, invalid=()):
        try:
            return given(self, name, result, invalid)
        except OSError:
            self.owed = None
            raise

    monkeypatch.setattr(merging.Merger, "_given", forgetful)
    assert caught(range(1_000))


def test_a_merge_that_forgets_what_tells_queued_events_apart_is_caught(monkeypatch):
    monkeypatch.setattr(ordered, "concat", lambda parts: replace(concat(parts)))
    assert caught(range(4_000))


@pytest.mark.parametrize("by", [Lead.LATEST, Lead.UNFROZEN], ids=str)
def test_a_merge_that_follows_another_leader_is_caught(by, monkeypatch):
    how_far = IndexedMerge._how_far
    other = {by: Lead.STABLE}
    monkeypatch.setattr(
        IndexedMerge, "_how_far", lambda self, name, by: how_far(self, name, other.get(by, by))
    )
    assert caught(range(4_000))


@pytest.mark.parametrize("column", ["latest", "unfrozen"])
def test_a_merge_that_forgets_who_is_ahead_when_it_is_loaded_is_caught(column, monkeypatch):
    restored = Sides.restored

    def forgetful(columns):
        sides = restored(columns)
        getattr(sides, column)[:] = getattr(Sides.of_capacity(sides.capacity), column)
        return sides

    monkeypatch.setattr(Sides, "restored", forgetful)
    assert caught(range(8_000))


def test_a_trial_is_drawn_from_its_seed_alone():
    assert Trial.drawn(17) == Trial.drawn(17)
    assert fault_of(Trial.drawn(17)) is None
