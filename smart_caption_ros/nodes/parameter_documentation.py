"""Write the parameter tables of the documentation from the nodes' declarations: `make docs`.

The tables stand in a page between two comments that name the node. They have the first clause of each description;
`ros2 param describe` prints it whole.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from smart_caption_ros.files import write_text_atomically
from smart_caption_ros.nodes.camera.parameters import CAMERA_NODE_PARAMETERS
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS
from smart_caption_ros.nodes.caption_log.parameters import CAPTION_LOG_PARAMETERS
from smart_caption_ros.nodes.parameters import ParameterSpec

TABLES: dict[str, tuple[ParameterSpec, ...]] = {
    "caption_node": CAPTION_NODE_PARAMETERS,
    "camera_node": CAMERA_NODE_PARAMETERS,
    "caption_log_node": CAPTION_LOG_PARAMETERS,
}
"""The parameters of each node, by the name in the comments of the page."""

_HEADER = "| name | default | changes | meaning |\n|---|---|---|---|\n"
_CLAUSE = re.compile(r".*?(?=[:;]|, and |\.$)")


def table(specs: Sequence[ParameterSpec]) -> str:
    """Return the Markdown table of a node's parameters, with a line break at its end."""
    return _HEADER + "".join(f"| {' | '.join(_cells(spec))} |\n" for spec in specs)


def with_tables(page: str) -> str:
    """Return a Markdown page with the present tables.

    Raises:
        ValueError: the page has not exactly one place for each table; one sentence.
    """
    for name, specs in TABLES.items():
        begin, end = f"<!-- parameters of {name}, from make docs -->\n", f"<!-- end of parameters of {name} -->\n"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the lines {begin.strip()} and {end.strip()} must stand once in the page")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{table(specs)}\n{end}{rest.partition(end)[2]}"
    return page


def _cells(spec: ParameterSpec) -> list[str]:
    default = str(spec.default).lower() if isinstance(spec.default, bool) else str(spec.default)
    cells = [
        f"`{spec.name}`",
        default if spec.default not in ("", ()) else "(empty)",
        spec.changes.value,
        f"{_first_clause(spec.description)}.",
    ]
    return [cell.replace("|", r"\|") for cell in cells]


def _first_clause(description: str) -> str:
    found = _CLAUSE.match(description)
    return found[0] if found else description.rstrip(".")


def main() -> int:
    """Rewrite the tables of one page in place; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the parameter tables of a Markdown page.")
    parser.add_argument("page", type=Path)
    page: Path = parser.parse_args().page
    try:
        write_text_atomically(page, with_tables(page.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
