"""How far streams have come, where they enter a flow."""
