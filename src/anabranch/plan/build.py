"""How a plan begins: a source, a merge of streams, a union of streams."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from anabranch.kernels.merge.settings import REMEMBER, OnBroken, check_name
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.span import span_or_none
from anabranch.model.validity import Policy
from anabranch.plan.changes import Changes
from anabranch.plan.columns import schema_of
from anabranch.plan.line import users_line
from anabranch.plan.merge import Merge
from anabranch.plan.merge_settings import merge_settings
from anabranch.plan.node import Node, PlanError
from anabranch.plan.replicas import Replicas
from anabranch.plan.replicas_of_changes import ReplicasOfChanges
from anabranch.plan.same_columns import same_columns
from anabranch.plan.source import Source, declared
from anabranch.plan.stream import Stream
from anabranch.plan.union import Union
from anabranch.progress.models.model import Progress
from anabranch.rows.change_words import spellings
from anabranch.rows.layout import Layout, names_of
from anabranch.rows.replica_names import check_in_replicas, named_in
from anabranch.rows.vouching import check_answered


def source(
    name: str,
    schema: Any = None,
    *,
    start: str | None = None,
    end: str | None = None,
    old_end: str | None = None,
    duration: int | timedelta | str | None = None,
    kind: str | None = None,
    channel: str | None = None,
    sequence: str | None = None,
    payload: str | Iterable[str] | None = None,
    key: str | Iterable[str] | None = None,
    op: str | None = None,
    ops: Mapping[str, str] | None = None,
    by_time: bool = False,
    disorder: int | timedelta | str | None = None,
    progress: Progress | None = None,
    properties: Properties | Fact | str | Iterable[Fact | str] | None = None,
    replica: str | None = None,
    replicas: Iterable[str] = (),
    idle: Iterable[str] = (),
    lossy: bool | Iterable[str] | None = None,
    on_invalid: Policy | None = None,
    on_late: Policy | None = None,
) -> Any:
    """A stream that comes from outside, by the name under which it is pushed or read.

    ``schema`` are its columns: an Arrow schema, or a mapping of names to types. Where ``start`` is named,
    rows are plain: an event from ``start`` to ``end`` (or for ``duration``; neither: a point) unless ``kind``
    says adjust, stable, attach or detach. Without it elements are pushed, whose payloads have these columns.

    With ``op`` rows are changes of a table, named by ``key``; without, ``key`` says which columns and start
    name at most one event. ``disorder`` is how late a row may be, where rows do not say stable themselves;
    ``progress`` is a model of one's own that infers from rows how far channels have come.
    With ``replica``, the column of who sent a row, it is of several replicas, and is merged: see `Replicas`,
    or `ReplicasOfChanges` where they send changes.
    """
    with users_line().named():
        columns, names = None if schema is None else schema_of(schema), names_of(key)
        replicas, idle = names_of(replicas) or (), names_of(idle) or ()
        lossy = lossy if lossy is None or isinstance(lossy, bool) else frozenset(names_of(lossy) or ())
        if columns is None and start is not None:
            error = PlanError(f"rows of {name!r} have columns, and which is not said")
            error.add_note(
                'Give them: source(name, {"at": "timestamp[us, tz=UTC]", "level": "float64"}, start="at").'
            )
            raise error
        _check_progress(name, progress, disorder)
        promised = declared(properties)
        layout = None
        if start is not None:
            layout = Layout(
                start,
                end,
                old_end,
                span_or_none(duration, "duration"),
                op if op is not None else kind,
                replica,
                channel,
                sequence,
                names_of(payload),
                None,
                span_or_none(disorder, "disorder"),
                names if op is not None else None,
                spellings(ops) if op is not None else {},
            )
        else:
            _check_elements(name, end, old_end, duration, kind, channel, sequence, payload, op, disorder)
        _check_op(name, op, kind, end, names, ops, by_time=by_time)
        _check_replica_names(name, replica, named_in(lossy, idle, replicas))
        if op is None and names is not None:
            promised |= Properties(key=names)
        if layout is None or layout.key is None:
            _check_lossy(lossy, replica, inferred=progress is not None or disorder is not None)
        elif replica is not None:
            _check_whole(name, lossy)
    node = Source(
        name=name,
        columns=columns,
        layout=layout,
        replicas=replica is not None,
        awaited=replicas,
        silent=idle,
        lossy=False if lossy is None else lossy,
        declared=promised,
        by_time=by_time,
        progress=progress,
        on_invalid=on_invalid,
        on_late=on_late,
    )
    if node.replicated:
        return ReplicasOfChanges(node) if node.of_changes else Replicas(node)
    return Stream(Changes(inputs=(node,)) if node.of_changes else node)


def merge(
    *streams: Stream | Mapping[str, Stream],
    case: Case | str | None = None,
    policy: OutputPolicy | str | None = None,
    pace: Pace = Pace.SLOWEST,
    identity: str | Iterable[str] | None = None,
    remember: int = REMEMBER,
    on_broken: OnBroken | None = None,
    on_late: Policy | None = None,
) -> Stream:
    """Several streams that mean the same, as one; a mapping gives them names.

    >>> import anabranch as ab
    >>> east, west = (ab.source(name, {"room": "string"}) for name in ("east", "west"))
    >>> job = ab.merge(east, west).open()
    >>> job.push("east", [ab.Insert({"room": "A"}, 6, 20)])
    [Insert(payload={'room': 'A'}, start=6, end=20)]
    >>> job.push("west", [ab.Insert({"room": "A"}, 6, 25), ab.Stable(22)])
    [Adjust(payload={'room': 'A'}, start=6, old_end=20, end=25), Stable(time=22)]
    """
    with users_line().named():
        named = _streams(streams, "a merge")
        inputs = same_columns([stream.node for stream in named.values()], "a merge")
        settings = merge_settings(
            case=case,
            policy=policy,
            pace=pace,
            identity=identity,
            remember=remember,
            on_broken=on_broken,
            on_late=on_late,
        )
    return Stream(Merge(inputs=inputs, names=tuple(named), **settings))


def union(*streams: Stream) -> Stream:
    """All events of several streams, as often as they are there."""
    with users_line().named():
        named = _streams(streams, "a union")
        inputs = same_columns([stream.node for stream in named.values()], "a union")
    return Stream(Union(inputs=inputs))


def _streams(given: Iterable[Any], what: str) -> dict[str, Stream]:
    """Streams by name: that of their source where each has one of its own, else their number."""
    parts = list(given)
    if len(parts) == 1 and isinstance(parts[0], Mapping):
        found = dict(parts[0])
    else:
        found = dict(zip(_names(parts), parts, strict=True))
    if not found:
        raise PlanError(f"{what} is of one stream or more, and there is none")
    for name, one in found.items():
        check_name(name)
        if isinstance(one, Replicas | ReplicasOfChanges):
            error = PlanError(f"replicas are merged before {what}, and {one.node.words()} is not")
            error.add_note("Write .merge() after it.")
            raise error
        if not isinstance(one, Stream):
            wrong = TypeError(f"{what} is of streams, {name!r} is {one!r:.200}")
            wrong.add_note(
                "Make streams with anabranch.source(…); recordings are merged by anabranch.run(plan, …)."
            )
            raise wrong
    return found


def _names(parts: list[Any]) -> list[str]:
    names = [_source_of(one.node) if isinstance(one, Stream) else "" for one in parts]
    return (
        names if len({*names}) == len(names) and "" not in names else [str(n + 1) for n in range(len(parts))]
    )


def _source_of(node: Node) -> str:
    while len(node.inputs) == 1:
        node = node.inputs[0]
    return node.name if isinstance(node, Source) else ""


def _check_elements(name: str, *others: object) -> None:
    if any(one is not None for one in others):
        error = PlanError(f"columns of {name!r} have meanings, and which of them is the start is not said")
        error.add_note(
            "Name it: start='at'. Without it, elements are pushed, whose payloads these columns are."
        )
        raise error


def _check_op(
    name: str,
    op: str | None,
    kind: str | None,
    end: str | None,
    key: tuple[str, ...] | None,
    ops: object,
    *,
    by_time: bool,
) -> None:
    """Raise where rows are half changes of a table and half events."""
    if op is None:
        if ops is None and not by_time:
            return
        what = "ops" if ops is not None else "by_time"
        error = PlanError(f"{what} is about changes of a table, and {name!r} is of events")
        error.add_note("Name the column that says what happened to a row: op='op', with key='id'.")
        raise error
    if key is None:
        error = PlanError(f"a change names the row of the table that it changes, and {name!r} has no key")
        error.add_note("Name its columns: key='id', or key=['shop', 'id'].")
        raise error
    if kind is not None or end is not None:
        what = "a kind" if kind is not None else "an end"
        error = PlanError(f"{what} is of events, and {name!r} is of changes of a table")
        error.add_note("What happened is said by op, and a row of a table ends by another change.")
        raise error


def _check_replica_names(name: str, replica: str | None, named: Mapping[str, tuple[str, ...]]) -> None:
    """Raise where replicas are named that no row can be of."""
    if replica is None and named:
        error = PlanError(f"replicas of {name!r} are named, and no column says which of them sent a row")
        error.add_note("Name it: replica='gateway'. Several sources are merged by anabranch.merge(…).")
        raise error
    check_in_replicas(named)


def _check_progress(name: str, progress: object, disorder: object) -> None:
    """Raise where progress is no model, or is inferred in two ways."""
    if progress is None:
        return
    if not isinstance(progress, Progress):
        error = TypeError(f"progress of {name!r} is a model of progress, not {progress!r:.100}")
        error.add_note("A bound on how late rows are is given as disorder='10 minutes'.")
        raise error
    if disorder is not None:
        wrong = PlanError(
            f"progress of {name!r} is inferred in one way, and disorder is given beside progress"
        )
        wrong.add_note("Leave one of them out.")
        raise wrong


def _check_lossy(lossy: object, replica: str | None, *, inferred: bool) -> None:
    if replica is not None:
        check_answered(lossy, inferred=inferred)  # type: ignore[arg-type]


def _check_whole(name: str, lossy: object) -> None:
    if lossy:
        error = PlanError(f"replicas of changes lose none, and those of {name!r} are said to be lossy")
        error.add_note("One that loses a change shows the row before it with a wrong end. Leave lossy out.")
        raise error
