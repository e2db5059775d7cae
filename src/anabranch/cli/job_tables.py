"""The tables of a job file, and the words in them as the values they stand for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

from anabranch.cli.inputs import policy_argument
from anabranch.kernels.merge.merger import Generalise
from anabranch.model.output_policy import POLICIES, OutputPolicy, Pace
from anabranch.model.validity import Drop, Quarantine, Raise

Names = str | list[str]


class Table(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A table of a job file: its fields are the keys it may have."""


class MergeTable(Table):
    """``[merge]``: the keyword arguments of `anabranch.spark.merge`."""

    start: str
    end: str | None = None
    old_end: str | None = None
    duration: Any = None
    kind: str | None = None
    replica: str | None = None
    channel: str | None = None
    sequence: str | None = None
    payload: Names | None = None
    identity: Names | None = None
    disorder: Any = None
    case: Any = None
    policy: Any = None
    properties: Any = None
    lossy: bool | Names = False
    pace: Any = None
    replicas: Names = []
    on_invalid: Any = None
    on_broken: Any = None
    on_late: Any = None
    remember: int | None = None
    rows_per_parcel: int | None = None

    def arguments(self) -> dict[str, Any]:
        """What `anabranch.spark.merge` is called with: names as the values they stand for."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        given["policy"] = _policy(self.policy)
        given["pace"] = one_of("pace", self.pace, {pace.value: pace for pace in Pace})
        for name in ("on_invalid", "on_broken", "on_late"):
            given[name] = _answer(name, given[name])
        return {name: value for name, value in given.items() if value is not None}


class PolicyTable(Table):
    """A policy with its settings, where its name alone does not say them."""

    name: str
    lag: int = 0
    fraction: float | None = None


class SparkTable(Table):
    """``[spark]``: the session."""

    master: str = "local[*]"
    shards: int | None = None
    config: dict[str, str | int | float | bool] = {}
    log: str | None = None

    def settings(self) -> dict[str, str]:
        """The settings as Spark takes them."""
        return {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self.config.items()
        }


Kind = TypeVar("Kind", bound=Table)


def table(kind: type[Kind], values: Any, name: str) -> Kind:
    """A table with values that fit its keys."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} has keys and values, it is {values!r}")
    for key in values:
        if key not in kind.__struct_fields__:
            raise unknown(f"{name} has no key {key!r}", key, kind.__struct_fields__, "Its keys are")
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as reason:
        raise _misfit(str(reason), name) from None


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
    missing = re.search(r"missing required field `(\w+)`", words)
    if missing:
        error = ValueError(f"{name} has no {missing.group(1)}")
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
    error = ValueError(words)
    near = get_close_matches(str(name), list(known), 1)
    if near:
        error.add_note(f"Is it {near[0]!r} that is meant?")
    error.add_note(f"{are} {', '.join(known)}.")
    return error


def _policy(value: Any) -> OutputPolicy | None:
    """A policy by its name, as on the command line, or as a table with its settings."""
    if value is None or isinstance(value, OutputPolicy):
        return value
    if isinstance(value, Mapping):
        asked = table(PolicyTable, value, "policy")
        one_of("policy", asked.name, POLICIES)
        settings: dict[str, Any] = {"lag": asked.lag}
        if asked.fraction is not None:
            settings["fraction"] = asked.fraction
        try:
            return POLICIES[asked.name](**settings)
        except TypeError:
            raise ValueError(f"policy {asked.name!r} has no fraction, quorum has one") from None
    try:
        return policy_argument(str(value))
    except argparse.ArgumentTypeError as reason:
        error = ValueError(str(reason))
        error.add_note('With settings, write policy = { name = "final", lag = 60 }.')
        raise error from None


def _answer(name: str, value: Any) -> Any:
    known: dict[str, Any] = {"raise": Raise(), "drop": Drop(), "quarantine": Quarantine()}
    if name == "on_broken":
        known["generalise"] = Generalise()
    return one_of(name, value, known)


def one_of(what: str, value: Any, known: Mapping[str, Any]) -> Any:
    """What a word stands for; what is no word is left as it is."""
    if not isinstance(value, str):
        return value
    if value not in known:
        raise unknown(f"{what} is one of {len(known)} words, {value!r} is none", value, known, "They are")
    return known[value]
