"""Folders of files that replicas write, as a source; and a folder of what a query gives, as its sink."""
