"""Paths of this machine, or of a file system that it has mounted; addresses of other stores are told so."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from anabranch.model.spelling import nearest

_STORES = "abfs abfss adl cosn dbfs gs hdfs oss s3 s3a s3n viewfs wasb wasbs"
_ADDRESS = re.compile(rf"([A-Za-z][A-Za-z0-9+.-]+):/|({'|'.join(_STORES.split())}):")
"""A scheme before a slash (one is left where a path was made of an address), or a store by its name."""


def is_address(path: str | Path) -> bool:
    """A text names a place by a scheme, ``file:`` among them."""
    return _ADDRESS.match(str(path)) is not None


def local_path(path: str | Path, beside: Path | None = None) -> Path:
    """A path as people give it, absolute; ``file:`` addresses are paths.

    A relative one is in ``beside``, or in the folder of this process.
    """
    text = str(path)
    found = _ADDRESS.match(text)
    if found is None:
        return ((beside or Path()) / Path(path).expanduser()).absolute()
    scheme = found[1] or found[2]
    if scheme.lower() == "file" and urlsplit(text).netloc in ("", "localhost"):
        return Path(unquote(urlsplit(text).path)).absolute()
    error = ValueError(f"a folder is on a file system, and {text!r} is an address of {scheme}")
    error.add_note("Mount the store, or read and write it through Spark: spark.readStream…, writeStream….")
    raise error


def path_meant(path: str | Path) -> str:
    """The end of a message about a path that is not there: one that is, with one name that is like it."""
    place = Path(path)
    above = [place, *place.parents]
    there = next((n for n, one in enumerate(above) if one.is_dir()), 0)
    if not there:
        return ""
    gone, folder = above[there - 1], above[there]
    near = nearest(gone.name, sorted(one.name for one in folder.iterdir()))
    if near is None:
        return ""
    meant = folder / near / place.relative_to(gone)
    return f", did you mean {str(meant)!r}?" if meant.exists() else ""
