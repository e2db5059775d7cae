"""The place of a source, or of an edge into a level, in a flow: what its gate opens to, on both engines."""

from collections.abc import Callable

from anabranch.engines.flow import Flow
from anabranch.kernels.kernel import Refused
from anabranch.model.batch import Batch
from anabranch.model.properties import Properties


class Entrance:
    """What passes the gate goes into the flow; before a replica comes, goes or idles the flow is emptied.

    ``refuse`` is told what does not pass.
    """

    def __init__(self, flow: Flow, name: str, refuse: Callable[[Refused], None]) -> None:
        self.flow, self.name, self.refuse = flow, name, refuse

    def push(self, batch: Batch, name: str) -> None:
        """Valid events, and stables where they stand among them."""
        self.flow.push(self.name, batch, name)

    def advance(self, time: int, name: str) -> None:
        """A replica is stable until a time."""
        self.flow.advance(self.name, time, name)

    def begins(self, name: str, time: int | None) -> None:
        """A replica of changes speaks, perhaps of a snapshot of a time."""
        self.flow.begins(self.name, name, time)

    def attach(
        self, name: str, guarantee: int | None, properties: Properties | None, *, complete: bool
    ) -> None:
        """A replica joins."""
        self.flow.flush()
        self.flow.attach(self.name, name, guarantee, properties, complete=complete)

    def detach(self, name: str) -> None:
        """A replica leaves."""
        self.flow.flush()
        self.flow.detach(self.name, name)

    def idle(self, name: str) -> None:
        """A replica is not waited for until it sends again."""
        self.flow.flush()
        self.flow.idle(self.name, name)
