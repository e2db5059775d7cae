"""The slow, obvious meaning of everything; judges all the rest."""
