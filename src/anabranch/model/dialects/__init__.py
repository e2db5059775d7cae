"""Dialects are other physical ways to write a stream.

Each dialect is a module with items of its own, and the same four functions:

- ``read(items)`` gives our elements and ``write(elements)`` gives items, one after the other as they come.
  Both keep only what can still change: what a stable has frozen, they have forgotten.
- ``to_record(item)`` and ``from_record(record)`` are an item as a plain dict, for JSON lines.

After every element the items written so far denote the same relation and the same stable as the elements do
(`change_rows` says how far this holds for it), and what is read back is equivalent at each of these prefixes.
Where a dialect has no words for an element, a `DialectError` says so instead. Streams that are written are
valid; elements that are read are as valid as the items were, and are judged where they are applied.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from anabranch.model.dialects import cedr, change_rows, external_cti, modify, open_close
from anabranch.model.dialects.error import DialectError
from anabranch.model.dialects.record_form import Record
from anabranch.model.elements import Element

__all__ = ["DIALECTS", "Dialect", "DialectError"]


class Dialect(Protocol):
    """What each of the modules is; some take more keywords."""

    def read(self, items: Iterable[Any]) -> Iterator[Element]:
        """The elements that items stand for."""

    def write(self, elements: Iterable[Element]) -> Iterator[Any]:
        """The items that say the same as elements."""

    def to_record(self, item: Any) -> Record:
        """An item as a plain dict."""

    def from_record(self, record: Mapping[str, Any]) -> Any:
        """The item a plain dict stands for."""


DIALECTS: dict[str, Dialect] = {
    "modify": modify,
    "open-close": open_close,
    "cedr": cedr,
    "external-cti": external_cti,
    "change-rows": change_rows,
}
"""The dialects by the name that people call them."""
