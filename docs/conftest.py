"""Pages that are run by other tests than their own."""

collect_ignore = ["adding-a-progress-model.md", "adding-an-operator.md"]  # tests/docs/test_adding_*.py
