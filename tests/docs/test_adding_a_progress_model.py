"""The page about adding a model of progress, followed: its blocks are put where it says and obey the laws."""

import doctest
import re
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import laws.progress_models
import pyarrow as pa
import pytest
from engines.spark.plan_driving import LeveledQuery
from engines.spark.plan_laws import stables, statuses
from laws.progress_models import MODELS, check
from quick import cases

import anabranch as ab
from anabranch import BEGINNING, Quarantine
from anabranch.kernels.answers import Answers
from anabranch.oracle import progress

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-progress-model.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^`([\w/.]+)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = dict(BLOCK.findall(PAGE))
FILES = (
    "src/anabranch/oracle/progress.py",
    "src/anabranch/progress/models/skew.py",
    "tests/laws/progress_models.py",
)
ROWS = pa.schema([("at", pa.int64()), ("room", pa.string()), ("gateway", pa.string())])


@pytest.fixture
def skew(monkeypatch):
    """The model and its row, once the files are where the page has them."""
    exec(BLOCKS[FILES[0]], vars(progress))
    name = "anabranch.progress.models.skew"
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(BLOCKS[FILES[1]], FILES[1], "exec"), vars(made))
    row = vars(laws.progress_models) | {"skew": vars(progress).pop("skew"), "Skew": made.Skew}
    exec(BLOCKS[FILES[2]], row)
    drawn = re.search(r"`(Model\(.*?\))`", PAGE)[1]
    return made, eval(drawn, row)


def check_all(seeds, models):
    for seed in seeds:
        check(seed, models)


def test_it_is_three_files_and_none_of_the_engines():
    assert tuple(BLOCKS) == FILES
    assert all(f"`{file}`" in PAGE.split("## 1.")[0] for file in FILES)


def test_it_obeys_the_laws_alone_and_among_others(skew):
    _, row = skew
    check_all(range(cases(150)), (row,))
    check_all(range(cases(150)), (*MODELS, row))


@pytest.mark.parametrize("wrong", ["promises too much", "forgets at a restart", "keeps those who left"])
def test_the_laws_would_notice_if_it_were_wrong(skew, wrong, monkeypatch):
    made, row = skew
    if wrong == "promises too much":
        monkeypatch.setattr(made.Skew, "model", lambda self: made.SkewModel(self.bound - 1))
    elif wrong == "forgets at a restart":
        monkeypatch.setattr(made.Skew, "resumed", lambda self, saved: made.SkewModel(self.bound))
    else:
        monkeypatch.setattr(made.SkewModel, "forget", lambda self, numbers: made.Promises.none())
    with pytest.raises((AssertionError, KeyError)):
        check_all(range(300), (row,))


def test_what_is_written_of_it_is_run(skew):
    page = doctest.DocTestParser().get_doctest(
        PAGE.split("## In use")[1], {}, "adding-a-progress-model.md", "docs/adding-a-progress-model.md", 0
    )
    assert page.examples
    assert doctest.DocTestRunner(verbose=False).run(page).failed == 0


@pytest.mark.parametrize("seed", range(cases(24)))
def test_shards_that_are_restarted_promise_what_a_job_does(skew, seed):
    made, _ = skew
    random = Random(seed)
    stream = ab.source(
        "s",
        ROWS,
        start="at",
        sequence="at",
        replica="gateway",
        replicas=["north", "south"],
        lossy=True,
        progress=made.Skew(random.randint(0, 6)),
    ).merge()
    query = LeveledQuery(stream, random.randint(1, 3), Answers(Quarantine(), Quarantine(), Quarantine()))
    job, now, stable = stream.open(on_invalid=Quarantine()), 0, BEGINNING
    for _ in range(8):
        rows = []
        for name in random.sample(["north", "south"], random.randint(1, 2)):
            for _ in range(random.randint(1, 5)):
                now += random.randint(0, 3)
                at, room = now + random.randint(-4, 0), random.choice("ABC")
                rows.append({"at": at, "room": room, "gateway": name})
        rows.sort(key=lambda row: row["at"])
        batch = pa.RecordBatch.from_pylist(rows, schema=ROWS)
        for element in job.push("s", batch).to_pylist():
            stable = max(stable, element["start"]) if element["kind"] == "stable" else stable
        said = query.receive({"s": [batch]})
        assert max(stables(said), default=stable) == stable
        assert {one.frontier for one in statuses(said)} == {stable}
        if random.random() < 0.5:
            query.restart()
            job = stream.open(job.dump(), on_invalid=Quarantine())
