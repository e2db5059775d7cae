"""``[sink]`` of a plan: where what comes out is written, on Spark or without."""

from __future__ import annotations

from anabranch.connectors.files.formats import format_of
from anabranch.jobs.ends import SinkSection
from anabranch.jobs.sections import one_of

STANDARD = "-"
FOLDER_FORMATS = ("parquet", "jsonl", "arrow")


class PlanSinkSection(SinkSection, kw_only=True):
    """``[sink]``: as of a merge; and one file, or standard output, which need no Spark."""

    file: str | None = None
    """One file, in the format that its ending tells; ``-`` is standard output."""

    def check(self) -> None:
        """Raise where keys do not go together, or a word is not known."""
        given = [key for key in ("path", "file", "kafka", "table") if getattr(self, key) is not None]
        if len(given) > 1:
            error = ValueError(
                f"[sink] has one of path, file, kafka and table, and has {' and '.join(given)}"
            )
            error.add_note('Write path = "out" for a folder, or file = "out.parquet".')
            raise error
        if self.file is not None or not given:
            one_of("[sink] format", self.format, dict.fromkeys((*FOLDER_FORMATS, "text")))
            return
        if self.path is not None and self.format == "arrow":
            return
        SinkSection.check(self)

    def check_format(self, given: str | None) -> None:
        """Raise where a format is written beside a file, and the file is in another."""
        if given is None or self.path is not None or self.needs_spark is not None:
            return
        place = self.file or STANDARD
        told = format_of(place).value
        if given == told:
            return
        what = "standard output" if place == STANDARD else repr(place)
        error = ValueError(f"[sink] format is {given!r}, and {what} is written as {told!r}")
        error.add_note("The ending of a file tells its format: leave format out, or give another ending.")
        raise error

    @property
    def needs_spark(self) -> str | None:
        """The key that only Spark can write to."""
        return next((key for key in ("kafka", "table") if getattr(self, key) is not None), None)
