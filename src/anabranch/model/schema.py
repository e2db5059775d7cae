"""Which types the payload columns of one stream may have, and how batches are brought to the same ones.

A column has one sort of values in all of a stream: numbers, or text, or instants; so have the items of lists,
the fields of structs, and the keys and items of maps. Within a sort the width may change from batch to batch,
and structs may gain fields; what is held is widened, exactly or not at all. Identities do not depend on it.
"""

from typing import Any

import pyarrow as pa


class SchemaError(TypeError):
    """Data is not in the shape of a batch, or not in that of the batches before it."""


def unified(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """The columns of both, in types that hold the values of both."""
    if one == other:
        return one
    for field in other:
        if field.name in one.names and not sorts_agree(one.field(field.name).type, field.type):
            raise _conflict(field.name, one.field(field.name).type, field.type)
    try:
        return pa.unify_schemas([_decoded(one), _decoded(other)], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as reason:
        raise SchemaError(f"payload columns of one stream have one sort of values each: {reason}") from None


def conformed(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with the columns and types of a schema; what they do not have is null."""
    if rows.schema == schema:
        return rows
    columns = []
    for field in schema:
        if field.name not in rows.schema.names:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(field.name)
        if pa.types.is_dictionary(column.type) and column.type != field.type:
            column = column.dictionary_decode()
        try:
            columns.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
            error = SchemaError(
                f"payload column {field.name!r} cannot be {field.type} without loss: {reason}"
            )
            error.add_note("Give the column one type before it enters the stream.")
            raise error from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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


def sort_of(kind: pa.DataType) -> Any:
    """What kind of values a type holds, whatever their width; None for a column of nulls."""
    types = pa.types
    kind = _values(kind)
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
        if belongs(kind):
            return sort
    if types.is_timestamp(kind):
        return "local time" if kind.tz is None else "instant"
    return str(kind.id)


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _decoded(schema: pa.Schema) -> pa.Schema:
    """A schema in which dictionaries are the values they stand for, and any column may be null."""
    return pa.schema([field.with_type(_decoded_type(field.type)).with_nullable(True) for field in schema])


def _decoded_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _decoded_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_decoded_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_decoded_type(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_decoded_type(kind.value_type)))
    return kind


def _conflict(name: str, before: pa.DataType, now: pa.DataType) -> SchemaError:
    error = SchemaError(f"payload column {name!r} was {before} and is now {now}")
    error.add_note("One column has one sort of values in all of a stream; give the odd ones another column.")
    return error
