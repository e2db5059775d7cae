"""An address of another store is refused by name wherever a job names a folder, and nothing is made."""

from pathlib import Path

import pytest

from anabranch.cli.main import MISUSE, main
from anabranch.jobs.job_file import read_job

MERGE = '[merge]\nstart = "at"\n'
FOLDER, SINK = '[source]\npath = "feeds"\nschema = "at long"\n', '[sink]\npath = "out"\n'
SOURCES = {
    "path": '[source]\npath = "{}"\n' + MERGE,
    "delta": '[source.delta]\ntables = "{}"\n[changes]\nkey = "id"\ntime = "time"\ndisorder = "1 second"\n',
    "replicas": '[source.delta]\ntables = {{ a = "lake/a", b = "{}" }}\n'
    '[changes]\nkey = "id"\ntime = "time"\ndisorder = "1 second"\n',
}
SINKS = {
    "path": '[sink]\npath = "{}"\n',
    "table": '[sink.table]\npath = "{}"\nkind = "history"\n',
    "checkpoint": SINK + 'checkpoint = "{}"\n',
    "quarantine": SINK + 'quarantine = "{}"\n',
    "log": SINK + '[spark]\nlog = "{}"\n',
}
JOBS = {
    **{f"source {name}": text + SINK for name, text in SOURCES.items()},
    **{f"sink {name}": FOLDER + MERGE + text for name, text in SINKS.items()},
}


@pytest.mark.parametrize("text", JOBS.values(), ids=JOBS.keys())
def test_a_job_that_names_an_address_is_refused_and_nothing_is_made(tmp_path, capsys, text):
    file = tmp_path / "job.toml"
    file.write_text(text.format("s3a://bucket/place"))
    assert main(["run", str(file)]) == MISUSE
    assert "'s3a://bucket/place' is an address of s3a" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["job.toml"]


@pytest.mark.parametrize("command", [["run", "--check"], ["doctor"]], ids=" ".join)
def test_every_command_refuses_an_address_in_the_same_words(tmp_path, capsys, command):
    file = tmp_path / "job.toml"
    file.write_text(JOBS["sink path"].format("s3a://bucket/place"))
    assert main([*command, str(file)]) != 0
    said = capsys.readouterr()
    assert "'s3a://bucket/place' is an address of s3a" in said.out + said.err
    assert [one.name for one in tmp_path.iterdir()] == ["job.toml"]


@pytest.mark.parametrize(
    "address", ["s3:/bucket/x", "gs:bucket", "dbfs:/x", "abfss://a@b/x", "hdfs:///x", "ftp://h/x"]
)
def test_an_address_is_known_by_its_scheme(tmp_path, address):
    file = tmp_path / "job.toml"
    file.write_text(FOLDER + MERGE + SINKS["path"].format(address))
    with pytest.raises(ValueError, match=f"'{address}' is an address of {address.split(':')[0]}"):
        read_job(str(file))


def test_a_name_with_a_colon_is_a_name_and_a_file_address_is_a_path(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(FOLDER + MERGE + SINKS["path"].format("out:2026"))
    assert read_job(str(file)).folder == tmp_path / "out:2026"
    file.write_text(FOLDER + MERGE + SINKS["path"].format("file:///data/out"))
    assert read_job(str(file)).folder == Path("/data/out")


def test_a_source_of_sparks_may_have_an_address(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text('[source]\nformat = "json"\npath = "s3a://bucket/feeds"\n' + MERGE + SINK)
    assert read_job(str(file)).ends["rows"].path == "s3a://bucket/feeds"
