"""Every model of progress promises what it means; a model that promises more, less or forgets is noticed."""

import pkgutil

import numpy as np
import pytest
from laws.progress_models import MODELS, check
from quick import cases

from anabranch.progress import models
from anabranch.progress.models.disorder import Disorder
from anabranch.progress.models.model import Promises


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("seed", range(cases(150)))
def test_a_gate_promises_what_its_model_means(seed, model):
    check(seed, (model,))


def more(channels, latest):
    some = latest > -50
    return Promises(channels[some], latest[some] + 1)


def less(channels, latest):
    return Promises(channels[:-1], np.maximum(latest[:-1], -50))


def _check_all(seeds, rows):
    for seed in seeds:
        check(seed, rows)


@pytest.mark.parametrize("wrong", [more, less])
def test_a_model_that_promises_something_else_is_noticed(wrong, monkeypatch):
    monkeypatch.setattr(Disorder, "observe", lambda self, channels, latest: wrong(channels, latest))
    with pytest.raises(AssertionError):
        _check_all(range(100), MODELS[1:])


def test_a_row_of_models_names_all_that_there_are():
    there = {one.name for one in pkgutil.iter_modules(models.__path__)} - {"model"}
    assert {model.name for model in MODELS} == there
