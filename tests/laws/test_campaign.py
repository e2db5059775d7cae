"""Six thousand random merges, each judged batch by batch; `./run campaign` runs millions."""

import pytest
from laws.campaign import Trial, failures, fault_of, is_valid, report, shrunk

from anabranch import Insert, Merger, read
from anabranch.kernels.merge import merger as merging

CHUNK = 1_000


@pytest.mark.parametrize("number", range(6))
def test_a_merge_gives_what_the_oracle_gives(number, tmp_path):
    found = failures(range(number * CHUNK, (number + 1) * CHUNK))
    assert not found, report(*found[0], tmp_path)


def test_a_failure_is_made_small_and_can_be_replayed(tmp_path, monkeypatch):
    """The campaign's own test: a merge that loses an element is caught, and what is written shows it."""
    push = Merger.push

    def loses_inserts_at_one(self, name, elements):
        return push(self, name, [e for e in elements if not (isinstance(e, Insert) and e.start == 1)])

    monkeypatch.setattr(merging.Merger, "push", loses_inserts_at_one)
    seed, wrong = failures(range(200))[0]
    trial = shrunk(Trial.drawn(seed))
    assert len(trial.scenario.recording) <= 3
    assert is_valid(trial.scenario.recording)
    shown = report(seed, wrong, tmp_path)
    assert f"seed {seed}" in shown
    (batch,) = read(str(tmp_path / f"merge-{seed}.jsonl"))
    assert list(batch.tagged()) == trial.scenario.recording


def test_a_trial_is_drawn_from_its_seed_alone():
    assert Trial.drawn(17) == Trial.drawn(17)
    assert fault_of(Trial.drawn(17)) is None
