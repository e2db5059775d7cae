"""The metadata of the column kind of a frame, which sinks, checkpoints and the start of a query read."""

from anabranch.model.output_policy import OutputPolicy

POLICY = "anabranch.policy"
"""The kind of the output policy of a merge that is the last operator."""
SETTINGS = "anabranch.settings"
"""What the state depends on."""
SHARDS = "anabranch.shards"
"""In how many parts the state is."""
LEVELS = "levels"
"""The setting that says in how many levels a plan is run."""
CLOCK = "anabranch.clock"
"""Whether the clock is among the sources."""


def policy_kind(policy: OutputPolicy) -> str:
    """The kind of a policy, by which sinks tell what they may be given."""
    return type(policy).__name__ + (" by what inputs show" if policy.needs_all else "")
