"""The least of many times is what a scan of them finds."""

from random import Random

import pytest
from quick import cases

from anabranch.model.time import FOREVER
from anabranch.progress.least import Least


@pytest.mark.parametrize("seed", range(cases(40)))
def test_it_is_the_least_after_every_change(seed):
    random, least, times = Random(seed), Least(), dict[int, int]()
    for _ in range(200):
        what = random.random()
        if what < 0.3 or not times:
            time = random.randint(-50, 50)
            place = least.add(time)
            assert place not in times
            times[place] = time
        elif what < 0.4:
            place = random.choice(list(times))
            least.remove(place)
            del times[place]
        else:
            place = random.choice(list(times))
            times[place] += random.randint(0, 20)
            least.set(place, times[place])
        assert least.time == min(times.values(), default=FOREVER)
        assert len(least) == len(times)
        assert {one: least.get(one) for one in times} == times
