"""Columns and their types as Spark writes them, read without Spark: mistakes are told before it starts.

What is not understood here is for Spark to read.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from anabranch.errors import AnabranchError
from anabranch.model.spelling import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:])")
_OTHERS = "char varchar character numeric dec interval void variant time geometry geography object"
"""Types of Spark's that are left to it."""


class UnknownTypeError(AnabranchError, ValueError):
    """A word stands where a type is, and is none of Spark's."""


class _NotReadError(AnabranchError):
    """A text that is for Spark to read."""


def struct_of_ddl(text: str) -> "StructType | None":
    """The columns of a text such as ``sensor string, at timestamp``; None where only Spark can tell."""
    words: list[str] = []
    place = 0
    while text[place:].strip():
        found = _TOKEN.match(text, place)
        if found is None:
            return None
        words.append(found[1])
        place = found.end()
    try:
        return _Parser(words, text).columns()
    except (_NotReadError, IndexError):
        return None


class _Parser:
    def __init__(self, words: list[str], text: str) -> None:
        self.words, self.text, self.at = words, text, 0

    def columns(self, closed_by: str | None = None) -> "StructType":
        from pyspark.sql.types import StructType

        struct = StructType()
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
            struct = struct.add(name.strip("`").replace("``", "`"), kind, nullable)
            if self.at == len(self.words) and closed_by is None:
                return struct
            after = self._take()
            if after == closed_by:
                return struct
            if after != ",":
                raise _NotReadError

    def _type(self) -> "DataType":
        from pyspark.sql import types as t

        word = self._take()
        match word.lower():
            case "decimal":
                if self._next() != "(":
                    return t.DecimalType()
                self._take()
                precision, scale = int(self._take()), 0
                if self._take() == ",":
                    scale = int(self._take())
                    self._expect(")")
                return t.DecimalType(precision, scale)
            case "array":
                self._expect("<")
                inside = self._type()
                self._expect(">")
                return t.ArrayType(inside)
            case "map":
                self._expect("<")
                key = self._type()
                self._expect(",")
                value = self._type()
                self._expect(">")
                return t.MapType(key, value)
            case "struct":
                self._expect("<")
                return self.columns(">")
        plain = _plain()
        if word.lower() in plain:
            return plain[word.lower()]()
        raise self._unknown(word, [*plain, "decimal", "array", "map", "struct"])

    def _unknown(self, word: str, known: list[str]) -> Exception:
        if not word.isidentifier() or word.lower() in _OTHERS.split():
            return _NotReadError()
        error = UnknownTypeError(
            f"a schema is columns and their types, and in {self.text!r} {word!r} is no type of Spark's"
            f"{did_you_mean(word, known)}"
        )
        error.add_note("Write it as 'sensor string, at timestamp'.")
        return error

    def _take(self) -> str:
        self.at += 1
        return self.words[self.at - 1]

    def _next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def _expect(self, *words: str) -> None:
        for word in words:
            if self._take().lower() != word:
                raise _NotReadError


def _plain() -> dict[str, Callable[[], "DataType"]]:
    from pyspark.sql import types as t

    return {
        "boolean": t.BooleanType,
        "tinyint": t.ByteType,
        "byte": t.ByteType,
        "smallint": t.ShortType,
        "short": t.ShortType,
        "int": t.IntegerType,
        "integer": t.IntegerType,
        "bigint": t.LongType,
        "long": t.LongType,
        "float": t.FloatType,
        "real": t.FloatType,
        "double": t.DoubleType,
        "date": t.DateType,
        "timestamp": t.TimestampType,
        "timestamp_ltz": t.TimestampType,
        "timestamp_ntz": t.TimestampNTZType,
        "string": t.StringType,
        "binary": t.BinaryType,
    }
