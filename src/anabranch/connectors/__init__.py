"""Doors to the outside: files in every format a stream is written in."""
