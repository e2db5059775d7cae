"""Operators as state machines over columnar batches, one operator per file."""
