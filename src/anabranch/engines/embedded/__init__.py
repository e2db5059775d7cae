"""The engine within one Python process."""
