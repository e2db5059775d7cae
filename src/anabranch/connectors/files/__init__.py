"""Streams and rows in files, for any engine."""
