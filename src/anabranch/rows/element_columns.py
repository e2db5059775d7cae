"""The columns of element rows that are neither their kind nor payload."""

TIMES = ("start", "end", "old_end")
REFUSED = "refused"
"""What was not used, in a row that has nothing else."""
