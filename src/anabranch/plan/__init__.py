"""What a user builds: operators over streams, with their columns and properties; nothing runs here."""
