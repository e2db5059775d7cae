"""A gate without a flow behind it."""

from collections import Counter

from anabranch import Batch, Stable


class Noted:
    """An entrance that notes what it is told."""

    def __init__(self) -> None:
        self.events: Counter[tuple[str, str]] = Counter()
        self.promises: list[tuple[str, int]] = []
        self.refused: Counter[tuple[str, str]] = Counter()
        self.comings: list[tuple[str, str]] = []

    def push(self, batch: Batch, name: str) -> None:
        self.events.update((name, str(one)) for one in batch.elements() if not isinstance(one, Stable))

    def advance(self, time: int, name: str) -> None:
        self.promises.append((name, time))

    def begins(self, name: str, time: int | None) -> None:
        raise AssertionError("there are no changes")

    def attach(self, name, guarantee, properties, *, complete) -> None:
        self.comings.append(("attach", name))

    def detach(self, name: str) -> None:
        self.comings.append(("detach", name))

    def idle(self, name: str) -> None:
        self.comings.append(("idle", name))

    def refuse(self, refused) -> None:
        self.refused.update(told(refused))


def told(refused) -> list[tuple[str, str]]:
    return [(refused.rule.value, str(one)) for one in refused.batch.objects()]
