"""Paths of this machine, or of a file system that it has mounted; addresses of other stores are told so."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def local_path(path: str | Path) -> Path:
    """A path as people give it, absolute; ``file:`` addresses are paths."""
    text = str(path)
    if "://" not in text:
        return Path(path).absolute()
    address = urlsplit(text)
    if address.scheme == "file":
        return Path(unquote(address.path)).absolute()
    error = ValueError(f"a folder is on a file system, and {text!r} is an address of {address.scheme}")
    error.add_note("Mount the store, or read and write it through Spark: spark.readStream…, writeStream….")
    raise error
