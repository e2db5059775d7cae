"""Kafka as a native source and as a sink, through librdkafka: no jar, no version of Spark's to match."""
