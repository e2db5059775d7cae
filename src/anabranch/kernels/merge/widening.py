"""Wider payload columns for all that a merge holds: everywhere, or nowhere."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anabranch.kernels.merge.ordered import Ordered
from anabranch.model.batch import Batch
from anabranch.model.schema import Columns, conformed

if TYPE_CHECKING:
    from anabranch.kernels.merge.merge import Merge


def widened(merge: "Merge", columns: Columns) -> Callable[[], None]:
    """What puts all that a merge holds into these columns; a SchemaError where a value does not fit.

    Until it is called, nothing has changed.
    """

    if columns is merge.columns:
        return lambda: None

    def fitted(parts: list[Batch]) -> list[Batch]:
        return [part.with_payload(conformed(part.payload, columns.schema)) for part in parts]

    kernel, cleanse, trail = merge.kernel, merge.cleanse, merge.trail
    queues, store = None, None
    if isinstance(kernel, Ordered):
        queues = {i: fitted(queue) for i, queue in kernel.queues.items()}
    elif kernel is not None:
        store = kernel.payloads.widened(columns)
    cleansed = None if cleanse is None else cleanse.payloads.widened(columns)
    given = [] if trail is None else fitted(trail.given)
    shown = {} if trail is None else {i: fitted(parts) for i, parts in trail.shown.items()}

    def commit() -> None:
        merge.columns = columns
        if isinstance(kernel, Ordered) and queues is not None:
            kernel.queues = queues
        elif kernel is not None and not isinstance(kernel, Ordered) and store is not None:
            kernel.payloads = store
        if cleanse is not None and cleansed is not None:
            cleanse.payloads = cleansed
        if trail is not None:
            trail.given, trail.shown = given, shown

    return commit
