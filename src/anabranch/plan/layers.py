"""Where the boxes of a picture stand and where its lines run: in columns, from left to right.

A box stands right of all it reads, those that end the picture in the last column. A line that passes a column
has a place there as a box has, so that it runs between boxes and never through one. Boxes of a column are in
the order of the middles of their neighbours (Sugiyama, Tagawa and Toda 1981), as far as that saves crossings,
and as close to the height of their neighbours as others leave room.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

SPACE, LANE = 26.0, 20.0
"""Between two boxes of a column, and what a line that passes has for itself."""
NARROW, WIDE = 46.0, 96.0
"""Between two columns: the steeper the lines, the more."""
ARRIVAL = 16.0
"""Between two lines that come in, at least, if a box is high enough."""
_SWEEPS = 12

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a box, and whether it ends the picture."""

    width: float
    height: float
    last: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """From one box to another, with so much room in front of its end where it is straight."""

    source: int
    target: int
    room: float = 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """The left top corner and the width of each box, and for each line the points between which it bends."""

    corners: list[Point]
    widths: list[float]
    routes: list[list[Point]]
    width: float
    height: float


@dataclass(slots=True)
class _Slot:
    """A place in a column: of a box, or of a line that passes."""

    column: int
    height: float
    before: list[int]
    after: list[int]
    box: bool
    y: float = 0.0
    """Of its middle."""

    def gap(self, below: "_Slot") -> float:
        """How far the middle of the one below is away at least."""
        between = SPACE if self.box and below.box else SPACE / 2
        return (self.height + below.height) / 2 + between


def laid_out(boxes: Sequence[Box], lines: Sequence[Line]) -> Layout:
    """Places for boxes that stand after all that they read, and lines from one to another."""
    ranks = _ranks(boxes, lines)
    slots = [_Slot(rank, box.height, [], [], True) for rank, box in zip(ranks, boxes, strict=True)]
    chains = [_chain(slots, line.source, line.target) for line in lines]
    columns = _ordered(slots, max(ranks, default=-1) + 1)
    _settle(slots, columns)
    widths = [max((boxes[one].width for one in column if slots[one].box), default=0.0) for column in columns]
    rooms = [
        max((line.room for line in lines if ranks[line.target] == n), default=0.0)
        for n in range(len(columns))
    ]
    lefts = _lefts(slots, columns, widths, rooms)
    arrivals = _arrivals(slots, chains)
    routes = []
    for line, chain, arrival in zip(lines, chains, arrivals, strict=True):
        points = []
        for one in map(slots.__getitem__, chain[:-1]):
            points += [(lefts[one.column], one.y), (lefts[one.column] + widths[one.column], one.y)]
        end = lefts[slots[line.target].column]
        points += [(end - line.room, arrival), (end, arrival)]
        routes.append(points[1:])
    corners = [(lefts[slots[n].column], slots[n].y - box.height / 2) for n, box in enumerate(boxes)]
    return Layout(
        corners,
        [widths[rank] for rank in ranks],
        routes,
        lefts[-1] + widths[-1] if columns else 0.0,
        max((one.y + one.height / 2 for one in slots), default=0.0),
    )


def _ranks(boxes: Sequence[Box], lines: Sequence[Line]) -> list[int]:
    """The columns: one after the last of those that are read."""
    ranks = [0] * len(boxes)
    reads: list[list[int]] = [[] for _ in boxes]
    for line in lines:
        assert line.source < line.target, "what is read comes first"
        reads[line.target].append(line.source)
    for n, sources in enumerate(reads):
        ranks[n] = max((ranks[one] + 1 for one in sources), default=0)
    end = max(ranks, default=0)
    return [end if box.last else rank for box, rank in zip(boxes, ranks, strict=True)]


def _chain(slots: list[_Slot], source: int, target: int) -> list[int]:
    """The slots along a line, with one for each column that it passes."""
    chain = [source]
    for column in range(slots[source].column + 1, slots[target].column):
        slots.append(_Slot(column, LANE, [], [], False))
        chain.append(len(slots) - 1)
    chain.append(target)
    for left, right in pairwise(chain):
        slots[left].after.append(right)
        slots[right].before.append(left)
    return chain


def _ordered(slots: list[_Slot], count: int) -> list[list[int]]:
    """The slots of each column from top to bottom, in the order with the fewest crossings that was met."""
    columns: list[list[int]] = [[] for _ in range(count)]
    for number in _in_depth(slots):
        columns[slots[number].column].append(number)
    best, fewest = [list(column) for column in columns], _crossings(slots, columns)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        for column in columns if forward else columns[::-1]:
            place = {one: n for each in columns for n, one in enumerate(each)}
            middles = {
                one: _mean([place[other] for other in neighbours]) if neighbours else place[one]
                for one in column
                for neighbours in [slots[one].before if forward else slots[one].after]
            }
            column.sort(key=middles.__getitem__)
        _swap(slots, columns)
        crossings = _crossings(slots, columns)
        if crossings < fewest:
            best, fewest = [list(column) for column in columns], crossings
    return best


def _swap(slots: list[_Slot], columns: list[list[int]]) -> None:
    """Neighbours of a column that cross less the other way round, as long as there are some."""
    place = {one: n for column in columns for n, one in enumerate(column)}
    swapped = True
    while swapped:
        swapped = False
        for column in columns:
            for n in range(len(column) - 1):
                above, below = slots[column[n]], slots[column[n + 1]]
                pairs = [(a, b) for a in above.before for b in below.before]
                pairs += [(a, b) for a in above.after for b in below.after]
                if sum((place[a] > place[b]) - (place[a] < place[b]) for a, b in pairs) > 0:
                    column[n], column[n + 1] = column[n + 1], column[n]
                    place[column[n]], place[column[n + 1]] = n, n + 1
                    swapped = True


def _in_depth(slots: list[_Slot]) -> Iterator[int]:
    """Slots so that those of one tree are together: each after what it reads, ends in their order."""
    seen: set[int] = set()
    ends = [n for n, one in enumerate(slots) if not one.after]
    waiting = [(n, False) for n in reversed(ends)]
    while waiting:
        number, ready = waiting.pop()
        if ready:
            yield number
        elif number not in seen:
            seen.add(number)
            waiting.append((number, True))
            waiting += [(one, False) for one in reversed(slots[number].before)]


def _crossings(slots: list[_Slot], columns: list[list[int]]) -> int:
    place = {one: n for column in columns for n, one in enumerate(column)}
    count = 0
    for column in columns:
        lines = [(place[one], place[other]) for one in column for other in slots[one].after]
        count += sum((a - c) * (b - d) < 0 for n, (a, b) in enumerate(lines) for c, d in lines[n + 1 :])
    return count


def _settle(slots: list[_Slot], columns: list[list[int]]) -> None:
    """Heights, as close to those of the neighbours as the order and the sizes allow."""
    for column in columns:
        for above, one in pairwise(column):
            slots[one].y = slots[above].y + slots[above].gap(slots[one])
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else columns[::-1]:
            wishes = [_wish(slots, one, forward, both=sweep >= _SWEEPS - 4) for one in column]
            _place(slots, column, wishes)
    runs = list(_runs(slots))
    for _ in range(_SWEEPS):
        for run in runs:
            _straighten(slots, columns, run)
    top = min((one.y - one.height / 2 for one in slots), default=0.0)
    for slot in slots:
        slot.y = round(slot.y - top, 1)


def _runs(slots: list[_Slot]) -> Iterator[list[int]]:
    """Slots one after the other that no other line leaves or joins."""
    for number, one in enumerate(slots):
        if len(one.before) == 1 and len(slots[one.before[0]].after) == 1:
            continue
        run = [number]
        while len(after := slots[run[-1]].after) == 1 and len(slots[after[0]].before) == 1:
            run.append(after[0])
        yield run


def _straighten(slots: list[_Slot], columns: list[list[int]], run: list[int]) -> None:
    """A run at one height, or in few pieces where others are in its way, so that its ends bend least."""
    while run:
        low, high = _room(slots, columns, run[0])
        size = 1
        for number in run[1:]:
            least, most = _room(slots, columns, number)
            if max(low, least) > min(high, most):
                break
            low, high, size = max(low, least), min(high, most), size + 1
        piece, run = run[:size], run[size:]
        ends = [slots[one].y for one in slots[piece[0]].before + slots[piece[-1]].after]
        passes = not any(slots[one].box for one in piece)
        wishes = ends if passes else [sum(ends) / len(ends)] if ends else [slots[piece[0]].y]
        within = [min(max(y, low), high) for y in wishes]
        height = within[0] if within[0] == wishes[0] else within[-1]
        for number in piece:
            slots[number].y = height


def _room(slots: list[_Slot], columns: list[list[int]], number: int) -> tuple[float, float]:
    """How high and how low a slot may stand between those above and below it."""
    one, column = slots[number], columns[slots[number].column]
    place = column.index(number)
    low = slots[column[place - 1]].y + slots[column[place - 1]].gap(one) if place else -inf
    high = slots[column[place + 1]].y - one.gap(slots[column[place + 1]]) if place + 1 < len(column) else inf
    return low, max(low, high)


def _wish(slots: list[_Slot], number: int, forward: bool, *, both: bool) -> tuple[float, float]:
    """The height at which lines of a slot are straightest, and how much that matters."""
    one = slots[number]
    near = one.before + one.after if both else one.before if forward else one.after
    if not near:
        return one.y, 0.1
    weights = [(1 if slots[other].box else 3) * (1 if one.box else 3) for other in near]
    height = sum(weight * slots[other].y for weight, other in zip(weights, near, strict=True))
    return height / sum(weights), float(sum(weights))


def _place(slots: list[_Slot], column: list[int], wishes: list[tuple[float, float]]) -> None:
    """The heights nearest to the wishes that keep the order and the room between slots (least squares)."""
    offset, offsets = 0.0, []
    for n, number in enumerate(column):
        offset += slots[column[n - 1]].gap(slots[number]) if n else 0.0
        offsets.append(offset)
    blocks: list[tuple[float, float, int]] = []
    for (height, weight), offset in zip(wishes, offsets, strict=True):
        block = height - offset, weight, 1
        while blocks and blocks[-1][0] >= block[0]:
            mean, total, size = blocks.pop()
            both = total + block[1]
            block = (mean * total + block[0] * block[1]) / both, both, size + block[2]
        blocks.append(block)
    settled = [mean for mean, _, size in blocks for _ in range(size)]
    for number, mean, offset in zip(column, settled, offsets, strict=True):
        slots[number].y = mean + offset


def _lefts(
    slots: list[_Slot], columns: list[list[int]], widths: list[float], rooms: list[float]
) -> list[float]:
    """Where columns begin."""
    lefts, left = [], 0.0
    for column, width, room in zip(columns, widths, rooms, strict=True):
        left += room
        lefts.append(round(left, 1))
        steepest = max(
            (abs(slots[one].y - slots[other].y) for one in column for other in slots[one].after),
            default=0.0,
        )
        left += width + min(NARROW + steepest / 4, WIDE)
    return lefts


def _arrivals(slots: list[_Slot], chains: list[list[int]]) -> list[float]:
    """The heights at which lines come in: side by side, in the order in which they come."""
    heights = [0.0] * len(chains)
    targets: dict[int, list[int]] = {}
    for n, chain in enumerate(chains):
        targets.setdefault(chain[-1], []).append(n)
    for target, lines in targets.items():
        one = slots[target]
        lines.sort(key=lambda n: slots[chains[n][-2]].y)
        step = min(ARRIVAL + 2, (one.height - 20) / max(len(lines) - 1, 1))
        for place, n in enumerate(lines):
            heights[n] = round(one.y + (place - (len(lines) - 1) / 2) * step, 1)
    return heights


def _mean(values: list[int]) -> float:
    return sum(values) / len(values)
