"""Packages that only a part of Anabranch uses, and the extra of the distribution that brings each."""

from importlib.util import find_spec

SPARK = {"pyspark": "pyspark", "pandas": "pandas", "protobuf": "google.protobuf"}
"""The packages that Spark needs, and what is imported of each."""


def is_installed(module: str) -> bool:
    """A module can be imported, as far as can be told without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def check_installed(module: str, package: str, extra: str, use: str, otherwise: str = "") -> None:
    """Raise where a package is not installed; ``use`` begins the message, ``otherwise`` ends it."""
    if not is_installed(module):
        raise ImportError(
            f"{use} the package {package}, and it is not installed: "
            f"pip install 'anabranch[{extra}]'{otherwise}",
            name=module,
        )


def without_spark(reason: BaseException) -> str | None:
    """What to say of an import that failed because PySpark is not installed; None of any other error."""
    if isinstance(reason, ModuleNotFoundError) and (reason.name or "").partition(".")[0] == "pyspark":
        try:
            check_spark()
        except ImportError as missing:
            return str(missing)
    return None


def check_spark() -> None:
    """Raise where a package that Spark needs is not installed."""
    for package, module in SPARK.items():
        check_installed(module, package, "spark", "Spark needs")
