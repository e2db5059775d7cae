"""One Spark session for all tests of a process."""

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from anabranch import spark as ab

    folder = tmp_path_factory.mktemp("spark")
    session = ab.session(
        "local[2]",
        shards=2,
        config={
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
        },
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
