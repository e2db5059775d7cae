"""How rows say what happened to the row of a table: the words that are known, in any case.

Known from the start are the plain words, their first letters, the codes of Debezium (``c`` and ``r``), the
row kinds of Flink (``+I``) and the change types of Delta (``update_postimage``). The image before an update
carries nothing that the state of the table does not have, so its rows are passed over. A row of a snapshot
says what is there, not since when; one that is read incrementally, beside the log, what is there meanwhile.
"""

from collections.abc import Mapping

from anabranch.model.batch import Kind
from anabranch.model.op import Op
from anabranch.model.spelling import did_you_mean

WORDS = {
    "insert": (Kind.INSERT, Op.INSERT),
    "update": (Kind.INSERT, Op.UPDATE),
    "delete": (Kind.INSERT, Op.DELETE),
    "upsert": (Kind.INSERT, Op.UPSERT),
    "snapshot": (Kind.INSERT, Op.SNAPSHOT),
    "incremental": (Kind.INSERT, Op.INCREMENTAL),
    "stable": (Kind.STABLE, Op.INSERT),
    "attach": (Kind.ATTACH, Op.INSERT),
    "detach": (Kind.DETACH, Op.INSERT),
}
"""What a row may say, as the kind and the op of its columns (see `kernels/changes.py`)."""

IGNORE = "ignore"
"""What a row says that is passed over."""

_SPELLINGS = {
    "insert": ("i", "c", "create", "+i"),
    "update": ("u", "+u", "update_postimage"),
    "delete": ("d", "-d"),
    "snapshot": ("r", "read"),
    "stable": ("progress",),
    IGNORE: ("-u", "update_preimage"),
}


def spellings(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What each word means: those known from the start, and more, which have the last say.

    >>> spellings({"4": "update"})["4"], spellings()["+u"]
    ('update', 'update')
    """
    known = {word: word for word in (*WORDS, IGNORE)}
    known |= {spelled: word for word, several in _SPELLINGS.items() for spelled in several}
    own = {}
    for spelled, word in (more or {}).items():
        if folded(word) not in known:
            error = ValueError(
                f"ops says what {spelled!r} means, and {word!r} is not known{did_you_mean(word, known)}"
            )
            error.add_note(f"There are: {', '.join((*WORDS, IGNORE))}.")
            raise error
        own[folded(spelled)] = known[folded(word)]
    return known | own


def folded(word: object) -> str:
    """A word as it is compared."""
    return str(word).strip().lower()
