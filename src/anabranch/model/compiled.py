"""How loops over arrays are compiled.

Compiled functions take arrays and NamedTuples of arrays, and allocate nothing. So Numba need not count
references to what they are given (``_nrt=False``): with counting, a call costs two atomic operations per
array, which made the merge of R3 several times slower (``./run bench merge cases``).

Every type that an argument may have is compiled anew, a literal and an int32 included. So what is handed on
is int64 from the beginning (``np.int64(0)``): that and `inner` took the first use of R4 from 27 to 16 s on
one machine (``./run bench merge cold``).

Numba looks only at a function's own file to see whether what it has cached is stale. After a change to a
compiled function that others call, a run of the tests deletes the caches of those (``tests/stale_loops.py``);
without a run of the tests, delete the ``*.nbi`` and ``*.nbc`` files below ``src``.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A loop that is compiled once per machine and runs without the GIL."""
    return njit(cache=True, nogil=True, _nrt=False)(function)


def inner(function: Function) -> Function:
    """A loop that only compiled loops call; the entrance for Python, which it lacks, is much to compile."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(cache=True, nogil=True, _nrt=False, **options)(function)


def inlined(function: Function) -> Function:
    """A few operations that are compiled into each loop that uses them."""
    return njit(inline="always", _nrt=False)(function)
