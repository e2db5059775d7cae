"""What plans compute of the columns of a row: a small tree over Arrow's scalar functions."""
