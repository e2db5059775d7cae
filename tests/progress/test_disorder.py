"""A bound on disorder promises the latest start less the bound, where that is a time."""

import numpy as np
import pytest

from anabranch.model.time import BEGINNING, FOREVER
from anabranch.progress.models.disorder import Disorder
from anabranch.progress.models.stated import Stated

CHANNELS = np.array([4, 2, 9])


@pytest.mark.parametrize(
    ("latest", "expected"),
    [
        ([7, 9, 8], [(4, 4), (2, 6), (9, 5)]),
        ([BEGINNING, 9, BEGINNING], [(2, 6)]),
        ([BEGINNING + 2, BEGINNING + 3, FOREVER - 1], [(2, BEGINNING), (9, FOREVER - 4)]),
    ],
)
def test_it_is_the_latest_start_less_the_bound(latest, expected):
    promises = Disorder(3).observe(CHANNELS, np.array(latest))
    assert list(zip(promises.channels.tolist(), promises.times.tolist(), strict=True)) == expected


def test_what_is_stated_in_the_data_promises_nothing():
    assert len(Stated().observe(CHANNELS, np.array([7, 9, 8])).channels) == 0
