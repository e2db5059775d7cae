#!/bin/sh
# Runs $ANABRANCH_PYTHON, or what Spark would, without Spark's zips of PySpark on its path. The worker in which
# Spark makes a stateful operator known prints its every step on standard output, which is read by nothing.
set -f
IFS=:
kept=
for place in $PYTHONPATH; do
    case $place in
        */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;;
        *) kept=$kept${kept:+:}$place ;;
    esac
done
for word in "$@"; do
    case $word in
        pyspark.sql.streaming.transform_with_state_driver_worker) exec >/dev/null ;;
    esac
done
export PYTHONPATH="$kept"
exec "${ANABRANCH_PYTHON:-python3}" "$@"
