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

The same loops run as Python where a process that reads a few thousand rows asks for that before it imports
them (`Loops`): importing Numba and loading what it has compiled takes longer than they do, and compiling R4
for the first time twelve seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(slots=True)
class Loops:
    """How the loops are run that are imported from now on."""

    as_python: bool = False
    """They are what their text says, over NumPy's integers, which must wrap around without a warning."""


LOOPS = Loops()


def _njit(function: Function, **options: Any) -> Function:
    if LOOPS.as_python:
        return function
    from numba import njit

    return njit(_nrt=False, **options)(function)


def compiled(function: Function) -> Function:
    """A loop that is compiled once per machine and runs without the GIL."""
    return _njit(function, cache=True, nogil=True)


def inner(function: Function) -> Function:
    """A loop that only compiled loops call; the entrance for Python, which it lacks, is much to compile."""
    return _njit(function, cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: Function) -> Function:
    """A few operations that are compiled into each loop that uses them."""
    return _njit(function, inline="always")


def instruction(definition: Callable[..., Any]) -> Callable[[Function], Function]:
    """A function of which compiled loops have one instruction of the machine, as a definition builds it.

    The definition has the name and the arguments of the function, after the context of types of Numba's.
    """

    def defined(function: Function) -> Function:
        if LOOPS.as_python:
            return function
        from numba.extending import intrinsic

        return intrinsic(definition)

    return defined
