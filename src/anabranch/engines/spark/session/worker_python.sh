#!/bin/sh
# Runs $ANABRANCH_PYTHON, or what Spark would, without Spark's zips of PySpark on its path.
set -f
IFS=:
kept=
for place in $PYTHONPATH; do
    case $place in
        */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;;
        *) kept=$kept${kept:+:}$place ;;
    esac
done
export PYTHONPATH="$kept"
exec "${ANABRANCH_PYTHON:-python3}" "$@"
