"""Reads the imports of files without running them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def imports_of(folder: str) -> Iterator[tuple[str, str]]:
    """File and dotted module of every import under the folder, wherever in the file it stands."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield from ((str(path.relative_to(ROOT)), module) for module in imports_of_file(path))


@cache
def imports_of_file(path: Path) -> tuple[str, ...]:
    """Dotted module of every import, wherever in the file it stands."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.relative_to(ROOT).parts[: -node.level]) if node.level else ""
            found.append(".".join(filter(None, [package, node.module])))
            # `from package import module` imports the module as well.
            found += (".".join(filter(None, [package, node.module, a.name])) for a in node.names)
    return tuple(found)
