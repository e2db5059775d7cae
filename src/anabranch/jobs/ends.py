"""``[source]`` and ``[sink]``: where the rows of a job come from and where they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import field

from anabranch.connectors.files.formats import STANDARD, format_of
from anabranch.engines.spark.one_row import SCD, check_one_row, is_scd
from anabranch.jobs.delta_sections import DeltaSourceSection
from anabranch.jobs.kafka_sections import KafkaSinkSection, KafkaSourceSection
from anabranch.jobs.merge_sections import ChangesSection, MergeSection
from anabranch.jobs.sections import Names, Section, one_of
from anabranch.kernels.merge.settings import case_named, properties_of
from anabranch.plan.one_row import policy_of_changes, several_open_rows
from anabranch.rows.layout import names_of

if TYPE_CHECKING:
    from anabranch.connectors.tables.sink import TableShape

FOLDER_FORMATS = ("parquet", "jsonl", "arrow")
FILE_FORMATS = (*FOLDER_FORMATS, "text")


class SourceSection(Section):
    """``[source]``: a folder of ours, topics, Delta tables, or any source of Spark's by its format."""

    path: str | None = None
    schema: str | None = None
    by_replica: bool | None = None
    values: str | None = None
    """What lines of JSON in a folder are: envelopes of Debezium's; None: rows."""
    zone: str | None = None
    """The time zone of texts of times that name none; None: that of the Spark session."""
    files_per_trigger: int | None = None
    bytes_per_trigger: int | None = None
    rows_per_trigger: int | None = None
    kafka: KafkaSourceSection | None = None
    delta: DeltaSourceSection | None = None
    format: str | None = None
    options: dict[str, str | int | float | bool] = field(default_factory=dict)
    select: list[str] = field(default_factory=list)
    """SQL expressions for the columns, where they are not those of the source."""

    def check(self) -> None:
        """Raise where keys do not go together."""
        if self.delta is not None:
            self._check_delta(self.delta)
            return
        self._check_zone()
        self._check_values()
        limits = ("files_per_trigger", "bytes_per_trigger", "rows_per_trigger")
        if self.by_replica is not None and (self.kafka is not None or self.format is not None):
            error = ValueError("[source] by_replica is for folders, and this source is none")
            error.add_note(
                "Leave it out; the column that says who sent a row is replica in [merge] or [changes]."
            )
            raise error
        if self.kafka is not None:
            self._check_kafka(self.kafka)
            return
        if self.format is None:
            if self.path is None:
                error = ValueError(
                    "[source] is a folder, topics, Delta tables or a format of Spark's, "
                    "and it has no path, kafka, delta or format"
                )
                error.add_note('Write path = "feeds" for a folder with a sub-folder for each replica, or')
                error.add_note('kafka = { topics = "readings", servers = "localhost:9092" }, or')
                error.add_note('delta = { tables = "lake/stock" } for what changes in it, or')
                error.add_note('format = "rate" with the options of Spark in [source.options].')
                raise error
            for key in ("options", "select"):
                if getattr(self, key):
                    error = ValueError(f"[source] {key} is for a format of Spark's, and no format is given")
                    error.add_note("A folder is read as it is; name its columns in [merge] or [changes].")
                    raise error
            return
        for key in limits:
            if getattr(self, key) is not None:
                error = ValueError(f"[source] {key} is for folders, and the format is {self.format!r}")
                error.add_note(
                    "Give the source its own limit in [source.options], such as maxFilesPerTrigger."
                )
                raise error

    def _check_values(self) -> None:
        if self.values is None:
            return
        one_of("[source] values", self.values, dict.fromkeys(("debezium",)))
        if self.kafka is not None or self.format is not None:
            error = ValueError("[source] values is for folders, and this source is none")
            error.add_note("Of topics, write it in [source.kafka].")
            raise error
        if self.schema is None:
            error = ValueError("[source] has the columns of the rows in envelopes, and no schema is given")
            error.add_note("Write schema = 'id bigint, name string, …' in [source].")
            raise error

    def _check_zone(self) -> None:
        if self.zone is None:
            return
        if self.kafka is not None:
            error = ValueError("[source] zone is for folders, and [source.kafka] is given")
            error.add_note("Write it in [source.kafka].")
            raise error
        if self.format is not None:
            error = ValueError(f"[source] zone is for folders, and the format is {self.format!r}")
            error.add_note('Spark reads times in its own zone: [spark.config] "spark.sql.session.timeZone".')
            raise error
        _check_zone_name("[source]", self.zone)

    def _check_delta(self, delta: DeltaSourceSection) -> None:
        delta.check()
        for key in self.__struct_fields__:
            if key != "delta" and getattr(self, key) not in (None, {}, []):
                error = ValueError(f"[source] {key} is not for Delta tables, and [source.delta] is given")
                error.add_note("Tables have their own columns, and versions_per_trigger in [source.delta].")
                raise error

    def _check_kafka(self, kafka: KafkaSourceSection) -> None:
        kafka.check()
        if kafka.zone is not None:
            _check_zone_name("[source.kafka]", kafka.zone)
        for key in ("path", "format", "files_per_trigger", "bytes_per_trigger", "options", "select"):
            if getattr(self, key):
                error = ValueError(f"[source] {key} is not for topics, and [source.kafka] is given")
                error.add_note("With topics, [source] has schema and rows_per_trigger.")
                raise error
        if self.schema is None:
            error = ValueError("[source] has the columns of the values of records, and no schema is given")
            error.add_note("Write schema = 'sensor string, at timestamp, …' in [source].")
            raise error


def _check_zone_name(where: str, zone: str) -> None:
    from anabranch.model.zones import zone_named

    try:
        zone_named(zone)
    except ValueError as error:
        error.add_note(f"It is zone in {where}.")
        raise


class TableSinkSection(Section):
    """``[sink.table]``: the table that is kept at what the merged stream means."""

    path: str
    kind: str
    format: str = "delta"
    key: Names = field(default_factory=list)
    open_only: bool = False
    final: bool = False
    compact_every: int | None = 100
    keep: str | None = None

    def shape(self) -> TableShape:
        """What the table is."""
        from anabranch.connectors.tables.sink import TableShape

        key = names_of(self.key) or ()
        return TableShape(self.kind, self.format, key, open_only=self.open_only, final=self.final)

    def check(self) -> None:
        """Raise where a word is not known."""
        try:
            one_of("[sink.table] kind", self.kind, dict.fromkeys(("elements", "current", "history")))
        except ValueError as error:
            if is_scd(self.kind):
                error.add_note(SCD)
            raise
        one_of("[sink.table] format", self.format, dict.fromkeys(("delta", "parquet")))
        self.shape().check()


class SinkSection(Section):
    """``[sink]``: the folder, file, topic or table that the result is written to; none: standard output."""

    path: str | None = None
    file: str | None = None
    """One file, in the format that its ending names; ``-`` is standard output. It needs no Spark."""
    kafka: KafkaSinkSection | None = None
    table: TableSinkSection | None = None
    checkpoint: str | None = None
    quarantine: str | None = None
    format: str = "parquet"
    trigger: str | None = None
    available_now: bool = False

    @property
    def needs_spark(self) -> str | None:
        """The key that only Spark can write to."""
        return next((key for key in ("kafka", "table") if getattr(self, key) is not None), None)

    def fixed(self) -> dict[str, str]:
        """What a checkpoint fixes of it."""
        from anabranch.engines.spark.query.begun_with import folder_sink, topic_sink

        if self.kafka is not None:
            return topic_sink(self.kafka.topic, self.kafka.values, self.kafka.key)
        return folder_sink(self.format) if self.table is None else self.table.shape().settings()

    def check(self) -> None:
        """Raise where keys do not go together, or a word is not known."""
        from anabranch.engines.spark.query.start import check_trigger

        given = [key for key in ("path", "file", "kafka", "table") if getattr(self, key) is not None]
        if len(given) > 1:
            error = ValueError(
                f"[sink] has one of path, file, kafka and table, and this has {' and '.join(given)}"
            )
            error.add_note('Write path = "merged" for a folder, or file = "merged.parquet",')
            error.add_note('or kafka = { topic = "merged", servers = "localhost:9092" },')
            error.add_note('or table = { path = "lake/merged", kind = "history" }.')
            raise error
        for end in (self.kafka, self.table):
            if end is not None:
                end.check()
        known = FILE_FORMATS if self.file is not None or not given else FOLDER_FORMATS
        one_of("[sink] format", self.format, dict.fromkeys(known))
        if self.file is not None and (self.trigger is not None or self.available_now):
            key = "available_now" if self.trigger is None else "trigger"
            error = ValueError(
                f"[sink] {key} is for what Spark writes, and {self.file!r} is written without it"
            )
            error.add_note(f"Leave {key} out, or write path = '…' for a folder.")
            raise error
        if self.trigger is not None and not self.available_now:
            check_trigger(available_now=False, trigger=self.trigger)
        if self.trigger is not None and self.available_now:
            error = ValueError(f"[sink] reads what is there or every {self.trigger}, not both")
            error.add_note("Leave out trigger or available_now.")
            raise error

    def check_format(self, given: str | None) -> None:
        """Raise where a format is named beside a file that has another."""
        if given is None or self.path is not None or self.needs_spark is not None:
            return
        place = self.file or STANDARD
        actual = format_of(place).value
        if given == actual:
            return
        what = "standard output" if place == STANDARD else repr(place)
        error = ValueError(f"[sink] format is {given!r}, and {what} is written as {actual!r}")
        error.add_note("The ending of a file names its format: leave format out, or give another ending.")
        raise error


def check_together(source: SourceSection, merge: MergeSection | ChangesSection) -> None:
    """Raise where what is read cannot be merged so."""
    if isinstance(merge, MergeSection):
        if source.delta is not None:
            error = ValueError(
                "[source.delta] reads changes of tables, and [merge] is for rows that are events"
            )
            error.add_note('Write [changes] in its place, with key = "…" and time = "time".')
            raise error
        return
    if merge.disorder is None and merge.op == _op_of(source):
        error = ValueError(
            "this source never says how far it has come, and [changes] has no disorder; "
            "nothing would ever become stable, and the state would grow for ever"
        )
        error.add_note("Say how far times of commits may go back, such as disorder = '10 seconds'.")
        raise error


def check_table(merge: MergeSection | ChangesSection, sink: SinkSection) -> None:
    """Raise where a table cannot be kept at what comes of a merge."""
    if not isinstance(merge, ChangesSection) or sink.table is None or sink.table.kind != "history":
        return
    given = merge.arguments()
    case, properties = case_named(given.get("case")), properties_of(given.get("properties"))
    policy = given.get("policy") or policy_of_changes(case, properties)
    check_one_row(several_open_rows(policy, case, properties))


def _op_of(source: SourceSection) -> str | None:
    """The column of ops that the source itself writes, in which no row ever says stable."""
    if source.delta is not None:
        return source.delta.op
    if source.kafka is not None:
        return "op" if source.kafka.values == "debezium" else None
    return "op" if source.values == "debezium" else None
