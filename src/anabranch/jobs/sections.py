"""The sections of a job file, which TOML calls tables, and the words in them as the values they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from anabranch.jobs.environment import filled
from anabranch.model.spelling import did_you_mean

Names = str | list[str]
PARTITIONS = "spark.sql.shuffle.partitions"
ZONE = "spark.sql.session.timeZone"
_MASTERS = ("local", "local-cluster", "yarn", "spark", "k8s", "mesos")
_MASTER = re.compile(r"local(\[(\*|\d+)(, *\d+)?\])?|local-cluster\[.+\]|yarn|(spark|k8s|mesos)://.+")


class Section(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A section of a job file: its fields are the keys it may have."""


class SparkSection(Section):
    """``[spark]``: the session."""

    master: str = "local[*]"
    shards: int | None = None
    config: dict[str, str | int | float | bool] = {}
    log: str | None = None

    def check(self) -> None:
        """Raise where Spark would refuse the master, or a query the number of its shards."""
        from anabranch.engines.spark.session.session import check_shards

        check_shards(self.shards)
        if not _MASTER.fullmatch(self.master):
            error = ValueError(
                f"[spark] master is the address of a cluster or local, and it is {self.master!r}"
                f"{did_you_mean(re.split(r'[^a-z0-9-]', self.master.lower())[0], _MASTERS)}"
            )
            error.add_note("Write local[*], local[2], spark://host:7077, yarn or k8s://https://host:443.")
            raise error

        self._check_settings(self.settings())

    def _check_settings(self, settings: Mapping[str, str]) -> None:
        from anabranch.model.zones import zone_named

        shards = settings.get(PARTITIONS)
        if shards is not None and not shards.isdecimal():
            error = ValueError(f"[spark.config] {PARTITIONS} is a whole number, and it is {shards!r}")
            error.add_note("It is how many shards a query has: write shards = 4 in [spark] in its place.")
            raise error
        try:
            zone_named(settings.get(ZONE, "UTC"))
        except ValueError as error:
            error.add_note(f"It is {ZONE} in [spark.config].")
            raise

    def settings(self) -> dict[str, str]:
        """The settings as Spark takes them."""
        return {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self.config.items()
        }


Kind = TypeVar("Kind", bound=Section)


def section(kind: type[Kind], values: Any, name: str, *, is_filled: bool = False) -> Kind:
    """A section with values that fit its keys; ``is_filled``: with those of the environment already."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} has keys and values, it is {values!r}")
    _check_keys(kind, values, name)
    try:
        return msgspec.convert(dict(values) if is_filled else filled(dict(values), name), kind)
    except msgspec.ValidationError as reason:
        raise _misfit(str(reason), name) from None


def keys(kind: type[Section]) -> list[str]:
    """The keys of a section, those that it must have first."""
    fields = sorted(msgspec.structs.fields(kind), key=lambda one: not one.required)
    return [one.encode_name for one in fields]


def _check_keys(
    kind: type[Section],
    values: Mapping[str, Any],
    name: str,
    around: Mapping[str, type[Section]] | None = None,
) -> None:
    """Raise where a section, or one inside it, has a key that it may not have."""
    inside = {
        one.encode_name: [
            part for part in get_args(one.type) if isinstance(part, type) and issubclass(part, Section)
        ]
        for one in msgspec.structs.fields(kind)
    }
    near = dict(around or {})
    near |= {_within(name, key): part for key, parts in inside.items() for part in parts}
    for key, value in values.items():
        if key not in inside:
            error = unknown(f"{name} has no key {key!r}", key, keys(kind), "Its keys are")
            for other, one in near.items():
                if key in keys(one):
                    error.add_note(f"{key!r} is a key of {other}: write it there.")
            raise error
        for part in inside[key] if isinstance(value, Mapping) else ():
            _check_keys(part, value, _within(name, key), {name: kind})


def _within(name: str, key: str) -> str:
    """What a section inside another is called."""
    return f"{name[:-1]}.{key}]" if name.endswith("]") else f"{name} {key}"


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def _misfit(words: str, name: str) -> ValueError:
    """What msgspec says about a value, as this file would."""
    missing = re.search(r"missing required field `(\w+)`(?: - at `\$\.(\w+)`)?", words)
    if missing:
        where = _within(name, missing.group(2)) if missing.group(2) else name
        error = ValueError(f"{where} has no {missing.group(1)}")
        error.add_note(f"It must have: {missing.group(1)} = …")
        return error
    found = re.fullmatch(r"Expected `(.*)`, got `(.*)` - at `\$\.?(.*)`", words)
    if found is None:
        return ValueError(f"{name}: {words}")
    wanted = [_TYPES.get(kind, kind) for kind in found.group(1).split(" | ") if kind != "null"]
    return ValueError(
        f"{name} {found.group(3)} is {' or '.join(wanted)}, not {_TYPES.get(found.group(2), found.group(2))}"
    )


def unknown(words: str, name: object, known: Any, are: str) -> ValueError:
    """The error for a name that is none of those known, with the one that is nearest."""
    error = ValueError(f"{words}{did_you_mean(name, known)}")
    error.add_note(f"{are} {', '.join(known)}.")
    return error


def one_of(what: str, value: Any, known: Mapping[str, Any]) -> Any:
    """What a word stands for; what is no word is left as it is."""
    if not isinstance(value, str):
        return value
    if value not in known:
        raise unknown(f"{what} is one of {len(known)} words, {value!r} is none", value, known, "They are")
    return known[value]
