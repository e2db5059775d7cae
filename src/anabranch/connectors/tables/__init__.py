"""Tables that are kept at what a stream of element rows denotes."""
