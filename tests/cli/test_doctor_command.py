"""What the doctor looks at: each thing once in order and once in trouble, with a way to mend it."""

import json
import re
import socket
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.spark_commands import run

from anabranch.cli.doctor import disk, java, job, kafka, memory, network, packages, tables, workers
from anabranch.cli.doctor.checks import findings
from anabranch.cli.doctor.finding import Request, State, failed, ok
from anabranch.cli.main import main
from anabranch.engines.spark.session.jvm import SHORT_LIVED
from anabranch.jobs.job_file import read_job

MERGE = '[merge]\nstart = "at"\n'
SINK = '[sink]\npath = "out"\n'
QUICK = "".join(f"config.'{key}' = '{value}'\n" for key, value in SHORT_LIVED.items())


def doctor(*arguments: str, cwd: Path, **env: str) -> tuple[int, dict[str, dict]]:
    done = run("doctor", "--json", *arguments, cwd=cwd, **env)
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert answer["well"] == (done.returncode == 0)
    return done.returncode, {check["check"]: check for check in answer["checks"]}


def asked(folder: Path, *, source: str = 'path = "feeds"', sink: str = SINK, config: str = "") -> Request:
    text = f"[source]\n{source}\n{MERGE}{sink}[spark]\n{config}\n"
    (folder / "job.toml").write_text(text)
    return Request(read_job(str(folder / "job.toml")))


def program(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def only(found):
    (one,) = found
    return one


def test_this_machine_is_well_and_there_is_a_line_for_everything(tmp_path):
    done = run("doctor", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    *lines, _, end = done.stdout.splitlines()
    assert end == "all is well"
    seen = {line[9:26].strip(): line.split()[0] for line in lines}
    assert set(seen.values()) <= {"ok", "note"}
    wanted = "python pyspark pandas protobuf numpy pyarrow confluent-kafka fastavro deltalake java workers"
    assert {*wanted.split(), "compiled code", "java module", "address", "host name", "memory", "disk"} <= {
        *seen
    }
    assert list(tmp_path.iterdir()) == []


def test_everything_in_trouble_is_told_at_once_with_a_way_to_mend_it(tmp_path):
    (tmp_path / "job.toml").write_text("[source]\npath = 'feeds'\n[merge]\nstart = 'at'\nstrat = 1\n" + SINK)
    (tmp_path / "file").touch()
    status, checks = doctor(
        *("job.toml", "--spark", "--table", "nowhere"),
        cwd=tmp_path,
        JAVA_HOME=str(tmp_path),
        PYSPARK_PYTHON="/bin/false",
        SPARK_LOCAL_DIRS=str(tmp_path / "file"),
        SPARK_LOCAL_IP="no-such-host.invalid",
        TMPDIR=str(tmp_path),
    )
    assert status == 1
    bad = {name: check for name, check in checks.items() if check["state"] == "trouble"}
    expected = {"job", "java", "workers", "host name", "disk", "table", "spark"}
    assert set(bad) == expected
    assert all(check["mend"] for check in bad.values()), bad
    assert "'strat'" in checks["job"]["found"]
    assert "did you mean 'start'" in checks["job"]["found"]
    assert "JAVA_HOME" in checks["java"]["found"]
    assert "/bin/false" in checks["workers"]["found"]
    assert "Install one" in checks["spark"]["mend"][0]
    assert "source" not in checks


def test_compiled_code_that_cannot_be_kept_is_trouble_for_all_that_needs_it(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "job.toml").write_text(f"[source]\nformat = 'rate'\n{MERGE}{SINK}")
    nowhere = {
        "NUMBA_CACHE_DIR": str(tmp_path / "file"),
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
    }
    status, checks = doctor("job.toml", cwd=tmp_path, **nowhere)
    assert status == 1
    assert {name for name, check in checks.items() if check["state"] == "trouble"} == {
        "job",
        "compiled code",
        "workers",
    }
    assert "NUMBA_CACHE_DIR" in checks["compiled code"]["mend"][0]


def test_packages_that_are_too_new_or_broken_are_told_and_the_doctor_goes_on(tmp_path):
    folder = tmp_path / "packages"
    (folder / "pandas-3.0.1.dist-info").mkdir(parents=True)
    (folder / "pandas-3.0.1.dist-info" / "METADATA").write_text("Name: pandas\nVersion: 3.0.1\n")
    (folder / "numpy.py").write_text("raise ImportError('cannot load its C part')\n")
    status, checks = doctor(cwd=tmp_path, PYTHONPATH=str(folder))
    assert status == 1
    assert checks["pandas"]["state"] == "trouble"
    assert checks["pandas"]["found"].startswith("3.0.1; anabranch needs ")
    assert checks["pandas"]["mend"][0].startswith("pip install 'pandas")
    assert "does not import: ImportError: cannot load its C part" in checks["numpy"]["found"]
    assert "workers" in checks
    assert checks["address"]["state"] == "ok"


@pytest.mark.parametrize(
    ("limits", "found", "allowed"),
    [
        (">=4.2,<4.4", "4.2", True),
        (">=4.2,<4.4", "4.3.9", True),
        (">=4.2,<4.4", "4.4.0", False),
        ("<4.4,>=4.2", "4.1.2", False),
        (">=6.33.5", "6.33.10", True),
        (">=6.33.5", "6.33.4", False),
        (">=4.2.0", "4.2", True),
        (">=4.2", "4.3.0.dev1", True),
        ("", "1.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(limits, found, allowed):
    assert packages.allows(limits, found) is allowed


def test_a_package_that_is_needed_and_missing_is_trouble_and_an_optional_one_a_note(monkeypatch):
    missing = packages.package("no-such-package", ">=1")
    assert missing.state is State.TROUBLE
    assert missing.mend == ("pip install 'no-such-package>=1'",)
    monkeypatch.setattr(packages, "OPTIONAL", {"no-such-package": ("kafka", "Kafka topics")})
    told = only(packages.optional(Request()))
    assert told.state is State.NOTE
    assert "pip install 'anabranch[kafka]'" in told.found


def test_what_an_option_asks_for_is_trouble_without_its_package(monkeypatch):
    for name in ("confluent_kafka", "deltalake"):
        monkeypatch.setitem(sys.modules, name, None)
    broker, table = only(kafka.brokers(Request(brokers=("h:1",)))), only(tables.delta(Request(tables=("t",))))
    assert [one.state for one in (broker, table)] == [State.TROUBLE, State.TROUBLE]
    assert "anabranch[kafka]" in broker.mend[0]
    assert "anabranch[delta]" in table.mend[0]


def test_a_java_that_lacks_the_module_is_told_before_spark_finds_out(tmp_path, monkeypatch):
    real = java.properties()["java.home"]
    lacks = f'case "$*" in *jdk.incubator.vector*) exit 1;; esac\nexec {real}/bin/java "$@"'
    program(tmp_path / "bin" / "java", lacks)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found, module = java.runtime(Request())
    assert found.state is State.OK
    assert found.found.endswith("by JAVA_HOME")
    assert module.state is State.TROUBLE
    assert "jdk.incubator.vector" in module.found


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('\'["2.7.18", "0.1.0"]\'', "Python 2.7.18"),
        (f'\'["{sys.version_info.major}.{sys.version_info.minor}.99", "0.0.0"]\'', "anabranch 0.0.0"),
    ],
)
def test_workers_with_another_python_or_another_anabranch_are_trouble(tmp_path, monkeypatch, said, words):
    monkeypatch.setenv("PYSPARK_PYTHON", program(tmp_path / "python", f"echo {said}"))
    found = only(workers.interpreter(Request()))
    assert found.state is State.TROUBLE
    assert words in found.found
    assert sys.executable in " ".join(found.mend)


def test_workers_of_a_patch_release_will_do(tmp_path, monkeypatch):
    theirs = [f"{sys.version_info.major}.{sys.version_info.minor}.99", version("anabranch")]
    monkeypatch.setenv("PYSPARK_PYTHON", program(tmp_path / "python", f"echo '{json.dumps(theirs)}'"))
    assert only(workers.interpreter(Request())).state is State.OK


def test_workers_that_are_no_program_are_named(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")
    found = only(workers.interpreter(Request()))
    assert found.state is State.TROUBLE
    assert "PYSPARK_PYTHON is /nowhere/python" in found.found


def test_workers_of_a_cluster_are_not_taken_for_those_here(tmp_path, monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    found = list(workers.interpreter(asked(tmp_path, config="master = 'spark://there:7077'")))
    assert [one.state for one in found] == [State.OK, State.NOTE]
    assert "spark://there:7077" in found[1].found


def test_the_address_that_a_job_names_is_tried(tmp_path):
    assert only(network.address(Request())).state is State.OK
    elsewhere = asked(tmp_path, config="config.'spark.driver.bindAddress' = '192.0.2.1'")
    found = only(network.address(elsewhere))
    assert found.state is State.TROUBLE
    assert "192.0.2.1" in found.found


def test_memory_is_measured_against_what_the_job_gives_its_driver(tmp_path):
    assert (
        only(memory.available(asked(tmp_path, config="config.'spark.driver.memory' = '16m'"))).state
        is State.OK
    )
    found = only(memory.available(asked(tmp_path, config="config.'spark.driver.memory' = '90t'")))
    assert found.state is State.TROUBLE
    assert "92,161.0 GB" in found.found


def test_memory_of_a_container_is_what_its_narrowest_group_leaves(tmp_path):
    (tmp_path / "outer" / "middle" / "inner").mkdir(parents=True)
    for folder, limit in (("outer", "9000"), ("outer/middle", "5000"), ("outer/middle/inner", "max")):
        (tmp_path / folder / "memory.max").write_text(f"{limit}\n")
        (tmp_path / folder / "memory.current").write_text("3000\n")
        (tmp_path / folder / "memory.stat").write_text("anon 1000\ninactive_file 700\n")
    (tmp_path / "groups").write_text("0::/outer/middle/inner\n")
    assert memory.of_container(tmp_path / "groups", tmp_path) == 2700
    assert memory.of_container(tmp_path / "none", tmp_path) is None


def test_a_place_without_room_or_that_cannot_be_written_is_trouble(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/spill,/proc/self")
    here, nowhere = disk.space(Request())
    assert here.state is State.OK
    assert nowhere.state is State.TROUBLE
    assert "/proc/self" in nowhere.found
    assert not (tmp_path / "spill").exists()
    monkeypatch.setattr(disk, "LEAST", 1 << 80)
    assert [one.state for one in disk.space(Request())] == [State.TROUBLE, State.TROUBLE]


def test_the_places_of_a_job_are_looked_at_and_not_made(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    found = only(disk.space(asked(tmp_path)))
    for place in ("Spark spills", f"sink ({tmp_path}/out)", f"checkpoint ({tmp_path}/out/_checkpoint)"):
        assert place in found.found
    assert [file.name for file in tmp_path.iterdir()] == ["job.toml"]


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_the_folder_of_a_table_that_cannot_be_made_is_trouble(tmp_path, monkeypatch, form):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    (tmp_path / "plain").touch()

    def looked(path):
        about = asked(
            tmp_path, sink=f"[sink]\ntable = {{path = '{path}', kind = 'history', format = '{form}'}}\n"
        )
        return list(disk.space(about)), only(tables.of_job(about))

    for path in ("/proc/lake", "plain", "plain/below"):
        found, table = looked(path)
        assert [one.state for one in found if f"sink ({tmp_path / path})" in one.found] == [State.TROUBLE]
        assert table.state is State.NOTE
    found, table = looked("lake")
    assert {one.state for one in (*found, table)} == {State.OK}


def test_a_source_is_a_folder_with_files_whose_columns_are_known(tmp_path):
    def source(text: str = "path = 'feeds'"):
        return only(job.source(asked(tmp_path, source=text)))

    assert "not a folder" in source().found
    (tmp_path / "feeds").mkdir()
    assert "nothing says whose" in source("path = 'feeds'\nschema = 'at long'").found
    assert source("path = 'feeds'\nschema = 'at long'\nby_replica = false").state is State.NOTE
    (tmp_path / "feeds" / "east").mkdir(parents=True)
    assert source().state is State.TROUBLE
    assert source("path = 'feeds'\nschema = 'at long'").state is State.NOTE
    (tmp_path / "feeds" / "east" / "1.jsonl").write_text("{}\n")
    assert "only JSON lines" in source().found
    assert source("path = 'feeds'\nschema = 'at long'").state is State.OK
    pq.write_table(pa.table({"at": [1]}), tmp_path / "feeds" / "east" / "2.parquet")
    assert source().state is State.OK
    assert source().found.endswith("east 2")
    (tmp_path / "feeds" / "stray.parquet").touch()
    assert "beside the folders" in source().found
    (tmp_path / "feeds" / "stray.parquet").unlink()
    (tmp_path / "feeds" / "east" / "3.parquet").write_bytes(b"half a file")
    assert source().state is State.TROUBLE
    assert "3.parquet cannot be read" in source().found
    assert source("format = 'rate'").state is State.NOTE


def test_each_source_of_a_plan_is_looked_at(tmp_path):
    text = """
    [sources.readings]
    path = "feeds"
    columns = { room = "string", at = "int64" }
    start = "at"
    disorder = 1
    [plan]
    steps = ["sort"]
    """
    (tmp_path / "job.toml").write_text(text + SINK)

    def looked_at(check):
        return only(check(Request(read_job(str(tmp_path / "job.toml")))))

    assert looked_at(job.source).state is State.TROUBLE
    assert "feeds is not there" in looked_at(job.source).found
    (tmp_path / "feeds").mkdir()
    assert looked_at(job.source).found.startswith("readings: ")
    pq.write_table(pa.table({"at": [1]}), tmp_path / "feeds" / "1.parquet")
    assert "has no column 'room'" in looked_at(job.source).found
    assert "has no column" not in looked_at(job.merge).found


def test_files_of_another_query_in_the_sink_are_trouble(tmp_path):
    assert list(job.sink(asked(tmp_path))) == []
    (tmp_path / "out" / "_checkpoint").mkdir(parents=True)
    (tmp_path / "out" / ".hidden").touch()
    assert only(job.sink(asked(tmp_path))).state is State.OK
    (tmp_path / "out" / "0abc-000000000-0000.parquet").touch()
    found = only(job.sink(asked(tmp_path)))
    assert found.state is State.TROUBLE
    assert "0abc-000000000-0000.parquet" in found.found


WHOLE = {"metadata": '{"id":"1"}', "offsets/0": 'v1\n{"conf":{}}\n{"east":1}', "commits/0": "v1\n{}"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "goes on after micro-batch 0"),
        ({"commits/0": None}, "goes on after micro-batch -1"),
        ({"metadata": None}, "metadata is not"),
        ({"metadata": '{"id":'}, "metadata is not"),
        ({"offsets/0": 'v1\n{"conf":{}}'}, "offsets/0 is not"),
        ({"offsets/0": 'v1\n{"conf":{}}\n{"ea'}, "offsets/0 is not"),
        ({"offsets/0": 'v1\n{"conf":{}}\n-'}, "goes on after micro-batch 0"),
        ({"commits/0": ""}, "commits/0 is not"),
        ({"commits/1": "v1\n{}"}, "1 is complete and 0 was begun last"),
    ],
)
def test_a_checkpoint_is_one_that_spark_can_go_on_from(tmp_path, change, words):
    place = tmp_path / "out" / "_checkpoint"
    for name, text in (WHOLE | change).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            (place / name).write_text(text)
    found = only(job.checkpoint(asked(tmp_path)))
    assert words in found.found
    assert found.state is (State.OK if "goes on" in words else State.TROUBLE)
    assert bool(found.mend) == (found.state is State.TROUBLE)


def test_a_job_with_a_mistake_is_trouble_and_one_that_is_not_there_is_misuse(tmp_path, capsys):
    (tmp_path / "job.py").write_text("def rows(spark): pass\nMERGE = nothing\n")
    read, found = job.read(str(tmp_path / "job.py"))
    assert read is None
    assert "job.py, line 2: NameError" in found.found
    assert main(["doctor", str(tmp_path / "gone.toml")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["doctor", str(tmp_path / "job.yaml")]) == 2
    assert ".toml or a .py" in capsys.readouterr().err


@pytest.mark.parametrize(
    "address", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:99999", "h:a"]
)
def test_a_broker_is_a_host_and_a_port(address, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", "--broker", address])
    assert stopped.value.code == 2
    assert "HOST:PORT" in capsys.readouterr().err


def test_a_broker_that_does_not_answer_is_told_with_the_name_of_the_error(monkeypatch):
    monkeypatch.setattr(kafka, "SECONDS", 1)
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused, unknown = kafka.brokers(Request(brokers=(address, "no-such-host.invalid:9092")))
    assert [one.state for one in (refused, unknown)] == [State.TROUBLE, State.TROUBLE]
    assert "TRANSPORT" in refused.found
    assert "refused" in refused.found
    assert "RESOLVE" in unknown.found


def test_a_broker_that_answers_is_asked_where_it_says_it_is(broker):
    from anabranch.testing.broker import Broker

    class Misled(Broker):
        """A broker that sends its clients to where nobody is."""

        def _settings(self) -> str:
            advertised = f"advertised.listeners=PLAINTEXT://{self.servers}\n"
            assert advertised in super()._settings()
            return super()._settings().replace(advertised, "advertised.listeners=PLAINTEXT://127.0.0.1:9\n")

    broker.make_topic("asked-for")
    found = only(kafka.brokers(Request(brokers=(broker.servers,))))
    assert found.state is State.OK
    assert re.fullmatch(rf"{broker.servers} answers: 1 brokers, [1-9]\d* topics", found.found)
    with Misled() as misled:
        found = only(kafka.brokers(Request(brokers=(misled.servers,))))
    assert found.state is State.TROUBLE
    assert "127.0.0.1:9, which cannot be reached" in found.found
    assert "advertised.listeners" in found.mend[0]


JOB_WITH_TOPICS = """
[source]
schema = "sensor string, at timestamp"
[source.kafka]
topics = {{ a = "{topic}", b = {{ name = "readings", servers = "{servers}" }} }}
servers = "{servers}"
[source.kafka.config]
"security.protocol" = "SASL_PLAINTEXT"
"sasl.mechanisms" = "PLAIN"
"sasl.username" = "anabranch"
"sasl.password" = "${{BROKER_PASSWORD}}"
[merge]
start = "at"
disorder = "1 second"
[sink]
table = {{ path = "lake/readings", kind = "history" }}
"""


def test_topics_of_a_job_are_asked_for_with_its_settings_and_a_password_that_is_wrong_is_told(
    tmp_path, monkeypatch
):
    from anabranch.testing.broker import Broker

    monkeypatch.setattr(kafka, "SECONDS", 3)
    with Broker(password="open sesame") as broker:
        broker.make_topic("readings", partitions=3)
        plain, right = (
            only(kafka.brokers(Request(brokers=(broker.servers,), broker_config=config)))
            for config in ({}, broker.config)
        )
        found = []
        for topic, password in (("readings", "open sesame"), ("typo", "open sesame"), ("readings", "wrong")):
            monkeypatch.setenv("BROKER_PASSWORD", password)
            path = tmp_path / "job.toml"
            path.write_text(JOB_WITH_TOPICS.format(topic=topic, servers=broker.servers))
            asked = Request(read_job(str(path)))
            found.append(next(kafka.topics(asked)))
            assert only(tables.of_job(asked)).found.endswith("is made by the first run")
    assert plain.state is State.TROUBLE
    assert "--broker-config" in plain.mend[-1]
    assert right.state is State.OK
    well, typo, wrong = found
    assert well.found == f"topic readings at {broker.servers} has 3 partitions"
    assert typo.state is State.TROUBLE
    assert "there is no topic 'typo'" in typo.found
    assert wrong.state is State.TROUBLE
    assert "Authentication failed" in wrong.found
    assert "wrong" not in wrong.found


def test_a_table_that_opens_is_told_with_its_version_and_files(tmp_path):
    from deltalake import write_deltalake

    for n in range(3):
        write_deltalake(tmp_path / "table", pa.table({"n": [n]}), mode="append")
    opened, not_one, gone = tables.delta(
        Request(tables=(str(tmp_path / "table"), str(tmp_path), str(tmp_path / "gone")))
    )
    assert opened.state is State.OK
    assert opened.found.endswith("is at version 2, with 3 files")
    assert [one.state for one in (not_one, gone)] == [State.TROUBLE, State.TROUBLE]
    assert "TableNotFoundError" in not_one.found
    assert not (tmp_path / "gone").exists()


def test_a_check_that_breaks_is_trouble_and_the_others_go_on():
    def breaks(asked):
        yield ok("first", "there")
        raise KeyError("second")

    def goes_on(asked):
        yield ok("third", "there")

    found = list(findings(Request(), [breaks, goes_on]))
    assert [(one.what, one.state) for one in found] == [
        ("first", State.OK),
        ("breaks", State.TROUBLE),
        ("third", State.OK),
    ]
    assert found[1].found == "KeyError: 'second'"


def test_the_notes_of_an_error_are_what_to_do():
    error = OSError("no Java")
    error.add_note("Install one.")
    assert failed("java", error).fields() == {
        "check": "java",
        "state": "trouble",
        "found": "no Java",
        "mend": ["Install one."],
    }


@pytest.mark.slow
def test_spark_is_started_if_asked_for_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "job.toml").write_text(
        "[source]\nformat = 'rate'\n[merge]\nstart = 'timestamp'\ndisorder = '1 second'\n"
        f"{SINK}[spark]\nmaster = 'local[1]'\n{QUICK}"
    )
    status, checks = doctor("job.toml", "--spark", cwd=tmp_path, TMPDIR=str(tmp_path / "tmp"))
    assert status == 0, checks
    assert checks["spark"]["found"].startswith("local[1] started, and its workers merged 3 rows")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["job.toml", "tmp"]
