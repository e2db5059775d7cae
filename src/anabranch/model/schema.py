"""Which types the payload columns of one stream may have, and how batches are brought to the same ones.

A column has one sort of values in all of a stream: numbers, or text, or instants; so have the items of lists,
the fields of structs, and the keys and items of maps. Within a sort the width may change from batch to batch,
and structs may gain fields; what is held is widened, exactly or not at all. Instants may come in several time
zones: they are kept in the one that came first. Identities do not depend on any of this. A column decides its
type by its values: one that holds only nulls, or no rows, leaves it open.
"""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anabranch.errors import AnabranchError
from anabranch.model.spelling import did_you_mean
from anabranch.model.zones import cast

_UNITS = ("s", "ms", "us", "ns")
_TYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32"),
    *("float64", "float", "double", "string", "large_string", "string_view", "binary", "large_binary"),
    *("date32", "date64", "time32", "time64", "timestamp", "duration", "decimal", "decimal128", "decimal256"),
    *("list", "large_list", "struct", "map", "dictionary"),
)
"""Names of Arrow's types as people write them."""


class SchemaError(AnabranchError, TypeError):
    """Data is not in the shape of a batch, or not in that of the batches before it."""


def type_meant(name: object) -> str:
    """The end of a message about the name of a type that is none.

    >>> type_meant("tring"), type_meant("timestamp[su, tz=UTC]")
    (", did you mean 'string'?", ", did you mean 'us'?")
    """
    words = re.findall(r"[A-Za-z]\w*", str(name))[:2]
    odd = next((word for word in words if word not in (*_TYPES, *_UNITS)), None)
    return "" if odd is None else did_you_mean(odd, _TYPES if odd == words[0] else _UNITS)


@dataclass(frozen=True, slots=True)
class Columns:
    """The payload columns of the rows seen so far, and which of them have had a value."""

    schema: pa.Schema
    decided: frozenset[str] = frozenset()

    @classmethod
    def none(cls) -> "Columns":
        """No column has been seen."""
        return cls(pa.schema([]))

    def with_rows(self, rows: pa.RecordBatch) -> "Columns":
        """These columns and those of rows, in types that hold the values of both."""
        if not rows.num_columns or (
            len(self.decided) == len(self.schema) and rows.schema.equals(self.schema)
        ):
            return self
        valued = frozenset(_valued(rows, set(rows.schema.names) - self.decided)) | self.decided
        if rows.schema == self.schema:
            return self if valued == self.decided else Columns(self.schema, valued)
        fresh = _valued(rows, rows.schema.names)
        own = pa.schema([_left_open(field, rows.schema, self.decided, fresh) for field in self.schema])
        theirs = pa.schema([_left_open(field, own, fresh, self.decided) for field in rows.schema])
        return Columns(unified(own, theirs), valued)


def columns_of(parts: Sequence[pa.RecordBatch]) -> Columns:
    """The columns of rows that come one part after the other, at least one; as they are where all agree."""
    first, *others = parts
    known = Columns(first.schema, frozenset(_valued(first, first.schema.names)))
    for part in others:
        known = known.with_rows(part)
    return known


def _valued(rows: pa.RecordBatch, names: Iterable[str]) -> set[str]:
    """Those of some columns that have a value."""
    return {name for name in names if rows.column(name).null_count < rows.num_rows}


def _left_open(field: pa.Field, other: pa.Schema, decided: Set[str], theirs: Set[str]) -> pa.Field:
    """A column as it is, or in the type that others give it if only they have values of it."""
    if field.name in decided or field.name not in other.names:
        return field
    said = other.field(field.name).type
    if field.name in theirs or not sorts_agree(field.type, said):
        return field.with_type(said)
    return field


def unified(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """The columns of both, in types that hold the values of both."""
    if one == other:
        return one
    zoned = [
        field.with_type(_in_zones_of(one.field(field.name).type, field.type))
        if field.name in one.names
        else field
        for field in other
    ]
    other = pa.schema(zoned)
    for field in other:
        if field.name in one.names and not sorts_agree(one.field(field.name).type, field.type):
            raise _conflict(field.name, one.field(field.name).type, field.type)
    try:
        return pa.unify_schemas([_decoded(one), _decoded(other)], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as reason:
        raise SchemaError(f"payload columns of one stream have one sort of values each: {reason}") from None


def conformed(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with the columns and types of a schema; what they do not have is null.

    Local times that come into a column with a zone are of that zone.
    """
    if rows.schema == schema:
        return rows
    columns = []
    for field in schema:
        if field.name not in rows.schema.names:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(field.name)
        if column.null_count == rows.num_rows and column.type != field.type:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        if pa.types.is_dictionary(column.type) and column.type != field.type:
            column = column.dictionary_decode()
        try:
            columns.append(cast(column, field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
            error = SchemaError(
                f"payload column {field.name!r} cannot be {field.type} without loss: {reason}"
            )
            error.add_note("Give the column one type before it enters the stream.")
            raise error from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check_field_names(dtype: pa.DataType, what: str) -> None:
    """Raise where a struct, however deep in a type, has two fields of one name."""
    if pa.types.is_dictionary(dtype):
        check_field_names(dtype.value_type, what)
        return
    fields = [dtype.field(n) for n in range(dtype.num_fields)]
    names = [field.name for field in fields]
    if pa.types.is_struct(dtype) and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        error = SchemaError(f"a struct has one field of each name, {what} has two called {twice!r}")
        error.add_note("A name stands for one value; rename the others.")
        raise error
    for field in fields:
        check_field_names(field.type, f"{what}.{field.name}" if pa.types.is_struct(dtype) else what)


def sorts_agree(one: pa.DataType, other: pa.DataType) -> bool:
    """Both types hold values of one sort, all the way down; nulls are of every sort.

    >>> sorts_agree(pa.list_(pa.int32()), pa.list_(pa.float64()))
    True
    >>> sorts_agree(pa.list_(pa.string()), pa.list_(pa.binary()))
    False
    """
    before, now = sort_of(one), sort_of(other)
    if before is None or now is None:
        return True
    if before != now:
        return False
    one, other = _values(one), _values(other)
    match before:
        case "list":
            return sorts_agree(one.value_type, other.value_type)
        case "struct":
            fields = {field.name: field.type for field in one}
            return all(sorts_agree(fields[field.name], field.type) for field in other if field.name in fields)
        case "map":
            return sorts_agree(one.key_type, other.key_type) and sorts_agree(one.item_type, other.item_type)
        case _:
            return True


def sort_of(dtype: pa.DataType) -> Any:
    """What kind of values a type holds, whatever their width; None for a column of nulls."""
    types = pa.types
    dtype = _values(dtype)
    for belongs, sort in (
        (types.is_null, None),
        (types.is_boolean, "boolean"),
        (lambda t: types.is_integer(t) or types.is_floating(t), "number"),
        (types.is_decimal, "decimal"),
        (lambda t: types.is_string(t) or types.is_large_string(t) or types.is_string_view(t), "text"),
        (_is_binary, "binary"),
        (types.is_date, "date"),
        (types.is_time, "time of day"),
        (types.is_duration, "duration"),
        (_is_list, "list"),
        (types.is_struct, "struct"),
        (types.is_map, "map"),
    ):
        if belongs(dtype):
            return sort
    if types.is_timestamp(dtype):
        return "local time" if dtype.tz is None else "instant"
    return str(dtype.id)


def _is_binary(dtype: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_binary(dtype)
        or types.is_large_binary(dtype)
        or types.is_binary_view(dtype)
        or types.is_fixed_size_binary(dtype)
    )


def _is_list(dtype: pa.DataType) -> bool:
    types = pa.types
    return types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype)


def _values(dtype: pa.DataType) -> pa.DataType:
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _decoded(schema: pa.Schema) -> pa.Schema:
    """A schema in which dictionaries are the values they stand for, and any column may be null."""
    return pa.schema([field.with_type(_decoded_type(field.type)).with_nullable(True) for field in schema])


def _decoded_type(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(dtype):
        return _decoded_type(dtype.value_type)
    if pa.types.is_struct(dtype):
        return pa.struct([field.with_type(_decoded_type(field.type)) for field in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_decoded_type(dtype.value_type)))
    if pa.types.is_large_list(dtype):
        return pa.large_list(dtype.value_field.with_type(_decoded_type(dtype.value_type)))
    return dtype


def _in_zones_of(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type with its instants in the time zones of another."""
    types = pa.types
    one = _values(one)
    if types.is_dictionary(other):
        return other if types.is_nested(other.value_type) else _zoned_dictionary(one, other)
    if types.is_timestamp(one) and types.is_timestamp(other):
        return pa.timestamp(other.unit, one.tz) if one.tz and other.tz else other
    if types.is_struct(one) and types.is_struct(other):
        fields = {field.name: field.type for field in one}
        return pa.struct([f.with_type(_in_zones_of(fields.get(f.name, f.type), f.type)) for f in other])
    if types.is_map(one) and types.is_map(other):
        key, item = _in_zones_of(one.key_type, other.key_type), _in_zones_of(one.item_type, other.item_type)
        return pa.map_(key, item)
    if _is_list(one) and _is_list(other):
        items = other.value_field.with_type(_in_zones_of(one.value_type, other.value_type))
        if types.is_fixed_size_list(other):
            return pa.list_(items, other.list_size)
        return pa.large_list(items) if types.is_large_list(other) else pa.list_(items)
    return other


def _zoned_dictionary(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return pa.dictionary(other.index_type, _in_zones_of(one, other.value_type), other.ordered)


def _conflict(name: str, before: pa.DataType, now: pa.DataType) -> SchemaError:
    error = SchemaError(f"payload column {name!r} was {before} and is now {now}")
    error.add_note("One column has one sort of values in all of a stream; give the odd ones another column.")
    return error
