"""Other ways to merge the same replicas, to measure against; none is offered to users."""
