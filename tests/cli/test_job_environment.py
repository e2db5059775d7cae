"""Texts of a job from the environment, keys in the table of another, and misuse in a line."""

import pytest

from anabranch.cli.main import MISUSE, main
from anabranch.jobs.environment import filled
from anabranch.jobs.job_file import read_job

JOB = """
[source]
schema = "at timestamp"
[source.kafka]
servers = "${SERVERS}"
topics = { east = "${PREFIX}-east", west = { name = "west", servers = "${SERVERS}" } }
config = { "sasl.password" = "a${PREFIX}b", "sasl.username" = "$${PREFIX}" }
[merge]
start = "at"
disorder = "1 second"
[sink]
path = "${PREFIX}/out"
[spark]
config = { "spark.a" = "${PREFIX}" }
"""


def test_names_are_filled_in_wherever_a_job_has_a_text(tmp_path, monkeypatch):
    monkeypatch.setenv("SERVERS", "host:9092")
    monkeypatch.setenv("PREFIX", "live")
    (tmp_path / "job.toml").write_text(JOB)
    job = read_job(str(tmp_path / "job.toml"))
    asked = job.ends["rows"].kafka.asked()
    assert [(one.name, one.servers) for one in asked] == [("live-east", "host:9092"), ("west", "host:9092")]
    assert asked[0].config == {"sasl.password": "aliveb", "sasl.username": "${PREFIX}"}
    assert job.folder == tmp_path / "live" / "out"
    assert job.spark.settings() == {"spark.a": "live"}


def test_a_name_that_is_not_set_is_told_with_its_place(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SERVERS", "host:9092")
    monkeypatch.delenv("PREFIX", raising=False)
    (tmp_path / "job.toml").write_text(JOB)
    assert main(["run", str(tmp_path / "job.toml")]) == MISUSE
    said = capsys.readouterr().err
    assert "[source] kafka topics east needs the environment variable PREFIX, and it is not set" in said
    assert "export PREFIX=…" in said
    assert [one.name for one in tmp_path.iterdir()] == ["job.toml"]


@pytest.mark.parametrize("text", ["pa$$word", "$HOME", "${", "$ {A}", "${a-b}", "100 $"])
def test_other_dollars_are_dollars(text):
    assert filled(text, "text") == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[sink.table]\npath = 't'\nkind = 'history'\ntrigger = '1 minute'\n",
            "'trigger' is a key of [sink]",
        ),
        ("[sink]\npath = 'o'\nexactly_once = true\n", "'exactly_once' is a key of [sink.kafka]"),
    ],
)
def test_a_key_of_another_table_is_told_with_it(tmp_path, text, words):
    source = "[source]\npath = 'feeds'\n[merge]\nstart = 'at'\n"
    (tmp_path / "job.toml").write_text(source + text)
    with pytest.raises(ValueError, match="has no key") as caught:
        read_job(str(tmp_path / "job.toml"))
    assert any(note.startswith(words) for note in caught.value.__notes__)


def test_misuse_is_answered_with_what_is_wrong_and_where_to_read_on(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "job.toml", "--onec"])
    assert ended.value.code == MISUSE
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "--onec" in said[0]
    assert "--help" in said[1]
