"""The name that was meant, where one is written that is none of those known."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: object, known: Iterable[object]) -> str | None:
    """The known name that is most like another, whatever its case; None where none is like it.

    >>> nearest("Nort", ["south", "north"])
    'north'
    """
    names = [str(one) for one in known]
    text = str(name).strip()
    if len(text) == 1 and len(names) > 1:
        return next((one for one in names if one.lower() == text.lower()), None)
    folded: dict[str, str] = {}
    for one in names:
        folded.setdefault(one.strip().lower(), one)
    found = get_close_matches(text.lower(), folded, 1)
    return folded[found[0]] if found else None


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The end of a message about a name that is none of those known: a question, or nothing.

    >>> f"there is no column 'romo'{did_you_mean('romo', ['room', 'level'])}"
    "there is no column 'romo', did you mean 'room'?"
    """
    meant = nearest(name, known)
    return "" if meant is None else f", did you mean {meant!r}?"
