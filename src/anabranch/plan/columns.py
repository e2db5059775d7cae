"""The columns of rows, as people write them: an Arrow schema, or names with types."""

import re
from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

import pyarrow as pa

from anabranch.model.schema import SchemaError, check_field_names, type_meant
from anabranch.model.spelling import did_you_mean
from anabranch.model.zones import in_zones, known_as

_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:,\s*(?:tz=)?([^\]]+))?\]")
_DECIMAL = re.compile(r"decimal(?:128)?\((\d+)(?:,\s*(-?\d+))?\)")
_LIST = re.compile(r"list<(.+)>")


def schema_of(given: Any) -> pa.Schema:
    """A schema, from one, from a mapping of names to types, or from anything that has one for Arrow.

    Zones are spelt as in the IANA database: `Utc` is `UTC`.

    >>> schema_of({"room": "string", "at": "timestamp[us, tz=UTC]"}).field("at").type
    TimestampType(timestamp[us, tz=UTC])
    """
    if isinstance(given, pa.Schema):
        schema = given
    elif isinstance(given, Mapping):
        schema = pa.schema([(name, type_of(dtype, name)) for name, dtype in given.items()])
    elif hasattr(given, "__arrow_c_schema__"):
        schema = pa.schema(given)
    else:
        error = TypeError(f"columns are an Arrow schema or a mapping of names to types, not {given!r:.200}")
        error.add_note('Write for example {"sensor": "string", "level": "float64"}.')
        raise error
    twice = [name for name in schema.names if schema.names.count(name) > 1]
    if twice:
        raise SchemaError(f"a name stands for one column, two are called {twice[0]!r}")
    for one in schema:
        check_field_names(one.type, f"column {one.name!r}")
        for zone in zones_in(one.type):
            _check_zone(known_as(zone), one.name)
    if any(known_as(zone) != zone for one in schema for zone in zones_in(one.type)):
        schema = pa.schema([one.with_type(in_zones(one.type, known_as)) for one in schema])
    return schema.remove_metadata()


def type_of(given: Any, column: str) -> pa.DataType:
    """A type, from one or from its name."""
    if isinstance(given, pa.DataType):
        return given
    known = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}
    if isinstance(given, type) and given in known:
        return known[given]
    text = str(given).strip()
    if found := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(found[1], found[2])
    if found := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(found[1]), int(found[2] or 0))
    if found := _LIST.fullmatch(text):
        return pa.list_(type_of(found[1], column))
    try:
        return pa.type_for_alias(text)
    except ValueError:
        error = SchemaError(f"a type is one of Arrow's, column {column!r} has {given!r}{type_meant(text)}")
        error.add_note(
            "For example string, int64, float64, bool, date32, timestamp[us, tz=UTC], decimal(10, 2)."
        )
        raise error from None


def zones_in(dtype: pa.DataType) -> tuple[str, ...]:
    """The time zones in a type, however deep."""
    if pa.types.is_timestamp(dtype):
        return () if dtype.tz is None else (dtype.tz,)
    return tuple(zone for n in range(dtype.num_fields) for zone in zones_in(dtype.field(n).type))


def _check_zone(zone: str, column: str) -> None:
    """Raise where no time can be shown in a zone, for Arrow itself takes any text until it shows one."""
    try:
        pa.lib.string_to_tzinfo(zone)
    except Exception:  # of pytz or of zoneinfo, whichever is installed
        error = SchemaError(
            f"column {column!r} has timestamps of the time zone {zone!r}, and there is none of that name"
            f"{did_you_mean(zone, sorted(available_timezones()))}"
        )
        error.add_note("Name it as the IANA database does ('Europe/Berlin', 'UTC'), or write '+01:00'.")
        raise error from None
