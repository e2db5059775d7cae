"""The scene of the demo: two replicas of one stream, one of which dies, and three ways to read them."""
