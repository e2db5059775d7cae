"""Values of the environment in the texts of a job: ``${NAME}`` stands for one, ``$${NAME}`` for itself."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

_NAMED = re.compile(r"\$(\$?)\{(\w+)\}")


def filled(value: Any, where: str) -> Any:
    """A value of a job with what the environment has for names in its texts; ``where`` is for people."""
    if isinstance(value, str):
        return _NAMED.sub(lambda found: _value(found, where), value)
    if isinstance(value, Mapping):
        return {key: filled(inner, f"{where} {key}") for key, inner in value.items()}
    return [filled(inner, where) for inner in value] if isinstance(value, list) else value


def _value(found: re.Match[str], where: str) -> str:
    is_itself, name = found.groups()
    if is_itself:
        return f"${{{name}}}"
    if name not in os.environ:
        error = ValueError(f"{where} needs the environment variable {name}, and it is not set")
        error.add_note(f"Type: export {name}=…    Then repeat the command. For the text itself: $${{{name}}}")
        raise error
    return os.environ[name]
