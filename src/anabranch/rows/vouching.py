"""Who vouches that nothing is missing before a stable: the replica that sends it, or nobody.

A stable that a replica sends is its own word. One that is inferred, from a bound on disorder or from the end
of rows, says how far a replica has come and nothing about what it lost on the way. Either guess costs: taken
for complete, the replica that is ahead removes what only others have; taken for lossy, one that is dead holds
what is final. So it is asked for.
"""

from collections.abc import Iterable

LOSSY = "what only one replica has stays (lossy); nothing is final before the slowest has passed it"
COMPLETE = "the replica that is furthest decides what is there (complete)"

Lossy = bool | Iterable[str]


def is_inferred(*, replica: str | None, kind: str | None, disorder: object, static: bool = False) -> bool:
    """Whether several replicas are merged by stables that none of them sends.

    ``static``: there are no rows but those that are there, so their end says how far they are.
    """
    return replica is not None and (disorder is not None or (static and kind is None))


IN_PYTHON = "lossy=True", "lossy=False", 'lossy=["west"]'
IN_FILE = "lossy = true", "lossy = false", 'lossy = ["west"]'
AS_OPTION = "--lossy all", "--lossy none", "--lossy west"
"""How the three answers are written: all replicas may lose rows, none, some."""


def check_answered(lossy: Lossy | None, *, inferred: bool, written: tuple[str, str, str] = IN_PYTHON) -> None:
    """Raise where it is not said whether replicas may have lost rows, and no row can say it."""
    if lossy is not None or not inferred:
        return
    yes, no, some = written
    error = ValueError(
        "how far each replica has come is inferred, so none of them vouches that it sent every row before "
        f"that, and {yes.split('=')[0].removesuffix(' all').strip()} is not given"
    )
    error.add_note(f"Write {yes} if a replica may lose rows: {LOSSY}.")
    error.add_note(f"Write {no} if each has every row: {COMPLETE}, and what only others have is removed.")
    error.add_note(f"Write {some} if only some may lose rows.")
    raise error


def in_words(lossy: Lossy) -> str:
    """What was chosen, as a sentence.

    >>> in_words(["west"])
    'of all replicas but west, the one that is furthest decides what is there (complete)'
    """
    if isinstance(lossy, bool):
        return LOSSY if lossy else COMPLETE
    names = [lossy] if isinstance(lossy, str) else sorted(lossy)
    return (
        f"of all replicas but {', '.join(names)}, the one that is furthest decides what is there (complete)"
    )
