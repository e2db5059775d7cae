"""What a stream is: elements, lifetimes, and the relation that any prefix denotes."""
