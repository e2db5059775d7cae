"""The version is that of the distribution."""

from importlib.metadata import version

import anabranch


def test_the_version_is_that_of_the_distribution():
    assert anabranch.__version__ == version("anabranch")
