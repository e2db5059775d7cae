"""How loops over arrays are compiled.

Compiled functions take arrays and NamedTuples of arrays, and allocate nothing. So Numba need not count
references to what they are given (``_nrt=False``): with counting, a call costs two atomic operations per
array, which made the merge of R3 several times slower (``./run bench merge_r3``).

Numba looks only at a function's own file to see whether what it has cached is stale. After a change to a
compiled function that others call, delete the ``*.nbi`` and ``*.nbc`` files below ``src``.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A loop that is compiled once per machine and runs without the GIL."""
    return njit(cache=True, nogil=True, _nrt=False)(function)


def inner(function: Function) -> Function:
    """A loop that only compiled loops call: without the entrance for Python it compiles in half the time."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(cache=True, nogil=True, _nrt=False, **options)(function)


def inlined(function: Function) -> Function:
    """A few operations that are compiled into each loop that uses them."""
    return njit(inline="always", _nrt=False)(function)
