"""What must be in order before a job can run: one file per thing that is looked at."""
