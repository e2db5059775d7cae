"""Invalid elements as JSON lines, with why each was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.model.validity import Violation


SHOWN = 5
"""Rows that were left out and are shown."""


def record(violation: Violation, file: str) -> dict[str, Any]:
    """A violation as a JSON object; the element is in the text notation, or the raw line if it is none."""
    from anabranch.cli.display import element_text, time_field

    return {
        "file": file,
        "code": violation.code,
        **({"place": violation.place} if violation.place else {"position": violation.position}),
        "input": violation.input,
        "element": element_text(violation.element),
        **time_field("frontier", violation.frontier),
        "message": violation.message,
        "way_out": violation.rule.way_out,
    }


@dataclass
class Refusals:
    """What was left out of each file, by rule; where ``kept``, the elements themselves too."""

    kept: bool
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    violations: list[tuple[str, Violation]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    """The first rows of files that were left out: where each is, and why."""

    def sink(self, path_of: Callable[[Violation], str]) -> Callable[[Violation], None]:
        """What hears of elements that are left out."""

        def hear(violation: Violation) -> None:
            path = path_of(violation)
            self.counts.setdefault(path, Counter())[violation.code] += 1
            if violation.place and len(self.rows) < SHOWN:
                self.rows.append(f"  {violation.place}: {violation.detail or violation.message}")
            if self.kept:
                self.violations.append((path, violation))

        return hear

    def lines(self) -> list[str]:
        """What was left out as people read it."""
        lines = [
            f"left out of {path}: {', '.join(f'{count} {code}' for code, count in codes.items())}"
            for path, codes in self.counts.items()
        ]
        more = sum(codes.total() for codes in self.counts.values()) - len(self.rows)
        if self.rows and more > 0:
            return [*lines, *self.rows, f"  and {more:,} more; --quarantine FILE keeps all of them"]
        return lines + self.rows


def check_target(target: str | None, sources: Sequence[str]) -> None:
    """What is quarantined is not written over what is read."""
    if target is not None and any(Path(target).resolve() == Path(path).resolve() for path in sources):
        raise ValueError(f"--quarantine would write over {target}, which is being read")


def write(violations: Iterable[tuple[str, Violation]], path: str) -> None:
    """All violations, with the files they are in, one per line."""
    import json

    from anabranch.connectors.files.writing import whole

    with whole(path) as file:
        for name, violation in violations:
            file.write(json.dumps(record(violation, name), ensure_ascii=False).encode() + b"\n")
