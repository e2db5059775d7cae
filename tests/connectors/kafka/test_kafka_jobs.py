"""Jobs whose source and sink are topics, as files describe them."""

import inspect
import json
import subprocess
import sys

import pytest

from anabranch import spark as ab
from anabranch.cli.main import main
from anabranch.jobs.job_file import read_job
from anabranch.jobs.kafka_sections import KafkaSinkSection, KafkaSourceSection, settings

JOB = """
[source]
schema = "sensor string, at timestamp, level double"
rows_per_trigger = 1000
[source.kafka]
servers = "{servers}"
topics = {{ east = "{east}", west = {{ name = "{west}", servers = "{servers}" }} }}
[merge]
start = "at"
replica = "replica"
disorder = "1 minute"
lossy = true
[sink.kafka]
servers = "{servers}"
topic = "{out}"
key = "sensor"
exactly_once = true
[spark]
master = "local[2]"
shards = 2
"""


@pytest.mark.slow
def test_a_job_merges_topics_into_a_topic(broker, topic, send, tmp_path):
    east, west, out = topic(), topic(), topic(partitions=2)
    for number in range(30):
        row = {"sensor": "a", "at": f"2026-03-01T10:{number:02}:00Z", "level": 1.5}
        send(east, row)
        if number != 7:
            send(west, row)
    send(west, b"{broken")
    file = tmp_path / "job.toml"
    file.write_text(JOB.format(servers=broker.servers, east=east, west=west, out=out))
    command = [sys.executable, "-m", "anabranch.cli.main", "run", str(file), "--once"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert f"the result is in topic {out} at {broker.servers}" in done.stderr
    assert broker.ends(out) >= 30 + 2
    [quarantined] = (tmp_path / "job-checkpoint" / "quarantine").iterdir()
    assert json.loads(quarantined.read_text())["place"] == f"{west}[0]@29"


def test_the_keys_of_topics_are_the_arguments_of_the_functions_they_are_for():
    def keywords(function):
        return {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}

    spelled = {"format": {"values", "avro_schema", "avro_schemas"}, "start": {"begin"}}
    wanted = keywords(ab.kafka) - {"schema", "rows_per_trigger", "format", "start"} | {"topics"}
    assert {*KafkaSourceSection.__struct_fields__} == wanted.union(*spelled.values())
    of_job = {"checkpoint", "quarantine", "available_now", "trigger", "name", "format"}
    assert {*KafkaSinkSection.__struct_fields__} == keywords(ab.write_kafka) - of_job | {"topic", "values"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"sensor string, at timestamp, level double"', "''"), "no schema"),
        (("rows_per_trigger = 1000", "path = 'feeds'"), "[source] path is not for topics"),
        (("[sink.kafka]", "[sink]\npath = 'out'\n[sink.kafka]"), "has path and kafka"),
        (('key = "sensor"', "values = 'xml'"), "[sink.kafka] values"),
        (("[merge]", "values = 'avro'\n[merge]"), "values are avro where a schema is given"),
        (("[merge]", "value = 'json'\n[merge]"), "value"),
    ],
)
def test_a_job_that_is_not_one_is_refused_before_spark_starts(tmp_path, capfd, change, words):
    text = JOB.format(servers="localhost:9", east="a", west="b", out="c").replace(*change)
    text = text.replace("schema = ''\n", "")
    (tmp_path / "job.toml").write_text(text)
    assert main(["run", str(tmp_path / "job.toml"), "--once"]) == 2
    assert words in capfd.readouterr().err


def test_settings_of_a_connection_are_texts():
    config = {"sasl.password": "hunter2", "enable.ssl": True, "retries": 3}
    assert settings(config) == {"sasl.password": "hunter2", "enable.ssl": "true", "retries": "3"}


def test_the_checkpoint_of_a_job_with_topics_is_beside_its_file(tmp_path):
    (tmp_path / "job.toml").write_text(JOB.format(servers="localhost:9", east="a", west="b", out="c"))
    job = read_job(str(tmp_path / "job.toml"))
    assert job.checkpoint == tmp_path / "job-checkpoint"
    assert job.quarantine == tmp_path / "job-checkpoint" / "quarantine"
    assert job.out == "topic c at localhost:9"
