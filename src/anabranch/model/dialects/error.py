"""What a dialect cannot say."""

from anabranch.errors import AnabranchError
from anabranch.model.clock import lifetime_text
from anabranch.model.elements import Adjust


class DialectError(AnabranchError, ValueError):
    """A dialect has no words for an element, or an item of it means nothing where it stands.

    >>> str(DialectError("close at 4 follows no open", "it ends nothing", "Open the event first."))
    'close at 4 follows no open: it ends nothing'
    """

    def __init__(self, rule: str, meaning: str, way_out: str) -> None:
        super().__init__(rule, meaning, way_out)
        self.add_note(way_out)

    def __str__(self) -> str:
        return ": ".join(self.args[:2])


def no_such_event(adjust: Adjust) -> DialectError:
    """The error of a stream whose adjust names an event that is not there, or that a stable has frozen."""
    lifetime = lifetime_text(adjust.start, adjust.old_end)
    return DialectError(
        f"an adjust names the event {dict(adjust.payload)} {lifetime}, which is not there to be changed",
        "only valid streams can be written in another dialect",
        "Check the stream first: apply it to a Relation, which names the first element that is not valid.",
    )
