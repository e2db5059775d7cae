"""How elements travel between the tasks of a query: packed, in bytes, in slices, unpacked."""
