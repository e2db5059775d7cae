"""What the columns of plain rows mean, for every engine and connector."""
