"""Keys of rows that are no columns, and columns that no row has, are counted and reported."""

import json
from collections import Counter
from random import Random

import pytest
from quick import cases

import anabranch as ab
from anabranch.cli.main import main

COLUMNS = {"room": "string", "level": "int64", "at": "int64"}
NAMES = [*COLUMNS, "romo", "lvl", "extra", "Room"]


def rows_of(random):
    present = random.sample(NAMES, random.randrange(len(NAMES)))
    rows = []
    for at in range(random.randrange(1, 40)):
        row = {name: 1 for name in present if random.random() < 0.6}
        rows.append({key: "A" if key in ("room", "Room", "romo") else at for key in row} | {"at": at})
    return rows


@pytest.mark.parametrize("seed", range(cases(30)))
def test_what_is_reported_of_keys_is_what_counting_them_gives_through_every_door(seed, tmp_path):
    rows = rows_of(Random(seed))
    counts = Counter(key for row in rows for key in row)
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = ab.source("s", COLUMNS, start="at", disorder=2)
    for given in (rows, file):
        run = ab.run(plan, {"s": given})
        list(run)
        found = run.status().sources["s"].remarks
        odd = [key for key in counts if key not in COLUMNS]
        absent = [name for name in COLUMNS if not counts[name]]
        assert len(found) == len(odd) + len(absent)
        for key in odd:
            assert sum(f"{counts[key]} of {len(rows)} rows have {key!r}," in words for words in found) == 1
        for name in absent:
            assert f"none of {len(rows)} rows has column {name!r}" in found


def test_the_column_that_was_meant_is_asked_for_in_the_summary_of_a_run(tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text('{"at": 1, "levle": 3}\n{"at": 2, "levle": 4}\n')
    (tmp_path / "job.toml").write_text(
        "[sources.s]\npath = 'in.jsonl'\nstart = 'at'\ndisorder = 1\n"
        "columns = { at = 'int64', level = 'int64' }\n[plan]\n[sink]\nfile = 'out.jsonl'\n"
    )
    assert main(["run", str(tmp_path / "job.toml"), "--engine", "embedded"]) == 0
    told = capsys.readouterr().err
    assert "s: 2 of 2 rows have 'levle', which is no column, did you mean 'level'?" in told
    assert "s: none of 2 rows has column 'level'" in told


def test_columns_that_are_given_beside_the_rows_need_not_be_in_them():
    plan = ab.source("s", {**COLUMNS, "who": "string"}, start="at", disorder=2, replica="who", lossy=False)
    run = ab.run(plan.merge(), {"s": {"north": [{"room": "A", "level": 1, "at": 1}]}})
    list(run)
    assert run.status().remarks() == []
