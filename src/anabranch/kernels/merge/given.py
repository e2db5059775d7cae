"""The events that a merge has out and that can still change."""

import numpy as np

from anabranch.kernels.merge.ledgers import END, NEXT, list_entries
from anabranch.kernels.merge.ledgers import GIVEN as TIMES_GIVEN
from anabranch.kernels.merge.nodes import ABSENT, LENGTH, PLACE, START
from anabranch.kernels.merge.r3 import GIVEN, R3
from anabranch.kernels.merge.r4 import R4
from anabranch.model.batch import Batch, Kind


def events_out(kernel: R3 | R4) -> Batch:
    """Each as an insert with the end it has in the output, as often as it is there."""
    nodes = kernel.nodes
    decided, live = np.split(kernel.nodes.in_order()[0], [int(nodes.queue[LENGTH])])
    if isinstance(kernel, R3):
        live = live[nodes.cells[live, GIVEN] != ABSENT]
        end = nodes.cells[live, GIVEN]
    else:
        entries = np.empty((kernel.ledgers.used, kernel.ledgers.cells.shape[1]), np.int64)
        list_entries(nodes, kernel.ledgers, np.concatenate([live, decided]), entries)
        entries = entries[(entries[:, NEXT] < len(live)) & (entries[:, TIMES_GIVEN] > 0)]
        entries = np.repeat(entries, entries[:, TIMES_GIVEN], axis=0)
        live, end = live[entries[:, NEXT]], entries[:, END]
    cells = nodes.cells[live]
    batch = Batch(
        np.full(len(cells), Kind.INSERT, np.int8),
        cells[:, START],
        end,
        np.zeros(len(cells), np.int64),
        kernel.payloads.at(cells[:, PLACE]),
    )
    return batch.identified(np.ascontiguousarray(cells[:, :2]).view(np.uint64))
