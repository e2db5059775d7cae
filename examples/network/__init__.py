"""Packets on several links, and nine standing queries over them."""
