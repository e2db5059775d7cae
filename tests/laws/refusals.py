"""What a merge has to refuse, strewn among what it has to merge, and what is raised for it.

Whatever is done with it, all else is merged as if it had not been there, and it is counted once; where the
answer is to raise and nothing of a batch was used, not at all.
"""

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from anabranch import (
    BEGINNING,
    FOREVER,
    Adjust,
    Drop,
    Insert,
    InvalidElementError,
    Merger,
    Quarantine,
    Raise,
    Stable,
)
from anabranch.model.elements import Element

if TYPE_CHECKING:
    from laws.trial import Subject

ANSWERS = ("drop", "quarantine", "raise", "fail")


def _full(violation: object) -> None:
    raise OSError(28, "No space left on device")


class Refusals:
    """State: how far every input is by its own stables, and how many elements of it were to be refused."""

    def __init__(self, answer: str | None, ordered: bool, random: Random) -> None:
        self.answer, self.ordered, self.random = answer, ordered, random
        self.stables: dict[str, int] = {}
        self.refused: Counter[str] = Counter()
        self.said: Counter[str] = Counter()

    def policies(self) -> dict[str, Any]:
        """What the merger is made with."""
        if self.answer is None:
            return {}
        policy = {"drop": Drop(), "quarantine": Quarantine(), "raise": Raise(), "fail": Quarantine(_full)}
        return dict.fromkeys(("on_invalid", "on_broken", "on_late"), policy[self.answer])

    def begin(self, name: str) -> None:
        """An input is attached, and has said nothing."""
        self.stables[name] = BEGINNING

    def push(self, subject: "Subject", name: str, elements: list[Element]) -> list[Element]:
        """What comes out of elements when others are strewn in that have to be refused."""
        stable = self.stables[name]
        noisy, sound = [], []
        for element in elements:
            if self.answer is not None and self.random.random() < 0.2:
                noisy.append(self._invalid(stable))
                self.refused[name] += self.answer != "raise"
            if self.answer is not None and self.ordered and stable != FOREVER and self.random.random() < 0.1:
                noisy.append(Adjust({"value": "a"}, max(stable, 0), max(stable, 0) + 2, max(stable, 0) + 1))
                sound.append(noisy[-1])
                self.refused[name] += 1
            noisy.append(element)
            sound.append(element)
            if isinstance(element, Stable):
                stable = max(stable, element.time)
        self.stables[name] = stable
        self.said[name] += len(elements)
        if len(noisy) > len(sound) and self.answer == "raise":
            used = self._given(subject, name, noisy)
            assert used == [], "nothing of a batch with an invalid element is used"
            return self._given(subject, name, sound)
        return self._given(subject, name, noisy)

    def _given(self, subject: "Subject", name: str, elements: list[Element]) -> list[Element]:
        """What comes out, with the error or afterwards where something is raised."""
        try:
            return subject.merger.push(name, elements)
        except InvalidElementError as error:
            return [] if error.output is None else list(error.output.elements())
        except OSError:
            if self.random.random() < subject.dumps:
                subject.load()
            return subject.merger.push(name, [])

    def _invalid(self, stable: int) -> Element:
        """An element that no valid stream has after this stable."""
        start = self.random.randint(-1, 9)
        found: list[Element] = [
            Insert({"value": "a"}, start, start),
            Insert({"value": "a"}, start, start - 1),
            Adjust({"value": "a"}, start, start + 3, start - 1),
        ]
        if stable > BEGINNING:
            found += [
                Insert({"value": "a"}, stable - 1, FOREVER),
                Adjust({"value": "a"}, stable - 3, stable - 1, stable),
                Adjust({"value": "a"}, stable - 3, stable, stable - 1),
            ]
        return self.random.choice(found)

    def miscounted(self, merger: Merger) -> str | None:
        """What the status has counted and should not have, or None."""
        for name, one in merger.status().inputs.items():
            if (one.elements, one.refused) != (self.said[name], self.refused[name]):
                return (
                    f"{name} has {one.elements} elements and {one.refused} refused by its status, "
                    f"and not {self.said[name]} and {self.refused[name]}"
                )
        return None
