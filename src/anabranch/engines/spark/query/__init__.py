"""The life of a query: its checkpoint, its start, how it fares, how it fails."""
