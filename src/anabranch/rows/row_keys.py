"""The keys that rows of JSON and mappings have, beside the columns of their source.

A key that is no column is passed over, and a column that no row has is null: both may be meant,
and both are what a misspelt name looks like. So they are counted, and reported where a run ends.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgspec

from anabranch.model.spelling import did_you_mean

MOST, SHOWN = 1_000, 5
"""Different keys that are counted, and that are told."""
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(slots=True)
class RowKeys:
    """State: how many rows there were, and how many had each key."""

    rows: int = 0
    having: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Iterable[Iterable[str]]) -> None:
        """Count the keys of rows."""
        for keys, count in Counter(map(tuple, rows)).items():
            self.rows += count
            for key in keys:
                if key in self.having or len(self.having) < MOST:
                    self.having[key] += count

    def add_texts(self, texts: Iterable[bytes]) -> None:
        """Count the keys of rows that are objects of JSON; what is none is refused elsewhere."""
        self.add(filter(None, map(_keys, texts)))

    def join(self, other: "RowKeys") -> None:
        """Count what another has counted."""
        self.rows += other.rows
        for key, count in other.having.items():
            if key in self.having or len(self.having) < MOST:
                self.having[key] += count

    def remarks(self, columns: Collection[str], given: Collection[str | None] = ()) -> list[str]:
        """What a person should look at; columns that are ``given`` beside the rows need not be in them.

        >>> keys = RowKeys()
        >>> keys.add([{"romo": "A", "at": 1}, {"romo": "B", "at": 2}])
        >>> print(*keys.remarks(["room", "at"]), sep="\\n")
        2 of 2 rows have 'romo', which is no column, did you mean 'room'?
        none of 2 rows has column 'room'
        """
        absent = [name for name in columns if not self.having[name] and name not in given]
        strange = [(key, count) for key, count in self.having.most_common() if key not in columns]
        found = [
            f"{count:,} of {self.rows:,} rows have {str(key)!r}, which is no column"
            f"{did_you_mean(key, absent) or did_you_mean(key, columns)}"
            for key, count in strange[:SHOWN]
        ]
        if len(strange) > SHOWN:
            found.append(f"{len(strange) - SHOWN:,} other keys of rows are no columns")
        if not self.rows:
            return []
        return [*found, *(f"none of {self.rows:,} rows has column {name!r}" for name in absent)]


def _keys(text: bytes) -> tuple[str, ...]:
    try:
        return tuple(_decoder.decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
