"""Whether there is a Java for Spark; nothing here starts one."""

from pathlib import Path

import pytest

from anabranch.engines.spark.session import jvm


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A function that puts a java which says this on PATH."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)

    def put(body: str) -> Path:
        file = tmp_path / "java"
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        return file

    return put


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11"),
        ("echo 'java version \"1.8.0_292\"' >&2", "is Java 8"),
        ("exit 1", "does not work"),
    ],
)
def test_a_java_that_is_too_old_or_broken_is_named(java, body, problem):
    file = java(body)
    with pytest.raises(OSError, match=problem) as caught:
        jvm.check_java()
    assert str(file) in str(caught.value)
    assert any("apt-get install" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_java_of_17_or_newer_will_do(java, version):
    java(f"echo 'openjdk version \"{version}\"' >&2")
    jvm.check_java()


def test_java_home_goes_before_path_as_with_spark(java, monkeypatch, tmp_path):
    java("echo 'openjdk version \"21\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match=r"none in JAVA_HOME \(.*nowhere\)"):
        jvm.check_java()
