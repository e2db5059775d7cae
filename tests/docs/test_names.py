"""The names that the reference has are there, and every public name is on some page."""

import re
from pathlib import Path

import anabranch

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NAMES = (ROOT / "docs" / "reference" / "names.md").read_text(encoding="utf-8")


def test_the_names_in_the_table_are_there():
    table = NAMES.split("From Python, `import anabranch` has")[1].split("## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    names = [name.removeprefix("anabranch.") for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]
    assert len(names) > 40
    for name in names:
        assert (
            name in anabranch.__all__
            or (ROOT / "src" / "anabranch" / name).with_suffix(".py").exists()
            or (ROOT / "src" / "anabranch" / name).is_dir()
        ), f"docs/reference/names.md tells of {name}, which is not there"


def test_every_public_name_is_told_of_somewhere():
    pages = [README, *(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md"))]
    words = {word for page in pages for word in re.findall(r"\w+", page)}
    assert set(anabranch.__all__) - words == set()
