"""The Python of Spark's workers: the user's, or this one without Spark's zips."""

import os
import subprocess
import sys

import pytest
from pyspark import SparkContext

from anabranch.engines.spark.session.worker_python import (
    NAMED,
    OWN,
    SCRIPT,
    is_found_without_zips,
    name_worker_python,
)

ZIPS = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.10.9.9-src.zip"]


@pytest.fixture(autouse=True)
def before_spark(monkeypatch):
    """As in a process that has not started Spark."""
    monkeypatch.setattr(SparkContext, "_gateway", None)
    for name in (NAMED, OWN):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)


def named():
    return os.environ[NAMED], os.environ.get(OWN)


def test_the_script_runs_this_python_without_the_zips_and_with_all_else(tmp_path):
    path = [str(tmp_path / "a b"), *ZIPS, "/mine*/*.zip", "/mine/pyspark.zip"]
    said = subprocess.run(
        [SCRIPT, "-c", "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1:])", "x y", "*"],
        env={"PYTHONPATH": ":".join(path), OWN: sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{tmp_path}/a b:/mine*/*.zip:/mine/pyspark.zip ['x y', '*']\n"


def test_a_path_with_nothing_but_zips_becomes_empty():
    said = subprocess.run(
        [SCRIPT, "-c", "import os; print(repr(os.environ['PYTHONPATH']))"],
        env={"PYTHONPATH": ":".join(ZIPS), OWN: sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "''\n"


@pytest.mark.parametrize(
    ("module", "printed"),
    [("pyspark.sql.streaming.transform_with_state_driver_worker", ""), ("pyspark.daemon", "printed\n")],
)
def test_the_worker_that_prints_its_every_step_is_silent_but_for_errors(tmp_path, module, printed):
    place = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
    place.parent.mkdir(parents=True)
    for folder in place.relative_to(tmp_path).parents[:-1]:
        (tmp_path / folder / "__init__.py").touch()
    place.write_text("import sys\nprint('printed')\nprint('an error', file=sys.stderr)\n")
    said = subprocess.run(
        [SCRIPT, "-m", module],
        env={OWN: sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (said.stdout, said.stderr) == (printed, "an error\n")


def test_workers_on_this_machine_are_started_by_the_script_and_others_by_name():
    name_worker_python("local[2]")
    assert named() == (SCRIPT, sys.executable)
    for master in ("local-cluster[2,1,1024]", "spark://somewhere:7077"):
        name_worker_python(master)
        assert named() == (sys.executable, sys.executable)
        del os.environ[NAMED]


def test_a_python_that_the_user_has_named_stays(monkeypatch):
    monkeypatch.setenv(NAMED, "/their/python")
    name_worker_python("local[2]")
    assert named() == ("/their/python", None)


def test_a_java_process_that_runs_already_does_not_know_the_script(monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", object())
    name_worker_python("local[2]")
    assert named() == (sys.executable, None)


def test_a_spark_of_the_users_brings_its_own_pyspark(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    name_worker_python("local[2]")
    assert named() == (sys.executable, sys.executable)


def test_zips_are_needed_where_pyspark_is_nowhere_else():
    assert is_found_without_zips([*ZIPS, *sys.path])
    assert not is_found_without_zips([*ZIPS, "/nowhere"])
