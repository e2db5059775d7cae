"""How results differ from the truth, as a table."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scene.readings import Reading

OURS = "logical merge"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a result."""

    missing: int
    """Readings that happened, and are not there as often as they happened."""
    repeated: int
    """Readings that are there more often than they happened."""
    wrong: int
    """Readings that never happened."""

    @property
    def exact(self) -> bool:
        """The result is the truth."""
        return self == Verdict(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Result:
    """What one way of reading the replicas made of them, and what it keeps in memory at the end."""

    readings: list[Reading]
    kept: int | None = None


def judge(truth: Iterable[Reading], result: Iterable[Reading]) -> Verdict:
    """What is wrong with a result; readings that are equal are counted, not confused."""
    happened, shown = Counter(truth), Counter(result)
    extra = shown - happened
    wrong = sum(count for one, count in extra.items() if one not in happened)
    return Verdict((happened - shown).total(), extra.total() - wrong, wrong)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A scene that was played: how each way of reading did, and what that means in a sentence."""

    count: int
    verdicts: Mapping[str, Verdict]
    kept: Mapping[str, int | None]
    before: str
    sentence: str

    @property
    def exact(self) -> bool:
        """Ours is the truth."""
        return self.verdicts[OURS].exact

    def text(self) -> str:
        """All that is printed."""
        width = max(map(len, self.verdicts))
        lines = [f"{f'of {self.count} readings':<{width}}  missing  repeated  wrong  kept"]
        for name, one in self.verdicts.items():
            kept = "-" if self.kept[name] is None else self.kept[name]
            lines.append(f"{name:<{width}}  {one.missing:>7}  {one.repeated:>8}  {one.wrong:>5}  {kept:>4}")
        return "\n".join([self.before, "", *lines, "", self.sentence])


def outcome(truth: list[Reading], results: Mapping[str, Result], *, before: str, sentence: str) -> Outcome:
    """The verdict on each result; the sentence is said only where ours is right."""
    verdicts = {name: judge(truth, one.readings) for name, one in results.items()}
    kept = {name: one.kept for name, one in results.items()}
    if not verdicts[OURS].exact:
        sentence = f"The merge is NOT what was measured: {verdicts[OURS]}."
    return Outcome(len(truth), verdicts, kept, before, sentence)
