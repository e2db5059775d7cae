"""The name that was meant, where one is written that is none of those known."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from inspect import signature
from typing import Any


def nearest(name: object, known: Iterable[object]) -> str | None:
    """The known name that is most like another, whatever its case; None where none is like it.

    >>> nearest("Nort", ["south", "north"])
    'north'
    >>> nearest("ta", ["id", "at"]), nearest("d", ["id", "at"])
    ('at', 'id')
    """
    names = [str(one) for one in known]
    text = str(name).strip()
    folded: dict[str, str] = {}
    for one in names:
        folded.setdefault(one.strip().lower(), one)
    if text.lower() in folded:
        return folded[text.lower()]
    is_letter = len(text) == 1 and len(names) > 1
    found = [] if is_letter else get_close_matches(text.lower(), folded, 1)
    if not found:
        found = [one for one in folded if is_slip(text, one)]
    return folded[found[0]] if len(found) == 1 or (found and not is_letter) else None


def is_slip(name: str, meant: str) -> bool:
    """Whether a name is another with a letter too many or too few, two exchanged, or in another case.

    >>> is_slip("SIKN", "SINK"), is_slip("sink", "SINK"), is_slip("LINK", "SINK")
    (True, True, False)
    """
    name, meant = name.lower(), meant.lower()
    if len(name) == len(meant):
        swapped = (name[:n] + name[n + 1] + name[n] + name[n + 2 :] for n in range(len(name) - 1))
        return name == meant or meant in swapped
    longer, shorter = (name, meant) if len(name) > len(meant) else (meant, name)
    return any(longer[:n] + longer[n + 1 :] == shorter for n in range(len(longer)))


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The end of a message about a name that is none of those known: a question, or nothing.

    >>> f"there is no column 'romo'{did_you_mean('romo', ['room', 'level'])}"
    "there is no column 'romo', did you mean 'room'?"
    """
    meant = nearest(name, known)
    return "" if meant is None else f", did you mean {meant!r}?"


_UNEXPECTED = re.compile(r"(?P<function>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")


def unexpected_keyword(error: TypeError) -> tuple[str, str] | None:
    """The function that was called with a keyword that it has not, and the keyword."""
    found = _UNEXPECTED.match(str(error))
    return None if found is None else (found["function"], found["name"])


def keyword_meant(error: TypeError, function: Callable[..., Any]) -> str:
    """The end of the message where a function has not the keyword that it was called with.

    >>> try:
    ...     nearest("ta", know=["at"])
    ... except TypeError as error:
    ...     print(f"{error}{keyword_meant(error, nearest)}")
    nearest() got an unexpected keyword argument 'know', did you mean 'known'?
    """
    unexpected = unexpected_keyword(error)
    return "" if unexpected is None else did_you_mean(unexpected[1], signature(function).parameters)
