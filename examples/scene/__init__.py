"""What the examples share: readings, feeds of them, the other ways to read two replicas, and a verdict."""
