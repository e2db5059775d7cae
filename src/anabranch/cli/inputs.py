"""The inputs of a merge as the command line names them: files, and what is asked for each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.model.output_policy import OutputPolicy, policy_named
from anabranch.model.properties import Fact, Properties
from anabranch.model.spelling import did_you_mean
from anabranch.model.time import checked_tick

ALL = "all"
"""The name that stands for every input."""
NONE = "none"
"""The name that stands for no input."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for one input."""

    properties: Properties | None
    guarantee: int | None
    complete: bool


def asked_for(name: str, options: argparse.Namespace) -> Request:
    """What the options ask for an input."""
    facts = [fact for whose, some in options.declare if whose in (None, name) for fact in some]
    times = [time for whose, time in options.guarantee if whose == name]
    return Request(
        Properties.of(*facts) if facts else None,
        times[-1] if times else None,
        name not in (options.lossy or ()) and ALL not in (options.lossy or ()),
    )


def check_names(options: argparse.Namespace, names: Sequence[str]) -> None:
    """What is asked for an input is asked for one that there is."""
    asked = {
        "--declare": [name for name, _ in options.declare if name is not None],
        "--lossy": [name for name in options.lossy or () if name != ALL],
        "--guarantee": [name for name, _ in options.guarantee],
    }
    for option, some in asked.items():
        for name in some:
            if name not in names:
                error = ValueError(
                    f"{option} is about an input, and none is called {name!r}{did_you_mean(name, names)}"
                )
                error.add_note(f"The inputs are {', '.join(map(repr, names)) or 'none'}.")
                raise error


def named_files(arguments: Sequence[str]) -> dict[str, str]:
    """The files by the names of their inputs: those that are given, else as little of the path as differs."""
    split = [_name_and_path(argument) for argument in arguments]
    forms: list[Callable[[str], str]] = [lambda path: Path(path).stem, lambda path: Path(path).name, str]
    for form in forms:
        names = [name or ("stdin" if path == "-" else form(path)) for name, path in split]
        if len(set(names)) == len(names):
            return dict(zip(names, (path for _, path in split), strict=True))
    given = [name for name, _ in split if name]
    for name in given:
        if given.count(name) > 1:
            raise ValueError(f"an input has a name of its own, two are called {name!r}")
    twice = next(path for _, path in split if sum(path == other for _, other in split) > 1)
    error = ValueError(f"inputs are told apart by their names, and {twice} is given twice")
    error.add_note(f"Name them: one={twice} two={twice}")
    raise error


def _name_and_path(argument: str) -> tuple[str | None, str]:
    """A file that is there is meant as it is, whatever its name."""
    name, equals, path = argument.partition("=")
    return (name, path) if equals and name and path and not Path(argument).exists() else (None, argument)


def policy_argument(text: str) -> OutputPolicy:
    """A policy, for a quorum with its share, for a leader with what makes it one."""
    try:
        return policy_named(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None


def declaration_argument(text: str) -> tuple[str | None, list[Fact]]:
    """Facts, and the input they are about if not all."""
    name, equals, facts = text.partition("=")
    known = {fact_word(fact): fact for fact in Fact}
    words = [word.replace(" ", "-").replace("_", "-") for word in names_argument(facts if equals else text)]
    unknown = [word for word in words if word not in known]
    if unknown or not words:
        meant = did_you_mean(unknown[0], known) if unknown else ""
        raise argparse.ArgumentTypeError(
            f"a fact is one of {', '.join(known)}, not {', '.join(unknown)!r}{meant}"
        )
    return name if equals else None, [known[word] for word in words]


def guarantee_argument(text: str) -> tuple[str, int]:
    """An input and the time from which it shows everything."""
    name, equals, time = text.rpartition("=")
    try:
        return name if equals and name else _no_name(text), checked_tick(int(time), "a guarantee")
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"a guarantee is NAME=TICK, not {text!r}") from None


def _no_name(text: str) -> str:
    raise ValueError(text)


def names_argument(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def lossy_argument(text: str) -> list[str]:
    """Inputs that may have holes; none of them, where that is written."""
    names = names_argument(text)
    if len(names) > 1 and (ALL in names or NONE in names):
        word = ALL if ALL in names else NONE
        raise argparse.ArgumentTypeError(
            f"{word!r} stands for {word} of the inputs, and {text!r} names others beside it"
        )
    if not names:
        raise argparse.ArgumentTypeError(f"inputs are {ALL!r}, {NONE!r} or names, not {text!r}")
    return [] if names == [NONE] else names


def fact_word(fact: Fact) -> str:
    """A fact as an argument."""
    return str(fact).replace(" ", "-")
