"""What a user builds: streams of operators, with their columns, properties and settings; nothing runs here."""
