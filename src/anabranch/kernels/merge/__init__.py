"""Logical merge: several physical streams that mean the same, one stream out. One file per case."""
