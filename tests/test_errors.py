"""Errors of ours can be caught together, and as the builtins that they are."""

import ast
import builtins
from pathlib import Path

import pytest

import anabranch as ab

PACKAGE = Path(ab.__file__).parent
NOT_ERRORS = {"AnabranchError", "Broken"}
"""The root; and what tells a merge that a property is broken, which decides whether that is an error."""
BUILTINS = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}


def _classes() -> list[tuple[str, str, list[str]]]:
    """Of each class of the package that is a builtin error: its module, its name, its bases."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base) for base in node.bases]
                if not BUILTINS.isdisjoint(bases) or "AnabranchError" in bases:
                    found.append((path.relative_to(PACKAGE).as_posix(), node.name, bases))
    return found


def test_every_error_of_ours_can_be_caught_as_one():
    found = _classes()
    assert len(found) > 20
    apart = [
        (module, name)
        for module, name, bases in found
        if bases[0] != "AnabranchError" and name not in NOT_ERRORS
    ]
    assert not apart


def test_no_two_errors_have_the_same_name():
    """A worker names its error to the driver, which makes it again by that name."""
    names = [name for _, name, _ in _classes()]
    assert len(set(names)) == len(names)
    assert BUILTINS.isdisjoint(names)


@pytest.mark.parametrize("kind", [ab.AnabranchError, ValueError])
def test_an_error_of_ours_is_also_the_builtin_that_it_would_be(kind):
    with pytest.raises(kind, match="line 1"):
        ab.parse("nonsense")
