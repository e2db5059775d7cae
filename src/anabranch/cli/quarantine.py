"""Invalid elements as JSON lines, with why each was refused."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.model.validity import Violation


def record(violation: Violation) -> dict[str, Any]:
    """A violation as a JSON object; the element is in the text notation, or the raw line if it is none."""
    from anabranch.model.notation import line_of
    from anabranch.model.time import BEGINNING

    element = violation.element
    return {
        "code": violation.code,
        "position": violation.position,
        "input": violation.input,
        "element": element if isinstance(element, str) else line_of(element),
        "frontier": None if violation.frontier == BEGINNING else violation.frontier,
        "message": violation.message,
        "way_out": violation.rule.way_out,
    }


def write(violations: Iterable[Violation], path: str) -> None:
    """All violations to a file, one per line."""
    import json

    with Path(path).open("w") as file:
        for violation in violations:
            file.write(json.dumps(record(violation), ensure_ascii=False) + "\n")
