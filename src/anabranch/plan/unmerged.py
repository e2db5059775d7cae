"""Sources that may have lost rows, and that no merge compares with others."""

from collections.abc import Iterable

from anabranch.plan.graph import Graph
from anabranch.plan.merge import Merge
from anabranch.plan.node import Node
from anabranch.plan.source import Source


def unmerged_lossy(roots: Iterable[Node]) -> dict[str, str]:
    """What a person should know of each source that is declared lossy where no merge uses it, by its name.

    >>> import anabranch as ab
    >>> one = ab.source("one", {"at": "int64"}, start="at", disorder=1, lossy=True)
    >>> unmerged_lossy([one.window(5).agg(n=ab.count()).node])["one"]
    'it is declared lossy, and no merge uses that: a row that it lost stays missing; merge it with others'
    """
    graph = Graph(roots)
    return {
        node.name: "it is declared lossy, and no merge uses that: a row that it lost stays missing; "
        "merge it with others"
        for number, node in enumerate(graph.nodes)
        if isinstance(node, Source)
        and node.lossy is True
        and not node.replicated
        and not _is_merged(graph, number)
    }


def _is_merged(graph: Graph, number: int) -> bool:
    above = graph.consumers(number)
    return any(isinstance(graph.nodes[one], Merge) or _is_merged(graph, one) for one in above)
