"""Replicas that settings name are those that there are, or it is told."""

import json

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch.cli.main import main

COLUMNS = {"room": "string", "at": "int64", "who": "string"}


def source(**given):
    given = {"lossy": False, **given}
    return ab.source("g", COLUMNS, start="at", disorder=2, replica="who", **given)


def rows(who, *times):
    return [{"room": "A", "at": at, "who": who} for at in times]


def refusal(call):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


@pytest.mark.parametrize("name", ["nort", "North", "NORTH", "north "])
@pytest.mark.parametrize("setting", ["lossy", "idle", "replicas"])
def test_a_misspelt_replica_is_refused_before_anything_is_read_of_a_mapping_or_a_folder(
    name, setting, tmp_path
):
    feeds = {"north": rows("north", 1, 5), "south": rows("south", 1)}
    for who, some in feeds.items():
        (tmp_path / who).mkdir()
        (tmp_path / who / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    for given in (feeds, tmp_path):
        told = refusal(
            lambda given=given: ab.run(source(**{setting: [name]}).merge(), {"g": given}).__next__()
        )
        assert f"{setting} names replica {name!r}" in told
        assert "'north', 'south', did you mean 'north'?" in told


@pytest.mark.parametrize("setting", ["lossy", "idle"])
def test_a_list_of_replicas_has_all_that_other_settings_name(setting):
    told = refusal(lambda: source(**{setting: ["nort"], "replicas": ["north", "south"]}))
    assert f"a replica in {setting} is one of those in replicas" in told
    assert "did you mean 'north'?" in told


@pytest.mark.parametrize("setting", ["lossy", "idle", "replicas"])
def test_replicas_are_not_named_where_no_column_says_whose_a_row_is(setting):
    call = lambda: ab.source("g", COLUMNS, start="at", disorder=2, **{setting: ["north"]})  # noqa: E731
    assert "no column says which of them sent a row" in refusal(call)


def test_a_replica_that_sends_nothing_yet_is_named_where_it_has_its_place(tmp_path):
    plan = source(lossy=["south"], replicas=["north", "south"]).merge()
    assert list(ab.run(plan, {"g": {"north": rows("north", 1, 5), "south": []}}))


JOB = """
[sources.g]
path = "feeds"
columns = { room = "string", at = "int64", replica = "string" }
start = "at"
disorder = 2
replica = "replica"
lossy = ["LOSSY"]

[plan]
steps = ["merge"]
"""


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_a_job_that_misspells_a_folder_is_refused_before_it_runs(engine, tmp_path, capsys):
    for who in ("north", "south"):
        (tmp_path / "feeds" / who).mkdir(parents=True)
        (tmp_path / "feeds" / who / "1.jsonl").write_text('{"room": "A", "at": 1}\n')
    sink = '\n[sink]\npath = "out"\n'
    (tmp_path / "job.toml").write_text(JOB.replace("LOSSY", "soth") + sink)
    assert main(["run", str(tmp_path / "job.toml"), "--engine", engine]) == 2
    assert "did you mean 'south'?" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_name_that_only_rows_could_have_is_reported_with_the_number_of_rows():
    job = source(lossy=["nort"], idle=["South"]).merge().open()
    job.push("g", rows("north", 1, 5))
    job.push("g", rows("south", 2))
    found = job.status().remarks()
    assert found == [
        "g: lossy names replica 'nort', and none of 3 rows is of it, did you mean 'north'? They are of "
        "'north', 'south'",
        "g: idle names replica 'South', and none of 3 rows is of it, did you mean 'south'? They are of "
        "'north', 'south'",
    ]
    assert all(words in str(job.status()) for words in found)
    fine = source(lossy=["north"]).merge().open()
    fine.push("g", rows("north", 1))
    assert not fine.status().remarks()


def test_rows_of_a_mapping_need_not_say_whose_they_are():
    bare = [{"room": "A", "at": at} for at in (1, 5)]
    forms = [
        bare,
        pa.Table.from_pylist(bare),
        [pa.RecordBatch.from_pylist(bare)],
        pa.Table.from_pylist(bare).to_batches(),
    ]
    outputs = []
    for form in forms:
        relation = ab.Relation()
        for batch in ab.run(source().merge(), {"g": {"north": form, "south": rows("south", 1, 5)}}):
            relation.apply(batch)
        outputs.append(sorted((one.payload["room"], one.start) for one in relation.events()))
    assert outputs == [[("A", 1), ("A", 5)]] * len(forms)


@pytest.mark.parametrize(
    ("setting", "word", "value"),
    [("pace", "slowest", "Pace.SLOWEST"), ("on_late", "drop", "Drop()")],
)
def test_a_word_of_job_files_is_refused_in_python_with_the_value_to_write(setting, word, value):
    told = refusal(lambda: source().merge(**{setting: word}))
    assert f"Write {setting}={value}, after: from anabranch import" in told
    assert f"{setting} is one of" in refusal(lambda: source().merge(**{setting: "fnial"}))


def test_an_output_policy_may_be_named_by_its_word():
    assert source().merge(policy="final").node.policy == ab.FinalOnly()
    assert "did you mean 'final'?" in refusal(lambda: source().merge(policy="fianl"))


@pytest.mark.parametrize("given", ["final = true", "open_only = true", 'key = "room"'])
def test_a_history_with_what_only_current_values_have_is_refused_when_the_file_is_read(
    given, tmp_path, capsys
):
    (tmp_path / "feeds").mkdir()
    (tmp_path / "job.toml").write_text(
        '[source]\npath = "feeds"\n[merge]\nstart = "at"\ndisorder = 2\n'
        f'[sink.table]\npath = "out"\nkind = "history"\n{given}\n'
    )
    assert main(["run", str(tmp_path / "job.toml")]) == 2
    assert f"this one is 'history', with {given.split(' ')[0]}" in capsys.readouterr().err
