"""Models of progress: until when the channels of a source are stable, by what was seen of them."""
