"""Names of replicas in settings, beside the replicas that there are.

A name that no row can be of does nothing: a replica that is misspelt in ``lossy`` is taken for complete, and
what only it has is removed. So where the replicas are known before anything is read (folders, topics, tables,
mappings, a list ``replicas``), a name that is none of them is refused; where only rows say it, it is reported
afterwards.
"""

from collections.abc import Collection, Iterable, Mapping

from anabranch.model.spelling import did_you_mean
from anabranch.rows.layout import names_of

Named = Mapping[str, Iterable[str]]
"""The replicas that each setting names."""


def named_in(
    lossy: bool | str | Iterable[str] | None = None,
    idle: str | Iterable[str] | None = None,
    replicas: str | Iterable[str] | None = None,
) -> dict[str, tuple[str, ...]]:
    """The replicas that settings name; those that name none are left out.

    >>> named_in(lossy=["west"], idle="east", replicas=[])
    {'lossy': ('west',), 'idle': ('east',)}
    """
    some = sorted(lossy) if isinstance(lossy, frozenset) else None if isinstance(lossy, bool) else lossy
    given = {"lossy": some, "idle": idle, "replicas": replicas}
    found = {setting: names_of(names) or () for setting, names in given.items()}
    return {setting: names for setting, names in found.items() if names}


def check_in_replicas(named: Named) -> None:
    """Raise where a setting names a replica that is not in ``replicas``, which has them all if it has any."""
    there = tuple(named.get("replicas", ()))
    for setting, name in _others(named, there) if there else ():
        error = ValueError(
            f"a replica in {setting} is one of those in replicas, {name!r} is none of "
            f"{', '.join(map(repr, there))}{did_you_mean(name, there)}"
        )
        error.add_note("Spell it as its rows do, add it to replicas, or leave replicas out.")
        raise error


def check_replicas(named: Named, there: Collection[str], where: str, way_out: str) -> None:
    """Raise where a setting names a replica that is not there, in what the source is read from."""
    for setting, name in _others(named, there):
        error = ValueError(
            f"{setting} names replica {name!r}, and {where} has {', '.join(map(repr, there)) or 'none'}"
            f"{did_you_mean(name, there)}"
        )
        error.add_note("Spell it as it is there; names that differ in case are not the same.")
        error.add_note(way_out)
        raise error


def names_without_rows(named: Named, there: Collection[str], rows: int) -> list[str]:
    """What settings name and no row was of, in words.

    >>> print(*names_without_rows({"lossy": ["nort"]}, ["north"], 340))
    lossy names replica 'nort', and none of 340 rows is of it, did you mean 'north'? They are of 'north'
    """
    of = f"They are of {', '.join(map(repr, there))}"
    return [
        f"replica {name!r} is awaited, and none of {rows:,} rows is of it. {of}"
        if setting == "replicas"  # perhaps known by its folder or topic, and not misspelt
        else f"{setting} names replica {name!r}, and none of {rows:,} rows is of it"
        f"{did_you_mean(name, there) or '.'} {of}"
        for setting, name in (_others(named, there) if there else ())
    ]


def _others(named: Named, there: Collection[str]) -> list[tuple[str, str]]:
    """Names that are none of those, with the settings that have them."""
    return [(setting, name) for setting, names in named.items() for name in names if name not in there]
