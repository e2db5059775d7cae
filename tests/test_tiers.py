"""What needs Spark is where its session is, whatever the files say; seconds are told beside budgets."""

import pytest
from tiers import SPARK, TIERS, Tiers, tier_of


def test_every_test_that_takes_the_session_is_of_its_tier(request):
    taking = {item.path for item in request.session.items if "spark" in getattr(item, "fixturenames", ())}
    files = [str(path.relative_to(request.config.rootpath)) for path in taking]
    assert [file for file in files if tier_of(file) is not SPARK] == []


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("tests/engines/spark/test_plans.py", "Spark"),
        ("docs/spark.md", "Spark"),
        ("tests/engines/spark/test_killed_plans.py", "survival"),
        ("tests/cli/test_run_command.py", "commands"),
        ("tests/engines/spark/test_spark_laws.py", "engines"),
        ("docs/operators/union.md", "docs"),
        ("tests/model/test_batch.py", "model"),
        ("tests/of/no/tier.py", "model"),
    ],
)
def test_a_file_is_of_one_tier(file, name):
    assert tier_of(file).name == name


def test_a_tier_over_its_budget_says_so(pytestconfig):
    tiers = Tiers(pytestconfig)
    tiers.seconds.update({"laws": 1.0, "kernels": 10_000.0})
    laws, kernels = (next(tier for tier in TIERS if tier.name == name) for name in ("laws", "kernels"))
    assert tiers.lines() == [
        f"laws              1 of{laws.budget:>6}",
        f"kernels       10000 of{kernels.budget:>6}  over its budget",
        f"all           10001 of{laws.budget + kernels.budget:>6}  over its budget",
    ]
