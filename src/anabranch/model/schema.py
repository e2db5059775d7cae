"""Which types the payload columns of one stream may have, and how batches are brought to the same ones.

A column has one sort of values in all of a stream: numbers, or text, or instants. Within a sort the width may
change from batch to batch, and what is held is widened, exactly or not at all. Identities do not depend on
it.
"""

from typing import Any

import pyarrow as pa


class SchemaError(TypeError):
    """Data is not in the shape of a batch."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.add_note("A batch has the columns kind, start, end, old_end and those of the payload.")


def unified(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """The columns of both, in types that hold the values of both."""
    if one == other:
        return one
    for field in other:
        if field.name in one.names:
            before, now = sort_of(one.field(field.name).type), sort_of(field.type)
            if None not in (before, now) and before != now:
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


def sort_of(kind: pa.DataType) -> Any:
    """What kind of values a type holds, whatever their width; None for a column of nulls."""
    types = pa.types
    for belongs, sort in (
        (types.is_null, None),
        (types.is_boolean, "boolean"),
        (lambda t: types.is_integer(t) or types.is_floating(t), "number"),
        (types.is_decimal, "decimal"),
        (lambda t: types.is_string(t) or types.is_large_string(t) or types.is_string_view(t), "text"),
        (lambda t: types.is_binary(t) or types.is_large_binary(t) or types.is_binary_view(t), "binary"),
        (types.is_date, "date"),
        (types.is_time, "time of day"),
        (types.is_duration, "duration"),
    ):
        if belongs(kind):
            return sort
    if types.is_dictionary(kind):
        return sort_of(kind.value_type)
    if types.is_timestamp(kind):
        return "local time" if kind.tz is None else "instant"
    return "list" if types.is_list(kind) or types.is_large_list(kind) else str(kind.id)


def _decoded(schema: pa.Schema) -> pa.Schema:
    """A schema in which dictionaries are the values they stand for."""
    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in schema
        ]
    )


def _conflict(name: str, before: pa.DataType, now: pa.DataType) -> SchemaError:
    error = SchemaError(f"payload column {name!r} was {before} and is now {now}")
    error.add_note("One column has one sort of values in all of a stream; give the odd ones another column.")
    return error
