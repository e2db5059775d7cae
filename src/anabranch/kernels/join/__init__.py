"""Pairs of events that are near in time."""
