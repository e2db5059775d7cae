"""Laws whose loops are compiled with checks of every index, in a process of its own.

    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(mktemp -d) PYTHONPATH=tests .venv/bin/python -m laws.checked_bounds

Compiled loops write wherever an index says. With these settings one that is beyond its array is an
IndexError; one below zero still counts from the end, as in Python. What is compiled without checks must not
be found in the cache, so that is a folder of its own.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from laws import flood

from anabranch.model.application import check_times

TESTS = Path(__file__).parent.parent
TALKATIVE = (1117, 1415)
"""Large floods in which stables say more rows than there are events."""
LAWS = {
    "kernels/test_merge_indexed.py": "nobody_showed",
    "kernels/test_cleanse.py": "many_events_collide or goes_on_from or not_valid_changes or never_settles",
    "kernels/test_changes.py": "oracle_reads or more_than_a_batch or leave_more or leaves_room or dumped",
    "kernels/test_ranks_and_own_aggregates.py": "where_nothing_is_removed",
    "kernels/store/test_calendar.py": "sorted_list",
    "kernels/test_one_value.py": "that_of_the_oracle",
    "kernels/test_counted.py": "counter_for_each_slot",
    "kernels/test_folded_windows.py": "windows_are_what_the_oracle or come_and_go or sessions_are_what",
    "kernels/store/test_rows_that_wait.py": "come_out_as",
    "kernels/store/test_leaves.py": "points_of_a_sorted_list or gives_back_all",
    "kernels/store/test_lifetimes.py": "events_of_a_bag or no_node_is_left",
}


def bounds_are_checked() -> bool:
    """A row is written to an array that has none."""
    one = np.zeros(1, np.int64)
    try:
        check_times(np.zeros(1, np.int8), one, one, one, 0, np.empty(0, np.int8))
    except IndexError:
        return True
    return False


def main() -> int:
    """Play the laws; 0 if all hold."""
    if not bounds_are_checked():
        print("indices are not checked: NUMBA_BOUNDSCHECK is not 1, or the cache has loops without checks")
        return 2
    found = flood.failures(range(150)) + flood.failures([*range(10), *TALKATIVE], large=True)
    for seed, wrong in found:
        print(f"flood {seed}: {wrong}")
    files = [str(TESTS / name) for name in LAWS]
    words = " or ".join(LAWS.values())
    return int(bool(found)) or int(pytest.main([*files, "-k", words, "-q", "-n", "0"]))


if __name__ == "__main__":
    sys.exit(main())
