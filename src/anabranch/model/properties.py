"""What may be relied on about a stream, as facts that imply one another.

Facts are declared by sources, derived through operators, and observed on recordings. They pick algorithms, so
a fact is only ever something that every prefix of the stream obeys (closed excepted: it is about the end).
Two are more than true or false: which columns are a key, and how long a lifetime may be.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from anabranch.model.spelling import did_you_mean


class Fact(Enum):
    """One promise about a stream.

    Order is by sync time: the start of an insert, the earlier of the two ends of an adjust.
    """

    INSERT_ONLY = "there are no adjusts"
    ORDERED = "sync times never go back"
    STRICTLY_INCREASING = "sync times always rise"
    DETERMINISTIC_TIES = "elements of equal sync time come in the same order in every replica"
    KEYED = "payload and start name at most one event"
    SHRINKING = "adjusts only shorten"
    KEPT = "no event is removed"
    PERFECT = "ordered, and no adjusts"
    CLOSED = "the last stable covers every start and end"
    DISJOINT = "lifetimes of equal payloads do not overlap"
    PUNCTUATED = "it becomes stable as its sources do"
    COMPLETE = "a stable vouches that nothing is missing before it"

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")

    @classmethod
    def named(cls, fact: "Fact | str") -> "Fact":
        """A fact, or the one of this name in any spelling: ``insert only``, ``insert-only``, ``INSERT_ONLY``.

        >>> Fact.named("insert-only")
        <Fact.INSERT_ONLY: 'there are no adjusts'>
        """
        if isinstance(fact, cls):
            return fact
        found = cls.__members__.get(str(fact).strip().upper().replace("-", "_").replace(" ", "_"))
        if found is None:
            error = ValueError(
                f"a fact about a stream has a name, {fact!r} is none{did_you_mean(fact, cls.__members__)}"
            )
            error.add_note(f"There are: {', '.join(map(str, cls))}.")
            raise error
        return found


_IMPLICATIONS: tuple[tuple[frozenset[Fact], Fact], ...] = tuple(
    (frozenset(premises), fact)
    for premises, fact in (
        ((Fact.STRICTLY_INCREASING,), Fact.ORDERED),
        ((Fact.STRICTLY_INCREASING,), Fact.DETERMINISTIC_TIES),
        ((Fact.STRICTLY_INCREASING,), Fact.KEYED),
        ((Fact.INSERT_ONLY,), Fact.SHRINKING),
        ((Fact.INSERT_ONLY,), Fact.KEPT),
        ((Fact.INSERT_ONLY, Fact.ORDERED), Fact.PERFECT),
        ((Fact.PERFECT,), Fact.INSERT_ONLY),
        ((Fact.PERFECT,), Fact.ORDERED),
        ((Fact.DISJOINT,), Fact.KEYED),
    )
)


@dataclass(frozen=True, slots=True)
class Properties:
    """Facts, with all that they imply; the more facts, the more special the stream.

    >>> Properties.of(Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY) >= Properties.of(Fact.PERFECT, Fact.KEYED)
    True
    """

    facts: frozenset[Fact] = frozenset()
    key: tuple[str, ...] | None = None
    """Columns that, with the start, name at most one event; None: only the whole payload may."""
    longest: int | None = None
    """No lifetime has more ticks; None: nobody knows."""

    def __post_init__(self) -> None:
        facts = set(self.facts) | ({Fact.KEYED} if self.key is not None else set())
        while new := {fact for premises, fact in _IMPLICATIONS if premises <= facts} - facts:
            facts |= new
        object.__setattr__(self, "facts", frozenset(facts))

    @classmethod
    def of(cls, *facts: Fact | str) -> "Properties":
        """These facts and what they imply."""
        return cls(frozenset(map(Fact.named, facts)))

    def __ge__(self, other: "Properties") -> bool:
        """Whatever is true of streams with the other properties is true of these."""
        keyed = other.key is None or (self.key is not None and {*self.key} <= {*other.key})
        short = other.longest is None or (self.longest is not None and self.longest <= other.longest)
        return self.facts >= other.facts and keyed and short

    def __and__(self, other: "Properties") -> "Properties":
        """What two streams have in common.

        >>> keyed = Properties(key=("id",), longest=5), Properties(key=("id", "room"), longest=9)
        >>> both = keyed[0] & keyed[1]
        >>> both.key, both.longest
        (('id', 'room'), 9)
        """
        longest = (
            None if None in (self.longest, other.longest) else max(self.longest or 0, other.longest or 0)
        )
        return Properties(self.facts & other.facts, _wider(self.key, other.key), longest)

    def __or__(self, other: "Properties") -> "Properties":
        """What is true of one stream by two accounts."""
        keys = [key for key in (self.key, other.key) if key is not None]
        known = [longest for longest in (self.longest, other.longest) if longest is not None]
        return Properties(
            self.facts | other.facts, min(keys, key=len, default=None), min(known, default=None)
        )

    def keep(self, *facts: Fact) -> "Properties":
        """What is left where only these facts stay, with the key if there is still one."""
        stay = self.facts & {*facts}
        return Properties(stay, self.key if Fact.KEYED in stay else None, self.longest)

    def without(self, fact: Fact) -> "Properties":
        """What is left when a fact turns out not to hold: nothing that rests on it, or on what implied it.

        >>> str(Properties.of(Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY).without(Fact.STRICTLY_INCREASING))
        'insert only, ordered, shrinking, kept, perfect'
        """
        gone = {one for one in self.facts if fact in Properties.of(one)}
        left = self.facts - Properties(frozenset(gone)).facts
        return Properties(left, self.key if Fact.KEYED in left else None, self.longest)

    def spread(self) -> "Properties":
        """What is true of a stream whose channels each have these properties, however they are interleaved.

        There are no adjusts, adjusts only shorten and no event is removed: each element is one of a channel,
        so what is true of every element stays true. A key stays one where all that is said of a payload and
        start keeps to one channel, as it must anyhow for its adjusts to come after it. Nothing about order
        stays: an element of one channel may come between any two of another. Nor is such a stream closed: its
        stable is the least of its channels', and others may have events beyond it.

        >>> str(Properties.of(Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY, Fact.CLOSED).spread())
        'insert only, keyed, shrinking, kept'
        """
        facts = Fact.INSERT_ONLY, Fact.KEYED, Fact.DISJOINT, Fact.SHRINKING, Fact.KEPT
        return self.keep(*facts, Fact.PUNCTUATED, Fact.COMPLETE)

    def __contains__(self, fact: Fact) -> bool:
        return fact in self.facts

    def __iter__(self) -> Iterator[Fact]:
        return (fact for fact in Fact if fact in self.facts)

    def __str__(self) -> str:
        return ", ".join(str(fact) for fact in self) or "none"


def _wider(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The key that both are, if one has all columns of the other."""
    if one is None or other is None:
        return None
    few, many = sorted((one, other), key=len)
    return many if {*few} <= {*many} else None


class Case(Enum):
    """The restrictions of LM III-C, from the narrowest to none; each names what its streams promise."""

    R0 = Properties.of(Fact.INSERT_ONLY, Fact.STRICTLY_INCREASING)
    R1 = Properties.of(Fact.PERFECT, Fact.DETERMINISTIC_TIES)
    R2 = Properties.of(Fact.PERFECT, Fact.KEYED)
    R3 = Properties.of(Fact.KEYED)
    R4 = Properties.of()

    def admits(self, properties: Properties) -> bool:
        """Streams with these properties are within the restriction."""
        return properties >= self.value

    @classmethod
    def narrowest(cls, inputs: Iterable[Properties]) -> "Case":
        """The first case that admits every one of these."""
        every = list(inputs)
        return next(case for case in cls if all(case.admits(properties) for properties in every))
