"""Pages that are run by other tests than their own."""

collect_ignore = ["adding-an-operator.md"]  # tests/docs/test_adding_an_operator.py
