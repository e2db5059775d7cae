"""A job says whether its replicas may lose rows where no row can, and is told what either answer means."""

import pytest

from anabranch.jobs.job_file import read_job

ENDS = """
[source]
path = "feeds"
schema = "at timestamp, kind string, replica string, v int"
{}
[sink]
path = "out"
"""


def job(folder, *lines):
    (folder / "job.toml").write_text(ENDS.format("\n".join(["[merge]", 'start = "at"', *lines])))
    return read_job(folder / "job.toml")


def test_an_answer_is_asked_for_where_progress_of_replicas_is_inferred(tmp_path):
    for lines in (['disorder = "1 minute"'], ['disorder = "1 minute"', 'kind = "kind"']):
        with pytest.raises(ValueError, match="none of them vouches") as caught:
            job(tmp_path, 'replica = "replica"', *lines)
        told = " ".join(caught.value.__notes__)
        assert "lossy = true if a replica may lose rows: what only one replica has stays" in told
        assert "lossy = false if each has every row: the replica that is furthest decides" in told
        assert 'lossy = ["west"]' in told


@pytest.mark.parametrize("answer", ["true", "false", '["west"]'])
def test_any_answer_will_do(tmp_path, answer):
    job(tmp_path, 'replica = "replica"', 'disorder = "1 minute"', f"lossy = {answer}")


def test_none_is_needed_of_one_stream_nor_of_replicas_that_say_stable(tmp_path):
    assert "lossy" not in job(tmp_path, 'disorder = "1 minute"').plan.arguments()
    assert "lossy" not in job(tmp_path, 'replica = "replica"', 'kind = "kind"').plan.arguments()
