"""A merge with its ends as a TOML or Python file."""
