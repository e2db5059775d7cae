"""Hypothesis profiles: the default repeats exactly; ``--hypothesis-profile=campaign`` looks further."""

from hypothesis import HealthCheck, settings

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
settings.load_profile("repeatable")
