"""Reads the imports of a folder's files without running them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def imports_of(folder: str) -> Iterator[tuple[str, str]]:
    """File and dotted module of every import under the folder, wherever in the file it stands."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text(), name)):
            if isinstance(node, ast.Import):
                yield from ((name, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                package = ".".join(path.relative_to(ROOT).parts[: -node.level]) if node.level else ""
                yield name, ".".join(filter(None, [package, node.module]))
                # `from package import module` imports the module as well.
                yield from ((name, ".".join(filter(None, [package, node.module, a.name]))) for a in node.names)
