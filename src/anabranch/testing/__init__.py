"""Streams to test with: generators, faults, workloads and assertions."""
