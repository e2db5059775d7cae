"""Hypothesis profiles: the default repeats exactly; ``--hypothesis-profile=campaign`` looks further, and
``mutants`` less far, without making what it finds small. ``--quick`` takes ``quick``.

One Spark session for all tests of a process, and one broker.
"""

import signal
from pathlib import Path

import pytest
import quick
from hypothesis import HealthCheck, Phase, settings
from stale_loops import forget_stale
from tiers import Tiers

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "campaign", settings.get_profile("repeatable"), derandomize=False, max_examples=2_000
)
settings.register_profile(
    "mutants", settings.get_profile("repeatable"), max_examples=30, phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=200 // quick.LESS)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption(
        "--slow", action="store_true", help="also run the tests that start clusters, or take long otherwise"
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="only tests that need no JVM, no broker and no command, with an eighth of their cases",
    )
    parser.addoption("--durations-to", metavar="FILE", help="write the seconds of tiers and tests to a page")


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts so what is in the background, and commands that a test interrupts would not hear it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        forget_stale(Path(__file__).parents[1] / "src")
    if config.getoption("--quick"):
        quick.share = quick.LESS
        settings.load_profile("quick")
        config.pluginmanager.register(quick.Quick(), "quick")
    config.addinivalue_line("markers", "slow: starts a cluster, or takes long otherwise; only with --slow")
    config.pluginmanager.register(Tiers(config), "tiers")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        chosen = [item for item in items if "slow" not in item.keywords]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from anabranch import spark as ab
    from anabranch.engines.spark.session.jvm import SHORT_LIVED

    folder = tmp_path_factory.mktemp("spark")
    session = ab.session(
        "local[2]",
        shards=2,
        config={
            **SHORT_LIVED,
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
        },
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker():
    from anabranch.testing.broker import Broker

    with Broker() as running:
        yield running
