"""Aggregates as columns of state by slot, and which slot a row adds to."""
