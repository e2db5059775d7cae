"""What is called otherwise elsewhere: names of PySpark, pandas, Polars and SQL, and what they are here."""

from collections.abc import Iterable, Mapping

from anabranch.model.spelling import did_you_mean

OF_STREAMS = {
    "groupBy": ".window(size).group_by(…).agg(…)",
    "groupby": ".window(size).group_by(…).agg(…)",
    "group_by": ".window(size).group_by(…).agg(…)",
    "group_by_dynamic": ".window(size).group_by(…).agg(…)",
    "agg": ".window(size).agg(…)",
    "resample": ".window(size).agg(…)",
    "rolling": ".window(size, every).agg(…), or .rows(before).agg(…)",
    "where": ".filter(…)",
    "query": ".filter(…)",
    "withColumn": ".with_columns(name=…)",
    "withColumns": ".with_columns(name=…)",
    "assign": ".with_columns(name=…)",
    "withColumnRenamed": ".rename({old: new})",
    "selectExpr": ".select(…)",
    "map": ".apply(…), a function of record batches",
    "map_batches": ".apply(…)",
    "mapInArrow": ".apply(…)",
    "flatMap": ".apply(…)",
    "dropDuplicates": ".distinct()",
    "dropDuplicatesWithinWatermark": ".distinct()",
    "drop_duplicates": ".distinct()",
    "unique": ".distinct()",
    "orderBy": ".sort()",
    "sort_values": ".sort()",
    "sort_by": ".sort()",
    "unionAll": "anabranch.union(one, other)",
    "unionByName": "anabranch.union(one, other)",
    "union": "anabranch.union(one, other)",
    "concat": "anabranch.union(one, other)",
    "merge": "anabranch.merge(one, other) of streams that mean the same, or .join(other, on=…, within=…)",
    "join_asof": ".join(other, on=…, within=…)",
    "withWatermark": "source(…, disorder='10 minutes')",
    "with_watermark": "source(…, disorder='10 minutes')",
    "tumbling": ".window(size)",
    "sliding": ".window(size, every)",
    "session_window": ".session(gap)",
    "writeStream": "anabranch.run(plan, {…}), or anabranch.spark.frame(plan, {…}) and a sink",
    "collect": "anabranch.run(plan, {…}).table()",
    "show": "anabranch.run(plan, {…}).table()",
    "toPandas": "anabranch.run(plan, {…}).table().to_pandas()",
    "to_pandas": "anabranch.run(plan, {…}).table().to_pandas()",
}
OF_WINDOWS = {
    "groupBy": ".group_by(…)",
    "groupby": ".group_by(…)",
    "aggregate": ".agg(…)",
    "count": ".agg(anabranch.count())",
}
OF_COLUMNS = {
    "avg": ".mean()",
    "average": ".mean()",
    "stddev": ".std()",
    "variance": ".var()",
    "nunique": ".n_unique()",
    "count_distinct": ".n_unique()",
    "median": ".approx_median()",
    "quantile": ".approx_quantile(q)",
    "percentile": ".approx_quantile(q)",
    "percentile_approx": ".approx_quantile(q)",
    "isNull": ".is_null()",
    "isna": ".is_null()",
    "isnull": ".is_null()",
    "isNotNull": ".is_not_null()",
    "notna": ".is_not_null()",
    "isin": ".is_in([…])",
    "between": ".is_between(least, greatest)",
    "astype": ".cast(…)",
    "fillna": ".fill_null(…)",
    "coalesce": ".fill_null(…)",
    "lower": ".str.to_lowercase()",
    "upper": ".str.to_uppercase()",
    "startswith": ".str.starts_with(…)",
    "endswith": ".str.ends_with(…)",
    "contains": ".str.contains(…)",
    "like": ".str.contains(…)",
    "rlike": ".str.contains(…)",
    "substr": ".str.slice(…)",
    "substring": ".str.slice(…)",
    "getField": ".struct.field(…)",
    "map": "call('function', column), or .apply(…) on the stream",
    "first_value": ".first()",
    "last_value": ".last()",
}
OF_THE_PACKAGE = {
    "avg": "col(name).mean()",
    "mean": "col(name).mean()",
    "sum": "col(name).sum()",
    "min": "col(name).min()",
    "max": "col(name).max()",
    "column": "col(name)",
    "window": "a stream's .window(size)",
    "join": "a stream's .join(other, on=…, within=…)",
    "concat": "union(one, other)",
    "read_csv": "run(plan, {name: path}), or columns(path) for its schema",
    "read_parquet": "run(plan, {name: path}), or columns(path) for its schema",
    "SparkSession": "anabranch.spark.session()",
}


def no_attribute(owner: str, name: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """The message where there is no attribute of a name, with what it is called here.

    >>> no_attribute("a stream", "where", ["filter"], OF_STREAMS)
    "a stream has no 'where'; write .filter(…)"
    >>> no_attribute("a stream", "filtr", ["filter"], OF_STREAMS)
    "a stream has no 'filtr', did you mean 'filter'?"
    """
    if name in elsewhere:
        return f"{owner} has no {name!r}; write {elsewhere[name]}"
    return f"{owner} has no {name!r}{did_you_mean(name, [one for one in known if not one.startswith('_')])}"
