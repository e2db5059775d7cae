"""The command line: one file per sub-command that parses, calls and prints."""
