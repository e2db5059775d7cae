"""Every word of a job that stands for something, misspelt: the job is refused, or the word is reported."""

import json
import linecache
import random
import re

import pytest

import anabranch as ab
from anabranch.cli.main import main
from anabranch.jobs.beforehand import check_job
from anabranch.jobs.job_file import read_job
from anabranch.jobs.sampled_keys import remarks
from anabranch.model.spelling import nearest

REPLICAS = """
[sources.readings]
path = "feeds"
columns = { room = "string", level = "float64", note = "string", at = "int64", replica = "string" }
start = "at"
duration = 5
disorder = 10
properties = "keyed"
replica = "replica"
replicas = ["north", "south"]
idle = ["south"]
lossy = ["north"]
on_late = "drop"

[plan]
from = "readings"
steps = [
  { filter = "level.abs() > 3 and room.is_not_null()" },
  { merge = { policy = { name = "final", lag = 2 }, pace = "slowest", identity = ["room", "level"] } },
  { sort = true },
]

[sink]
path = "merged"
format = "jsonl"
"""

WINDOWS = """
[sources.readings]
path = "readings.jsonl"
columns = { room = "string", level = "float64", at = "int64" }
start = "at"
disorder = 20

[sources.rooms]
path = "rooms.parquet"
columns = { room = "string", floor = "int64", at = "int64" }
start = "at"
disorder = 20

[plan.warm]
from = "readings"
steps = [{ distinct = ["room", "level"] }, { rename = { level = "heat" } }]

[plan.last]
from = "warm"
steps = [
  { join = { right = "rooms", on = "room", within = [10, 0], suffix = "_of" } },
  { window = { size = 10, every = 5 } },
  { group_by = ["floor"] },
  { agg = { most = "heat.max()" } },
]

[sink]
file = "out.jsonl"
"""

MERGE = """
[source]
path = "feeds"
schema = "room string, level double, note string, at timestamp"

[merge]
start = "at"
duration = "5 minutes"
disorder = "10 minutes"
replica = "replica"
replicas = ["north", "south"]
idle = ["south"]
lossy = ["north"]
identity = ["room"]
policy = "final"
pace = "slowest"
on_late = "drop"
properties = "keyed"

[sink]
path = "merged"
format = "jsonl"
trigger = "10 seconds"

[spark]
shards = 2
"""

CHANGES = """
[source]
path = "feeds"
schema = "room string, level double, note string, at timestamp"
zone = "Europe/Berlin"

[changes]
key = "room"
time = "at"
op = "note"
ops = { "+" = "upsert", x = "ignore" }
replica = "replica"
disorder = "5 minutes"
policy = { name = "leader", by = "stable", lag = "1 minute" }
on_broken = "quarantine"
by_time = true

[sink]
path = "merged"
"""

STEPS = """
[sources.east]
path = "feeds/north"
columns = { room = "string", level = "float64", note = "string", at = "timestamp[us, tz=UTC]" }
start = "at"
disorder = "10 seconds"
on_invalid = "drop"

[sources.west]
path = "feeds/south"
columns = { room = "string", level = "float64", note = "string", at = "timestamp[us, tz=UTC]" }
start = "at"
disorder = "10 seconds"
lossy = true

[plan.both]
merge = { of = { e = "east", w = "west" }, policy = "final", on_broken = "generalise", case = "R4" }

[plan.hot]
from = "both"
steps = [
  { filter = "level.abs() > 3 and note.str.starts_with('x')" },
  { select = ["room", { twice = "level * 2" }] },
  { lasting = "5 minutes" },
]

[plan.cold]
from = "both"
steps = [
  { drop = ["note"] },
  { rename = { level = "twice" } },
  { alter_lifetime = { start = "START.floor(60)", duration = "END - START" } },
]

[plan.sums]
union = ["hot", "cold"]
steps = [
  { window = { size = "5 minutes", every = "1 minute", start = "began" } },
  { group_by = "room" },
  { agg = { n = "count()", most = "twice.approx_quantile(0.9, error=0.1)", early = true } },
  { hop = { size = "10 minutes", every = "1 minute" } },
  "final",
]

[sink]
file = "out.jsonl"
"""

PYTHON = """
import anabranch as ab
from anabranch import col

columns = {"room": "string", "level": "float64", "note": "string", "at": "int64", "replica": "string"}
stream = (
    ab.source("readings", columns, start="at", disorder=10, replica="replica", lossy=["north"])
    .merge(policy=ab.FinalOnly(lag=2), pace=ab.Pace.SLOWEST, identity=["room", "level"])
    .filter(col("level") > 3)
    .window(10, every=5)
    .group_by("room")
    .agg(n=ab.count(), most=col("level").max())
)
SOURCES = {"readings": "feeds"}
SINK = {"path": "merged", "format": "jsonl"}
SPARK = {"shards": 2, "master": "local[2]"}
"""

FREE = {"most", "last", "_of", "merged", "out", "jsonl"}
"""Words that a person chooses, and the name of a place that is made."""
WORD = re.compile(r"[A-Za-z_]{2,}")


def misspelt(word):
    """The word with its middle letter doubled and its last gone, which is no word of any job."""
    middle = len(word) // 2
    return word[:middle] + word[middle - 1] + word[middle:-1] if len(word) > 3 else word + "x"


def variants(text):
    """Every job that has one word of another misspelt, with that word."""
    for found in WORD.finditer(text):
        word = found[0]
        if word not in FREE and word != misspelt(word):
            line = text.count("\n", 0, found.start()) + 1
            wrong = misspelt(word)
            yield pytest.param(
                text[: found.start()] + wrong + text[found.end() :], wrong, id=f"{line} {wrong}"
            )


@pytest.fixture
def place(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"room": room, "level": 5.0, "note": "x", "at": at} for room, at in (("A", 1), ("B", 40))]
    for replica in ("north", "south"):
        (tmp_path / "feeds" / replica).mkdir(parents=True)
        (tmp_path / "feeds" / replica / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bare = [{name: row[name] for name in ("room", "level", "at")} for row in rows]
    (tmp_path / "readings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bare))
    floors = pa.Table.from_pylist([{"room": "A", "floor": 1, "at": 0}, {"room": "B", "floor": 2, "at": 39}])
    pq.write_table(floors, tmp_path / "rooms.parquet")
    return tmp_path


CASELESS = {
    *("string", "float", "int", "double", "timestamp", "second", "seconds", "minute", "minutes", "keyed"),
    *("upsert", "ignore", "UTC", "jsonl", "insert", "only"),
}
"""Words that mean the same in any case."""
CHOSEN = FREE | {"began", "hot", "cold", "both", "sums", "columns", "room_", "us", "tz", "UTC"}
"""Words that are a person's choice, or another right word where a letter is gone."""
OF_PYTHON = {"import", "from", "as", "ab", "anabranch"}
SEED = 20261119


def wrongly(word, how, rng):
    """The word with a letter gone, doubled, exchanged with the next, or in another case."""
    at = rng.randrange(len(word) - 1)
    match how:
        case "drop":
            return word[:at] + word[at + 1 :]
        case "double":
            return word[: at + 1] + word[at:]
        case "swap":
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word.swapcase()


def drawn(count):
    """Jobs with one word of each misspelt, drawn from a seed, with the word as it was and as it is."""
    rng = random.Random(SEED)
    jobs = {"toml": [REPLICAS, WINDOWS, MERGE, CHANGES, STEPS], "py": [PYTHON]}
    places = [
        (kind, text, found, how)
        for kind, texts in jobs.items()
        for text in texts
        for found in WORD.finditer(text)
        for how in ("drop", "double", "swap", "case")
        if found[0] not in (CHOSEN | OF_PYTHON if kind == "py" else CHOSEN)
        and not (how == "case" and found[0] in CASELESS)
    ]
    for kind, text, found, how in rng.sample(places, count):
        word, wrong = found[0], wrongly(found[0], how, rng)
        if wrong != word:
            yield kind, text[: found.start()] + wrong + text[found.end() :], word, wrong


def test_jobs_drawn_from_a_seed_with_a_misspelt_word_name_it_and_what_was_meant(place, capsys):
    for kind, text, word, wrong in drawn(250):
        linecache.clearcache()
        job = place / f"job.{kind}"
        job.write_text(text)
        status = main(["run", str(job), "--engine", "embedded", "--check"])
        told = capsys.readouterr().err
        assert status == 2 or "no column" in told, (word, wrong, told)
        assert wrong in told, (word, told)
        if nearest(wrong, [word]) and "invalid syntax" not in told:
            assert "did you mean" in told, (word, wrong, told)
            assert word in told, (wrong, told)


@pytest.mark.parametrize("text", [CHANGES, STEPS], ids=["changes", "steps"])
def test_the_jobs_from_which_words_are_drawn_are_right(text, place, capsys):
    (place / "job.toml").write_text(text)
    assert main(["run", str(place / "job.toml"), "--engine", "embedded", "--check"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("mrge a.jsonl", "merge"),
        ("run job.toml --chek", "--check"),
        ("run job.toml --engine embeded", "embedded"),
        ("merge readings.jsonl --declare keyd", "keyed"),
        ("merge readings.jsonl --pace fastst", "fastest"),
        ("convert readings.jsonl x.parqet", ".parquet"),
        ("show reading.jsonl", "readings.jsonl"),
    ],
)
def test_a_misspelt_word_of_a_command_line_is_named_with_what_was_meant(
    words, meant, place, monkeypatch, capsys
):
    monkeypatch.chdir(place)
    try:
        status = main(words.split())
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    assert f"did you mean '{meant}'?" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["SIKN", "Sink", "SPAR", "sources"])
def test_a_dict_of_a_program_that_is_called_almost_as_one_of_a_job_is_refused(wrong, place):
    meant = nearest(wrong, ["SINK", "SPARK", "SOURCES"])
    (place / "job.py").write_text(PYTHON.replace(f"{meant} =", f"{wrong} ="))
    with pytest.raises(ValueError, match=f"has {wrong}, did you mean '{meant}'"):
        read_job(str(place / "job.py"))


def test_a_dict_of_a_program_that_is_called_otherwise_is_its_own(place):
    (place / "job.py").write_text(PYTHON + 'LINK = {"path": "x"}\nsinks = 3\n')
    assert read_job(str(place / "job.py")).sink.path == "merged"


def run(place, text):
    (place / "job.toml").write_text(text)
    return main(["run", str(place / "job.toml"), "--engine", "embedded"])


@pytest.mark.parametrize("text", [REPLICAS, WINDOWS], ids=["replicas", "windows"])
def test_as_they_are_written_they_run_and_nothing_is_remarked(text, place, capsys):
    assert run(place, text) == 0
    told = capsys.readouterr().err
    assert "did you mean" not in told
    assert "no column" not in told


@pytest.mark.parametrize(("text", "wrong"), [*variants(REPLICAS), *variants(WINDOWS)])
def test_a_plan_with_a_misspelt_word_is_refused_or_the_word_is_reported(text, wrong, place, capsys):
    status = run(place, text)
    told = capsys.readouterr().err
    assert status == 2 or f"{wrong!r}" in told, told
    assert status == 2 or "no column" in told, told


def test_as_it_is_written_a_merge_would_run(place):
    (place / "job.toml").write_text(MERGE)
    job = read_job(str(place / "job.toml"))
    check_job(job)
    assert remarks(job) == []


@pytest.mark.parametrize(("text", "wrong"), [*variants(MERGE)])
def test_a_merge_with_a_misspelt_word_is_refused_or_reported_before_spark_starts(text, wrong, place):
    (place / "job.toml").write_text(text)
    try:
        job = read_job(str(place / "job.toml"))
        check_job(job)
    except (ValueError, TypeError, OSError):
        return
    assert any(f"has column {wrong!r}" in words for words in remarks(job))


@pytest.mark.parametrize(
    "given",
    [
        {"start": "att"},
        {"start": "at", "replica": "whoo"},
        {"start": "at", "payload": ["rom"]},
        {"start": "at", "key": "rom"},
        {"start": "at", "properties": "kyed"},
        {"start": "at", "disorder": "10 minuts"},
        {"start": "at", "dsorder": 10},
        {"start": "at", "replica": "who", "replicas": ["a"], "idle": ["b"]},
        {"start": "at", "op": "what", "key": "room", "ops": {"+": "isnert"}},
    ],
)
def test_a_misspelt_argument_of_a_source_is_refused(given):
    columns = {"room": "string", "at": "int64", "who": "string", "what": "string"}
    with pytest.raises((ValueError, TypeError)):
        ab.source("s", columns, **{"disorder": 5, "lossy": False, **given})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (MERGE.replace("shards = 2", "shards = 0"), "at least 1 shard, and shards is 0"),
        (MERGE.replace("shards = 2", "master = 'lokal[2]'"), "and it is 'lokal[2]'"),
        (MERGE.replace("10 seconds", "10 seonds"), "'10 seonds' is none that Spark knows, did you mean"),
        (WINDOWS + 'trigger = "1 minute"\n', "trigger is for what Spark writes"),
        (WINDOWS + "available_now = true\n", "available_now is for what Spark writes"),
    ],
    ids=["no shard", "no master", "no unit", "a trigger beside a file", "available_now beside a file"],
)
def test_what_nothing_would_follow_is_refused_where_the_job_is_read(tmp_path, wrong, said):
    (tmp_path / "job.toml").write_text(wrong)
    with pytest.raises(ValueError, match=re.escape(said)):
        read_job(str(tmp_path / "job.toml"))


def test_a_check_reports_the_keys_of_a_file_that_are_no_columns(place, capsys):
    (place / "job.toml").write_text(WINDOWS.replace("heat", "hot").replace("level", "lvel"))
    assert main(["run", str(place / "job.toml"), "--engine", "embedded", "--check"]) == 0
    told = capsys.readouterr().err
    assert "2 of 2 rows have 'level', which is no column, did you mean 'lvel'?" in told


def test_a_check_reports_a_lossy_source_that_no_merge_uses(place, capsys):
    (place / "job.toml").write_text(WINDOWS.replace("disorder = 20", "disorder = 20\nlossy = true", 1))
    assert main(["run", str(place / "job.toml"), "--engine", "embedded", "--check"]) == 0
    assert "readings: it is declared lossy, and no merge uses that" in capsys.readouterr().err


def test_a_picture_or_text_of_a_plan_is_refused_where_it_names_a_replica_that_is_not_there(place, capsys):
    (place / "job.toml").write_text(
        REPLICAS.replace('replicas = ["north", "south"]', "").replace('lossy = ["north"]', 'lossy = ["nort"]')
    )
    assert main(["explain", str(place / "job.toml")]) == 2
    assert "lossy names replica 'nort'" in capsys.readouterr().err
