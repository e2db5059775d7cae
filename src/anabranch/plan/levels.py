"""A plan cut where rows must meet that are apart: levels, each run by shards that hear of their rows alone.

A node says of each input which columns must be equal for rows to have to meet. Rows that are dealt out by
some columns meet where those are among the columns of the node: rows that are equal on more are equal on
less. Then the node runs where the rows are, and inputs of one node that are dealt by columns that correspond
meet there too. Where it is not so, what the level gives is dealt out anew, for the next level. The key is
never narrowed: a merge by all columns that is followed by something by country is not run on three shards.

Rows of a source are dealt out where they are first asked for, after the steps right behind the source that
look at payloads alone. A source that only a later level reads comes in there. A function that may answer
otherwise each time runs before rows are dealt out, so that what a shard has heard is the same again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from anabranch.plan.apply import Apply
from anabranch.plan.filter import Filter
from anabranch.plan.graph import Graph
from anabranch.plan.inlet import Inlet
from anabranch.plan.node import Node, PlanError
from anabranch.plan.select import Select
from anabranch.plan.source import Source
from anabranch.plan.validate import validated

OUTPUT = ""
"""The name of what comes out of the last level."""
_OF_PAYLOADS = (Filter, Select, Apply)


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows on their way into a level."""

    inlet: Inlet
    source: Source | None
    """Where they come from outside."""
    origin: int
    """The level that gives them; 0: a source does."""
    steps: tuple[Node, ...]
    """What is made of them before they are dealt out, from the first to the last."""
    by: tuple[str, ...]
    """The columns by which they are dealt out; none: all go to one shard."""
    names: tuple[str, ...]
    """The names under which those columns are hashed, the same on all edges whose rows meet."""

    @property
    def name(self) -> str:
        """Its name, one of a kind in the plan."""
        return self.inlet.name


@dataclass(frozen=True, slots=True)
class Level:
    """What one stateful operator runs."""

    number: int
    """From 1 on."""
    edges: tuple[Edge, ...]
    outputs: dict[str, Node]
    """What goes out, by the name of the edge that it goes on, or as `OUTPUT`."""


def levels(root: Node, shards: int = 1) -> tuple[Level, ...]:
    """The levels of a plan, from the first to the last."""
    return _Cut(root, shards).levels()


def levels_text(parts: tuple[Level, ...]) -> str:
    """What each level runs, by what its rows are dealt out, and which case each merge is there."""
    lines = []
    for level in parts:
        lines.append(f"level {level.number}")
        for edge in level.edges:
            whence = f"level {edge.origin}" if edge.origin else "source"
            how = f"by {', '.join(edge.by)}" if edge.by else "to one shard"
            steps = "".join(f", after {step.words()}" for step in edge.steps)
            lines.append(f"  {whence} {edge.name}, dealt out {how}{steps}")
        nodes = Graph(level.outputs.values()).nodes
        lines += [f"  {node.words()}" for node in nodes if not isinstance(node, Source)]
    return "\n".join(lines)


class _There(NamedTuple):
    """Where rows are: on which level, and dealt out by which of their columns, if that is known."""

    level: int
    key: tuple[str, ...] | None
    names: tuple[str, ...]


@dataclass(slots=True)
class _Way:
    """An edge in the making: what comes of a node, from somewhere, dealt out once somebody asks for it."""

    end: int
    """The node that is the last before the shuffle."""
    origin: int | None
    """The node whose output it begins with; None: a source."""
    steps: tuple[int, ...]
    least: int = 1
    dealt: _There | None = None
    inlet: Inlet | None = field(default=None, repr=False)


class _Cut:
    """State: where the rows of every node of a plan are, as far as that is settled."""

    def __init__(self, root: Node, shards: int) -> None:
        self.shards = shards
        self.graph = Graph(validated([root]))
        self.nodes, self.inputs = self.graph.nodes, self.graph.inputs
        self.root = self.graph.roots[0]
        self.consumers = [self.graph.consumers(n) for n in range(len(self.nodes))]
        self.there: dict[int, _There] = {}
        self.ways: dict[int, _Way] = {}
        """Those that are dealt out when asked for, by the node that they end with."""
        self.cuts: dict[tuple[int, _There], _Way] = {}
        self.comes_by: dict[tuple[int, int], _Way] = {}
        """Of some inputs of nodes, by their places, the edge they come in by."""
        self.built: dict[int, Node] = {}
        before: set[int] = set()
        for n, node in enumerate(self.nodes):
            if isinstance(node, Source):
                steps = tuple(self._steps_behind(n))
                before |= {n, *steps}
                end = steps[-1] if steps else n
                self.ways[end] = _Way(end, None, steps)
            elif n in before:
                continue
            elif isinstance(node, Apply) and not node.pure:
                self._run_before_a_shuffle(n)
            elif any(columns is not None for columns in node.meets()):
                self._meet(n)
        if self._place(self.root) is None:
            self._settle(self.root, self._least(self.root))
        for n in range(len(self.nodes)):
            if n not in before or n in self.ways:
                self._place(n)

    def _steps_behind(self, n: int) -> Iterator[int]:
        """The steps that look at payloads alone and at what comes of a node, which nobody else does."""
        while n != self.root and len(self.consumers[n]) == 1:
            n = self.consumers[n][0]
            if not isinstance(self.nodes[n], _OF_PAYLOADS):
                return
            yield n

    def _run_before_a_shuffle(self, n: int) -> None:
        (given,) = self.inputs[n]
        if self._place(given) is None:
            self._settle(given, self._least(given))
        self.ways[n] = _Way(n, given, (n,), self._sure(given).level + 1)

    def _place(self, n: int) -> _There | None:
        """Where the rows of a node are; None: they may still be dealt out in any way."""
        if n in self.ways:
            return self.ways[n].dealt
        if n not in self.there:
            places = [self._place(one) for one in self.inputs[n]]
            if all(place is None for place in places):
                return None
            self.there[n] = self._side_by_side(n, places)
        return self.there[n]

    def _sure(self, n: int) -> _There:
        place = self._place(n)
        assert place is not None, "it is settled where the rows are"
        return place

    def _side_by_side(self, n: int, places: list[_There | None]) -> _There:
        """Where a node runs that does not mind which rows meet, once its inputs are on one level."""
        node, inputs = self.nodes[n], self.inputs[n]
        known = [place for place in places if place is not None]
        level = max([place.level for place in known] + [self._least(one) for one in inputs])
        deepest = next((place for place in known if place.level == level), None)
        key = None if deepest is None else deepest.key
        names = () if deepest is None or deepest.key is None else deepest.names
        for port, one in enumerate(inputs):
            columns = tuple(self.nodes[one].schema.names)
            fits = key is not None and {*key} <= {*columns}
            by = key if fits and key is not None else columns
            self._bring(n, port, _There(level, by, names if fits else by))
        keys = {(place.key, place.names) for place in (self._after(n, port) for port in range(len(inputs)))}
        if len(keys) > 1:
            return _There(level, None, ())
        ((key, names),) = keys
        return _There(level, _carried(node, key), names)

    def _after(self, n: int, port: int) -> _There:
        """Where the rows of an input of a node are, by the edge that it comes in by, if it does."""
        way = self.comes_by.get((n, port))
        place = self._place(self.inputs[n][port]) if way is None else way.dealt
        assert place is not None, "an input is where its node is"
        return place

    def _meet(self, n: int) -> None:
        """Bring the inputs of a node to one level, where those rows meet that must."""
        node, inputs, wanted = self.nodes[n], self.inputs[n], self.nodes[n].meets()
        level, fitting = 1, []
        for one, columns in zip(inputs, wanted, strict=True):
            if self._place(one) is None and not self._traceable(one, columns):
                self._settle(one, self._least(one))
            place = self._place(one)
            if place is None:
                level = max(level, self._least(one))
            elif columns is None or (place.key is not None and {*place.key} <= {*columns}):
                level = max(level, place.level)
                if columns is not None and place.key is not None:
                    fitting.append((place.level, tuple(map(columns.index, place.key)), place.names))
            else:
                level = max(level, place.level + 1)
        agreed = {(places, names) for at, places, names in fitting if at == level}
        first = next(columns for columns in wanted if columns is not None)
        if len(agreed) > 1:
            level, agreed = level + 1, set()
        places, names = agreed.pop() if agreed else (tuple(range(len(first))), first)
        for port, (one, columns) in enumerate(zip(inputs, wanted, strict=True)):
            if columns is None:
                by = tuple(self.nodes[one].schema.names)
                self._bring(n, port, _There(level, by, by))
            else:
                self._bring(n, port, _There(level, tuple(columns[place] for place in places), names))
        self.there[n] = _There(level, _carried(node, tuple(first[place] for place in places)), names)

    def _bring(self, n: int, port: int, to: _There) -> None:
        """Let an input of a node be on its level, dealt out so where it is not there yet."""
        one = self.inputs[n][port]
        assert to.key is not None
        if self._place(one) is None:
            if self._traceable(one, to.key):
                self._deal(one, to)
                return
            self._settle(one, to.level)
        if self._sure(one).level < to.level:
            self.comes_by[n, port] = self._dealt_anew(one, to)

    def _dealt_anew(self, one: int, to: _There) -> _Way:
        if self.nodes[one].replicated:
            error = PlanError(
                "replicas are merged where their rows first meet, and these would be dealt anew"
            )
            error.add_note("Merge them before the steps that come between, or read the source twice.")
            with self.nodes[one].line.named():
                raise error
        if (one, to) not in self.cuts:
            self.cuts[one, to] = _Way(one, one, (), to.level, to)
        return self.cuts[one, to]

    def _open(self, n: int) -> Iterator[_Way]:
        """What is not dealt out yet of what a node comes of."""
        if n in self.ways:
            if self.ways[n].dealt is None:
                yield self.ways[n]
        elif n not in self.there:
            for one in self.inputs[n]:
                yield from self._open(one)

    def _least(self, n: int) -> int:
        return max((way.least for way in self._open(n)), default=1)

    def _traceable(self, n: int, columns: tuple[str, ...] | None) -> bool:
        """Columns of a node that is not settled are columns of all that it comes of."""
        if columns is None or n in self.ways:
            return True
        before = self.nodes[n].traced(columns)
        return before is not None and all(self._traceable(one, before) for one in self.inputs[n])

    def _deal(self, n: int, to: _There) -> None:
        assert to.key is not None
        if n in self.ways:
            self.ways[n].dealt = to
            return
        before = self.nodes[n].traced(to.key)
        for one in self.inputs[n]:
            self._deal(one, _There(to.level, before, to.names))

    def _settle(self, n: int, level: int) -> None:
        """Deal out whatever a node comes of by all its columns: nobody minds."""
        for way in self._open(n):
            names = tuple(self.nodes[way.end].schema.names)
            way.dealt = _There(level, names, names)

    def levels(self) -> tuple[Level, ...]:
        """The nodes of every level, over what comes in there."""
        count, found = self._sure(self.root).level, []
        ways = [*self.ways.values(), *self.cuts.values()]
        for number in range(1, count + 1):
            mine = [way for way in ways if way.dealt is not None and way.dealt.level == number]
            edges = tuple(self._edge(way) for way in mine)
            outputs = {
                self._name(way): self._built(way.origin)
                for way in ways
                if way.origin is not None and self._sure(way.origin).level == number
            }
            if number == count:
                outputs[OUTPUT] = self._built(self.root)
            found.append(Level(number, edges, outputs))
        return tuple(found)

    def _name(self, way: _Way) -> str:
        """The name of an edge that comes from a level: what gives it, and its number among edges."""
        assert way.origin is not None
        ways = [*self.ways.values(), *self.cuts.values()]
        level, node = self._sure(way.origin).level, self.nodes[way.origin]
        return f"{node.word} of level {level}, {ways.index(way)}"

    def _edge(self, way: _Way) -> Edge:
        inlet, dealt = self._inlet(way), way.dealt
        assert dealt is not None
        assert dealt.key is not None
        steps = tuple(self.nodes[step] for step in way.steps)
        if way.origin is None:
            return Edge(inlet, self._source(way), 0, steps, dealt.key, dealt.names)
        return Edge(inlet, None, self._sure(way.origin).level, steps, dealt.key, dealt.names)

    def _source(self, way: _Way) -> Source:
        source = self.nodes[self.inputs[way.steps[0]][0] if way.steps else way.end]
        assert isinstance(source, Source)
        return source

    def _inlet(self, way: _Way) -> Inlet:
        if way.inlet is None:
            last, steps = self.nodes[way.end], tuple(self.nodes[step] for step in way.steps)
            if way.origin is None:
                way.inlet = Inlet.of_source(self._source(way), last, steps)
            else:
                node = self._built(way.origin)
                last = replace(steps[0], inputs=(node,)) if steps else node
                way.inlet = Inlet.of_level(self._name(way), node, last, steps, self.shards)
        return way.inlet

    def _built(self, n: int) -> Node:
        """A node over what is on its level; what is known of its inputs there picks its algorithm."""
        if n in self.ways:
            return self._inlet(self.ways[n])
        if n not in self.built:
            inputs = tuple(
                self._built(one) if (n, port) not in self.comes_by else self._inlet(self.comes_by[n, port])
                for port, one in enumerate(self.inputs[n])
            )
            self.built[n] = replace(self.nodes[n], inputs=inputs)
        return self.built[n]


def _carried(node: Node, key: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The columns of the output that columns of the input are, if all are there."""
    if key is None:
        return None
    found = {node.traced((name,)): name for name in reversed(node.schema.names)}
    columns = [found.get((name,)) for name in key]
    return None if None in columns else tuple(name for name in columns if name is not None)
