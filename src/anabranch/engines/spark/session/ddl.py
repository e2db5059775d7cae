"""Columns and their types as Spark writes them, read without Spark into the types it hands to Python.

What is not understood here is for Spark to read.
"""

import re

import pyarrow as pa

from anabranch.engines.spark.session.row_types import PRECISION, list_of, map_of
from anabranch.errors import AnabranchError
from anabranch.model.spelling import did_you_mean

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:])")
_OTHERS = "char varchar character numeric dec interval void variant time geometry geography object"
"""Types of Spark's that are left to it."""
_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_INSTANTS = ("timestamp", "timestamp_ltz")


class UnknownTypeError(AnabranchError, ValueError):
    """A word stands where a type is, and is none of Spark's."""


class _NotReadError(AnabranchError):
    """A text that is for Spark to read."""


def columns_of_ddl(text: str, zone: str) -> pa.Schema | None:
    """The columns of a text such as ``sensor string, at timestamp``; None where only Spark can tell.

    ``zone`` is the time zone in which instants are shown.

    >>> columns_of_ddl("sensor string, at timestamp", "UTC").types
    [DataType(string), TimestampType(timestamp[us, tz=UTC])]
    """
    words: list[str] = []
    place = 0
    while text[place:].strip():
        found = _TOKEN.match(text, place)
        if found is None:
            return None
        words.append(found[1])
        place = found.end()
    try:
        return pa.schema(_Parser(words, text, zone).columns())
    except (_NotReadError, IndexError):
        return None


class _Parser:
    def __init__(self, words: list[str], text: str, zone: str) -> None:
        self.words, self.text, self.at = words, text, 0
        self.plain = _PLAIN | dict.fromkeys(_INSTANTS, pa.timestamp("us", zone))

    def columns(self, closed_by: str | None = None) -> list[pa.Field]:
        fields: list[pa.Field] = []
        while True:
            name = self._take()
            if not re.fullmatch(r"`.*`|\w+", name, re.DOTALL):
                raise _NotReadError
            if self._next() == ":":
                self._take()
            kind = self._type()
            nullable = True
            if self._next().lower() == "not":
                self._expect("not", "null")
                nullable = False
            if self._next().lower() == "comment":
                self.at += 2
            fields.append(pa.field(name.strip("`").replace("``", "`"), kind, nullable))
            if self.at == len(self.words) and closed_by is None:
                return fields
            after = self._take()
            if after == closed_by:
                return fields
            if after != ",":
                raise _NotReadError

    def _type(self) -> pa.DataType:
        word = self._take()
        match word.lower():
            case "decimal":
                if self._next() != "(":
                    return pa.decimal128(10, 0)
                self._take()
                precision, scale = self._number(), 0
                if self._take() == ",":
                    scale = self._number()
                    self._expect(")")
                if not 0 <= scale <= precision <= PRECISION or precision == 0:
                    raise _NotReadError
                return pa.decimal128(precision, scale)
            case "array":
                self._expect("<")
                inside = self._type()
                self._expect(">")
                return list_of(inside)
            case "map":
                self._expect("<")
                key = self._type()
                self._expect(",")
                value = self._type()
                self._expect(">")
                return map_of(key, value)
            case "struct":
                self._expect("<")
                return pa.struct(self.columns(">"))
        if word.lower() in self.plain:
            return self.plain[word.lower()]
        raise self._unknown(word, [*self.plain, "decimal", "array", "map", "struct"])

    def _unknown(self, word: str, known: list[str]) -> Exception:
        if not word.isidentifier() or word.lower() in _OTHERS.split():
            return _NotReadError()
        error = UnknownTypeError(
            f"a schema is columns and their types, and in {self.text!r} {word!r} is no type of Spark's"
            f"{did_you_mean(word, known)}"
        )
        error.add_note("Write it as 'sensor string, at timestamp'.")
        return error

    def _number(self) -> int:
        word = self._take()
        if not word.isdecimal():
            raise _NotReadError
        return int(word)

    def _take(self) -> str:
        self.at += 1
        return self.words[self.at - 1]

    def _next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def _expect(self, *words: str) -> None:
        for word in words:
            if self._take().lower() != word:
                raise _NotReadError
