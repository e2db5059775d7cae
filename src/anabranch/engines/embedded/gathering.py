"""Rows and elements that an iterable gives one by one, as lists: a push of many costs little more than of
one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from anabranch.model.elements import Adjust, Insert, Stable, Tagged

MOST = 4_096
"""Rows or elements of a list, at most."""


def sort_of(item: Any) -> str:
    """What an item is by itself: a row, an element, or one of a recording of several inputs; else nothing."""
    if isinstance(item, dict | Mapping):
        return "row"
    if isinstance(item, Tagged):
        return "tagged element"
    return "element" if isinstance(item, Insert | Adjust | Stable) else ""


def gathered(items: Iterator[Any], most: int = MOST) -> Iterator[tuple[Any, int]]:
    """Pieces, and how many items each is: those of one sort that stand together are one list.

    What was given before an error is given before it is raised.
    """
    waiting: list[Any] = []
    sort, error = "", None
    while error is None:
        try:
            item = next(items)
        except StopIteration:
            break
        except BaseException as reason:
            error = reason
            break
        own = sort_of(item)
        if waiting and (own != sort or len(waiting) >= most):
            yield waiting, len(waiting)
            waiting = []
        sort = own
        if own:
            waiting.append(item)
        else:
            yield item, 1
    if waiting:
        yield waiting, len(waiting)
    if error is not None:
        raise error
