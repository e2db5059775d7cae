"""The Spark that queries run in: session, JVM, workers, types of rows."""
