"""Doors to the outside: files, folders, Kafka, Delta tables; of Spark only sources and sinks know."""
