"""Reads the imports of files without running them."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def imports_of(folder, *, run=False):
    """File and dotted module of every import under the folder, or of those alone that are run."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield from ((str(path.relative_to(ROOT)), module) for module in imports_of_file(path, run=run))


@cache
def imports_of_file(path, *, run=False):
    """Dotted module of every import, wherever in the file it stands, or of those alone that are run.

    An import under `if TYPE_CHECKING:` is not run. `from package import module` imports the module alone, because the
    package is there already where one of its own modules says so.
    """
    tree = ast.parse(path.read_text(), str(path))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if run and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.relative_to(ROOT).parts[: -node.level]) if node.level else ""
            imported = ".".join(filter(None, [package, node.module]))
            inside = [f"{imported}.{alias.name}" for alias in node.names]
            found += inside
            if not all((ROOT / f"{name.replace('.', '/')}.py").is_file() for name in inside):
                found.append(imported)
    return tuple(found)
