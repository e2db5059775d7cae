"""What Spark forks its Python workers from (``spark.python.daemon.module``), with their imports done once."""

if __name__ == "__main__":
    from pyspark.daemon import manager

    import anabranch.engines.spark.frames
    import anabranch.engines.spark.processor  # noqa: F401

    manager()
