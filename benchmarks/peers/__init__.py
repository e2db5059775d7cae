"""One file per system that does the jobs of `merge_peers`, each run in a process of its own.

Each has ``prepare(folder, revised, ready)``, which gives the job as something to call. ``ready`` takes the
input in the form that the system likes best, as it is read: `list` has it all in memory before the job
begins, which is how time is measured; `iter` lets the job read as it goes, which is how memory is. The job
gives how many rows came out and the sum of their ends.
"""
