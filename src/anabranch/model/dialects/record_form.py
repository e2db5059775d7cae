"""The plain dicts that a dialect's items are in JSON lines.

A field means the same in every dialect, so its name decides its type. A null end or time is infinite.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, Union

import msgspec

from anabranch.model.dialects.error import DialectError
from anabranch.model.time import BEGINNING, FOREVER

Record: TypeAlias = dict[str, Any]

_Columns = dict[str, Any]
_Tick = Annotated[int, msgspec.Meta(ge=BEGINNING, le=FOREVER)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=FOREVER)]
_ENDS = {"end", "new_end", "time"}
_TYPES: dict[str, Any] = {
    **dict.fromkeys(_ENDS, _Tick | None),
    "start": _Tick,
    "count": _Count,
    "payload": _Columns,
    "before": _Columns,
    "after": _Columns,
}


class RecordForm:
    """The kinds of record a dialect has, each with its fields; one whose name ends in ``?`` may be missing.

    >>> form = RecordForm("kind", {"open": ("payload", "start"), "stable": ("time",)})
    >>> form.parse({"kind": "stable", "time": None}) == ("stable", {"time": FOREVER})
    True
    """

    def __init__(self, tag: str, kinds: Mapping[str, tuple[str, ...]]) -> None:
        self._tag = tag
        self._fields = {kind: [name.removesuffix("?") for name in names] for kind, names in kinds.items()}
        self._struct: Any = Union[tuple(_struct(tag, kind, names) for kind, names in kinds.items())]  # noqa: UP007

    def record(self, kind: str, item: object) -> Record:
        """An item as a record of this kind."""
        record: Record = {self._tag: kind}
        for name in self._fields[kind]:
            value = getattr(item, name)
            if isinstance(value, Mapping):
                record[name] = dict(value)
            elif value is not None:
                record[name] = None if name in _ENDS and value == FOREVER else value
        return record

    def parse(self, record: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The kind of a record and the values of its fields."""
        try:
            struct = msgspec.convert(record, self._struct)
        except msgspec.ValidationError as reason:
            kind = record.get(self._tag) if isinstance(record, Mapping) else None
            raise DialectError(
                str(reason), f"the record {record!r} is no item of this dialect", self._shape(kind)
            ) from None
        kind = struct.__struct_config__.tag
        values = {name: getattr(struct, name) for name in self._fields[kind]}
        ends = {name: FOREVER for name, value in values.items() if value is None and name in _ENDS}
        return kind, values | ends

    def _shape(self, kind: object) -> str:
        if isinstance(kind, str) and kind in self._fields:
            return f"A record with {self._tag} {kind!r} has the fields {', '.join(self._fields[kind])}."
        return f"The field {self._tag!r} of a record is one of {', '.join(map(repr, self._fields))}."


def _struct(tag: str, kind: str, names: tuple[str, ...]) -> Any:
    required = [(name, _TYPES[name]) for name in names if not name.endswith("?")]
    optional = [
        (name.removesuffix("?"), _TYPES[name.removesuffix("?")] | None, None)
        for name in names
        if name.endswith("?")
    ]
    return msgspec.defstruct(
        kind, [*required, *optional], tag_field=tag, tag=kind, forbid_unknown_fields=True, kw_only=True
    )
