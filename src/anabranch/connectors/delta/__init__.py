"""The change data feeds of Delta tables as a source of changes."""
