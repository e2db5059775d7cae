"""What Spark forks its Python workers from (``spark.python.daemon.module``), with their imports done once."""

if __name__ == "__main__":
    from pyspark.daemon import manager

    import anabranch.engines.spark.processor
    import anabranch.engines.spark.transport.frames  # noqa: F401

    manager()
