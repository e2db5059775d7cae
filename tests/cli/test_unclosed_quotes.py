"""A quote that is not closed is told as that, with its line."""

import pytest

from anabranch.jobs.job_file import read_job


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('[source]\npath = "feeds\nschema = "v long"\n', 2),
        ("[source]\n\npath = 'feeds\n", 3),
        ('[merge]\nstart = "at', 2),
        ('[merge]\nstart = "at"\npolicy = { name = "final }\n', 3),
    ],
)
def test_an_open_quote_is_named_with_its_line(tmp_path, text, number):
    (tmp_path / "job.toml").write_text(text)
    with pytest.raises(ValueError, match=f"a quote is not closed in line {number}: ") as caught:
        read_job(tmp_path / "job.toml")
    assert "same quote" in " ".join(caught.value.__notes__)
