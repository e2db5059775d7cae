"""What Numba has cached of compiled functions is not older than what they use of other files.

Numba compiles a function anew when its own file changed, and does not look at the files of the functions and
constants that it uses. So a stamp beside the caches has a checksum of every file, and where a file changed,
the caches of those whose compiled functions use it, at any remove, are deleted.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

DECORATORS = {"compiled", "inner", "inlined"}
"""Of `model/compiled.py`."""


def forget_stale(source: Path) -> list[str]:
    """Delete stale caches below a folder of packages; the modules whose caches they were."""
    modules = {
        ".".join(path.relative_to(source).with_suffix("").parts): path for path in source.rglob("*.py")
    }
    stamp = source / "__pycache__" / "compiled-from.json"
    sums = {module: crc32(path.read_bytes()) for module, path in modules.items()}
    before = json.loads(stamp.read_text()) if stamp.exists() else {}
    if sums == before:
        return []
    stale = _using({module for module, checksum in sums.items() if before.get(module) != checksum}, modules)
    for module in stale:
        path = modules[module]
        for cache in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ic]"):
            cache.unlink(missing_ok=True)
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(json.dumps(sums))
    return sorted(stale)


def _using(changed: set[str], modules: dict[str, Path]) -> set[str]:
    """The modules with compiled functions that use one of those that changed."""
    used = {module: set(_used(path.read_text(encoding="utf-8"))) for module, path in modules.items()}
    stale: set[str] = set()
    while more := {module for module in used if used[module] & (changed | stale)} - stale:
        stale |= more
    return stale


def _used(text: str) -> Iterator[str]:
    """Modules that compiled functions of a file use by name."""
    if "compiled import" not in text:
        return
    tree = ast.parse(text)
    imported = {
        alias.asname or alias.name: (node.module, f"{node.module}.{alias.name}")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and DECORATORS & _names(*function.decorator_list):
            for name in _names(function) & imported.keys():
                yield from imported[name]


def _names(*nodes: ast.AST) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}
