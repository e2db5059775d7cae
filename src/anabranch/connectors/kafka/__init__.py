"""Kafka as a native door and as a sink, through librdkafka: no jar, no version of Spark's to match."""
