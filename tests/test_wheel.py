"""The wheel: what it says of itself, and the examples of the README without extras."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[1]
UV = shutil.which("uv", path=os.pathsep.join([str(ROOT / ".tools" / "uv" / "bin"), os.environ["PATH"]]))


def done(*command: object, cwd: Path) -> str:
    """What a command that succeeds prints."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    ended = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that this checkout makes."""
    place = tmp_path_factory.mktemp("dist")
    done(UV, "build", "--offline", "--out-dir", place, ROOT, cwd=place)
    (made,) = place.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What the wheel says of itself."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_metadata_have_all_that_an_index_shows(metadata):
    for field in (
        "Summary",
        "Keywords",
        "License-Expression",
        "License-File",
        "Requires-Python",
        "Classifier",
    ):
        assert metadata[field], field
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# Anabranch")


def test_only_extras_need_spark_and_pandas(metadata):
    needed = {re.match(r"[\w-]+", one)[0]: "extra ==" in one for one in metadata.get_all("Requires-Dist")}
    assert {name for name, is_extra in needed.items() if not is_extra} == {
        *("msgspec", "numba", "numpy", "pyarrow", "rich")
    }
    assert {"pyspark", "pandas", "protobuf"} <= {name for name, is_extra in needed.items() if is_extra}
    assert set(metadata.get_all("Provides-Extra")) >= {"spark", "kafka", "delta", "connect", "pipelines"}


@pytest.mark.slow
def test_the_examples_of_the_readme_run_from_the_wheel_in_an_empty_environment(wheel, tmp_path):
    bin_ = tmp_path / "empty" / "bin"
    done(UV, "venv", "--python", sys.executable, "empty", cwd=tmp_path)
    done(UV, "pip", "install", "--python", bin_ / "python", wheel, cwd=tmp_path)
    listed = done(UV, "pip", "list", "--python", bin_ / "python", cwd=tmp_path)
    assert not re.search(r"^(pyspark|pandas|protobuf) ", listed, re.MULTILINE)
    shutil.copytree(ROOT / "examples" / "gateways", tmp_path / "examples" / "gateways")
    text = (ROOT / "README.md").read_text()
    (tmp_path / "README.md").write_text(text)
    assert (
        done(bin_ / "python", "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "README.md", cwd=tmp_path) == ""
    )
    command = re.search(r"^    anabranch (merge .*)$", text.replace("\\\n", ""), re.MULTILINE)
    assert command is not None
    done(bin_ / "anabranch", *shlex.split(command[1]), cwd=tmp_path)
    assert (tmp_path / "merged.parquet").is_file()
    done(bin_ / "anabranch", "--version", cwd=tmp_path)
