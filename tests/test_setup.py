"""What `./run` promises a newcomer, with every outside tool replaced by a script that the test writes."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BASH = shutil.which("bash") or "/bin/bash"
PLAIN_TOOLS = (
    *("awk", "basename", "bash", "cat", "chmod", "cksum", "cut", "dirname", "env", "flock", "grep"),
    *("id", "ln", "mkdir", "mv", "readlink", "rm", "sed"),
)

# Makes what the real uv would make, so that a second run can find it.
UV = """
case "$*" in
    --version) echo "uv 0.13.7" ;;
    venv*) mkdir -p .venv/bin && ln -s /bin/sh .venv/bin/python ;;
    "pip install"*) printf '#!/bin/sh\\necho anabranch "$@" in "$PWD" with JAVA_HOME=${JAVA_HOME-none}\\n' \\
        > .venv/bin/anabranch && chmod +x .venv/bin/anabranch ;;
esac
"""
PLENTY_OF_SPACE = "echo header; echo disk 90000000 0 90000000 0% /"


def java(version: str, modules: str = "java.base jdk.incubator.vector") -> str:
    return f"""
case "$1" in
    -version) echo 'openjdk version "{version}"' >&2 ;;
    --list-modules) printf '%s\\n' {modules} ;;
esac
"""


def python(version: str) -> str:
    return f'[ "$1" = -c ] && echo {version}'


class Machine:
    """A folder with a copy of `run`, and a PATH that holds only what a test puts there."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.project = place / "a project"
        self.bin = place / "bin"
        self.calls = place / "calls"
        self.env = {"PATH": str(self.bin), "HOME": str(place)}
        self.project.mkdir()
        self.bin.mkdir()
        for name in ("run", "pyproject.toml", "requirements.lock"):
            shutil.copy(ROOT / name, self.project / name)
        for name in PLAIN_TOOLS:
            (self.bin / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
        self.add("df", PLENTY_OF_SPACE)

    def add(self, name: str, body: str) -> Path:
        """A script on PATH (or at a path below the machine's folder) that notes each call of it."""
        script = self.place / name if "/" in name else self.bin / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.unlink(missing_ok=True)
        script.write_text(f'#!{BASH}\necho "{script.name} $*" >>"{self.calls}"\n{body}\n')
        script.chmod(0o755)
        return script

    def start(self, *args: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        command = [self.project / "run", *args]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=cwd, env=self.env, stdout=pipe, stderr=pipe, text=True)

    def run(self, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        self.calls.write_text("")
        with self.start(*args, cwd=cwd) as process:
            out, err = process.communicate(timeout=30)
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def called(self, tool: str) -> list[str]:
        return [line for line in self.calls.read_text().splitlines() if line.startswith(f"{tool} ")]

    @property
    def stamped(self) -> bool:
        return (self.project / ".venv/.set-up-for").exists()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a Python and nothing else."""
    machine = Machine(tmp_path)
    machine.add("python3", python("3.12"))
    return machine


@pytest.fixture
def ready(machine: Machine) -> Machine:
    """A machine that has all it needs, and on which nothing is set up yet."""
    machine.add("uv", UV)
    machine.add("java", java("21.0.4"))
    return machine


def test_help_names_every_command_on_stdout(machine):
    done = machine.run("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for command in ("./run demo", "./run test", "bench", "lock"):
        assert command in done.stdout


def test_no_command_is_a_mistake_that_is_answered_with_the_help(machine):
    done = machine.run()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "./run demo" in done.stderr


def test_an_unknown_command_is_named(machine):
    done = machine.run("tset")
    assert done.returncode == 2
    assert "'tset'" in done.stderr
    assert "test" in done.stderr.replace("'tset'", "")


def test_both_scripts_are_executable():
    for script in ("run", ".ci/run"):
        assert (ROOT / script).stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize("version", ["2.7", "3.8", "3.10", "3.99"])
def test_a_python_that_will_not_do_is_named_with_the_versions_that_will(machine, version):
    machine.add("python3", python(version))
    done = machine.run("demo")
    assert done.returncode == 1
    assert f"is Python {version}" in done.stderr
    assert "3.11 to 3.14 is needed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_python_is_said_to_be_missing(machine):
    (machine.bin / "python3").unlink()
    done = machine.run("demo")
    assert done.returncode == 1
    assert "no Python was found on PATH" in done.stderr
    assert "sudo apt-get install python3" in done.stderr


def test_a_newer_python_beside_an_old_one_is_used(ready):
    ready.add("python3", python("3.9"))
    newer = ready.add("python3.13", python("3.13"))
    assert ready.run("demo").returncode == 0
    assert f"uv venv --python {newer} .venv" in ready.called("uv")


def test_without_pip_and_without_root_the_command_to_type_is_shown(machine):
    done = machine.run("demo")
    assert done.returncode == 1
    assert "sudo apt-get install -y python3-venv" in done.stderr


def test_an_old_uv_on_the_path_is_passed_over(machine):
    machine.add("uv", 'echo "uv 0.4.30"')
    assert "has neither pip nor ensurepip" in machine.run("demo").stderr


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (java("11.0.2"), "is Java 11"),
        (java("1.8.0_292"), "is Java 8"),
        (java("17.0.1", modules="java.base"), "without the module jdk.incubator.vector"),
        (None, "no Java was found"),
    ],
)
def test_tests_stop_where_java_will_not_do_and_say_what_to_install(ready, body, words):
    (ready.bin / "java").unlink()
    if body:
        ready.add("java", body)
    done = ready.run("test")
    assert done.returncode == 1
    assert words in done.stderr
    assert "Java 17 or newer" in done.stderr
    assert "apt-get install -y openjdk-17-jre-headless" in done.stderr
    assert not ready.stamped


def test_the_demo_runs_without_java_and_says_so_in_one_line(ready):
    ready.add("java", java("11.0.2"))
    assert ready.run("demo").returncode == 0
    done = ready.run("demo")
    assert done.stdout.startswith("anabranch demo")
    assert done.stderr.count("\n") == 1
    assert "is Java 11; the Spark parts need Java 17 or newer" in done.stderr


def test_a_java_home_that_will_not_do_gives_way_to_the_java_on_the_path(ready):
    ready.add("jdk8/bin/java", java("1.8.0_292"))
    ready.env["JAVA_HOME"] = str(ready.place / "jdk8")
    assert "JAVA_HOME=none" in ready.run("demo").stdout


def test_a_java_home_that_will_do_is_kept(ready):
    ready.add("jdk17/bin/java", java("17.0.1"))
    ready.env["JAVA_HOME"] = str(ready.place / "jdk17")
    assert f"JAVA_HOME={ready.place}/jdk17" in ready.run("demo").stdout


def test_root_gets_the_java_that_apt_has(ready):
    ready.add("good/java", java("21.0.4"))
    (ready.bin / "java").unlink()
    (ready.bin / "id").unlink()
    ready.add("id", "echo 0")
    ready.add("apt-cache", "echo Package: $2")
    ready.add("apt-get", f'[[ "$*" != *" install "* ]] || ln -s "{ready.place}/good/java" "{ready.bin}/java"')
    done = ready.run("demo")
    assert done.returncode == 0
    assert [line.split()[-1] for line in ready.called("apt-get")] == ["update", "openjdk-21-jre-headless"]
    assert "the Spark parts need" not in done.stderr


def test_set_up_talks_on_stderr_and_the_demo_runs_where_the_caller_stands(ready):
    elsewhere = ready.place / "elsewhere"
    elsewhere.mkdir()
    done = ready.run("demo", "--seed", "1 2", cwd=elsewhere)
    assert done.stdout == f"anabranch demo --seed 1 2 in {elsewhere} with JAVA_HOME=none\n"
    assert "installing requirements.lock" in done.stderr


def test_packages_are_installed_only_with_the_hashes_of_the_lock(ready):
    ready.run("demo")
    (sync,) = [call for call in ready.called("uv") if "pip sync" in call]
    assert sync.endswith("--require-hashes requirements.lock")


def test_a_second_run_asks_no_tool_and_says_nothing(ready):
    ready.run("demo")
    done = ready.run("demo")
    assert done.returncode == 0
    assert done.stderr == ""
    assert ready.calls.read_text() == ""


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml"])
def test_a_changed_lock_or_project_file_is_set_up_again(ready, name):
    ready.run("demo")
    with (ready.project / name).open("a") as file:
        file.write("\n# changed\n")
    ready.run("demo")
    assert ready.called("uv")


def test_a_moved_folder_is_set_up_again(ready):
    ready.run("demo")
    ready.project = ready.project.rename(ready.place / "moved")
    assert ready.run("demo").returncode == 0
    assert ready.called("uv")


def test_a_python_that_went_away_is_set_up_again(ready):
    ready.run("demo")
    (ready.project / ".venv/bin/python").unlink()
    assert ready.run("demo").returncode == 0
    assert ready.called("uv")


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("dns error", "could not be reached"),
        ("No space left on device (os error 28)", "The disk filled up"),
        ("Permission denied (os error 13)", "closed to this user"),
        ("invalid peer certificate: UnknownIssuer", "is not trusted here"),
        ("No solution found when resolving dependencies", "Set-up is not complete"),
    ],
)
def test_a_failed_install_is_told_in_the_words_of_uv_and_mended_by_the_next_run(ready, words, meaning):
    output = f"Traceback (most recent call last):\nerror: at it\n  cause: {words}"
    ready.add("uv", f"[ \"$2\" != sync ] || {{ echo '{output}'; exit 2; }}\n{UV}")
    done = ready.run("demo")
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"cause: {words}" in done.stderr
    assert meaning in done.stderr
    assert "Traceback" not in done.stderr
    assert not ready.stamped

    (ready.project / ".venv/half of a package").touch()
    ready.add("uv", UV)
    assert ready.run("demo").returncode == 0
    assert not (ready.project / ".venv/half of a package").exists()


def test_an_interrupt_ends_with_130_and_leaves_no_stamp(ready):
    ready.add("uv", f'[ "$2" != sync ] || {{ kill -INT 0; exit 1; }}\n{UV}')
    # A terminal interrupts the whole group; a caller that ignores SIGINT would hand that down to bash.
    launch = "import os, signal, sys; signal.signal(2, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", launch, str(ready.project / "run"), "demo"]
    done = subprocess.run(
        command,
        env=ready.env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        start_new_session=True,
    )
    assert done.returncode == 130
    assert done.stderr.endswith("run: interrupted\n")
    assert not ready.stamped


def test_a_run_waits_for_the_set_up_of_another_and_does_not_repeat_it(ready):
    gate = ready.place / "gate"
    os.mkfifo(gate)
    ready.add("uv", f'[ "$2" != sync ] || ! mkdir "{ready.place}/first" || read -r <"{gate}" || true\n{UV}')
    with ready.start("demo") as first:
        with gate.open("w"):  # opens once the first run is installing, and holds it there
            second = ready.start("demo")
            assert second.stderr
            assert "waiting for another ./run" in second.stderr.readline()
        outputs = [run.communicate(timeout=30)[0] for run in (first, second)]
    assert all(output.startswith("anabranch demo") for output in outputs)
    assert len([call for call in ready.called("uv") if "pip sync" in call]) == 1


@pytest.mark.parametrize("free_kb", [0, 1_000_000])
def test_a_small_disk_is_named_before_anything_is_fetched(ready, free_kb):
    ready.add("df", f"echo header; echo disk 9 9 {free_kb} 0% /")
    done = ready.run("demo")
    assert done.returncode == 1
    assert f"{ready.project} has {free_kb // 1024} MB free" in done.stderr
    assert not ready.called("uv")


def test_a_folder_that_cannot_be_written_to_is_named(ready):
    (ready.project / ".tools").touch(mode=0o400)
    done = ready.run("demo")
    assert done.returncode == 1
    assert f"cannot write to the folder {ready.project}/.tools" in done.stderr


def test_checks_run_in_order_and_stop_at_the_first_failure(ready):
    ready.run("demo")
    for tool in ("ruff", "lint-imports", "python"):
        ready.add(f"a project/.venv/bin/{tool}", "")
    ready.add("a project/.venv/bin/mypy", "exit 3")
    done = ready.run("test", "tests/model")
    assert done.returncode == 3
    assert ready.calls.read_text().split("\n") == ["ruff check", "ruff format --check", "mypy ", ""]
    assert done.stderr.splitlines()[-1].startswith("run: .venv/bin/mypy failed (exit 3)")

    ready.add("a project/.venv/bin/mypy", "")
    assert ready.run("test", "tests/model").returncode == 0
    assert ready.called("python") == [
        "python -m pytest -q -n 2 --dist loadscope --no-loadscope-reorder tests/model"
    ]


def test_check_runs_all_that_test_does_but_tests_and_asks_for_no_java(ready):
    (ready.bin / "java").unlink()
    ready.run("demo")
    for tool in ("ruff", "mypy", "lint-imports", "python"):
        ready.add(f"a project/.venv/bin/{tool}", "")
    done = ready.run("check")
    assert (done.returncode, done.stderr) == (0, "run: all checks passed\n")
    assert ready.calls.read_text().split("\n") == [
        "ruff check",
        "ruff format --check",
        "mypy ",
        "lint-imports ",
        "",
    ]


def test_a_quick_run_of_the_tests_asks_for_no_java(ready):
    (ready.bin / "java").unlink()
    ready.run("demo")
    for tool in ("ruff", "mypy", "lint-imports", "python"):
        ready.add(f"a project/.venv/bin/{tool}", "")
    assert ready.run("test", "-x", "--quick").returncode == 0
    (pytest_call,) = ready.called("python")
    assert pytest_call.endswith(" -x --quick")
    assert ready.run("test", "-x").returncode == 1


def test_check_takes_no_arguments(ready):
    done = ready.run("check", "tests/model")
    assert done.returncode == 2
    assert "./run check looks at all files and takes no arguments, not 'tests/model'" in done.stderr
    assert not ready.called("uv")


def test_benchmarks_are_listed_with_what_they_measure(machine):
    (machine.project / "benchmarks").mkdir()
    (machine.project / "benchmarks/merge.py").write_text('"""Merge against a sort."""\nprint(1)\n')
    done = machine.run("bench")
    assert done.returncode == 0
    assert done.stdout.split(maxsplit=1) == ["merge", "Merge against a sort.\n"]


def test_an_unknown_benchmark_is_named_and_nothing_is_set_up(ready):
    done = ready.run("bench", "nope")
    assert done.returncode == 2
    assert "'nope'" in done.stderr
    assert not ready.called("uv")


def test_the_lock_covers_every_group_with_hashes(ready):
    assert ready.run("lock", "--upgrade").returncode == 0
    (call,) = [call for call in ready.called("uv") if "compile" in call]
    for option in ("--generate-hashes", "--all-extras", "--group dev", "--group bench", "--upgrade"):
        assert option in call


def test_the_scripts_name_no_address():
    for script in ("run", ".ci/run"):
        assert "://" not in (ROOT / script).read_text()
