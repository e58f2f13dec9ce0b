"""Make ``tensorrt_operators.json`` from the list of operators that onnx-tensorrt publishes (docs/operators.md).

    git -C onnx-tensorrt show release/10.1-GA:docs/operators.md > operators.md
    python -m export.tensorrt_operators operators.md --version 10.1-GA \\
        --commit 96e781103cfc4adf4a6bb557e94bac8e693f6f4c --date 2024-06-17
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from smart_caption_ros.files import write_text_atomically
from training.command_line import run_command

OPERATORS_FILE = Path(__file__).with_name("tensorrt_operators.json")
_TYPES = ("FP32", "FP16", "BF16", "FP8", "INT64", "INT32", "INT8", "INT4", "UINT8", "BOOL", "DOUBLE")
_MISPRINTS = {"INF64": "INT64"}


def parse_operators(markdown: str) -> dict[str, Any]:
    """Read the opsets and the operators of the list.

    Returns:
        ``opsets``, the oldest and the newest, and ``operators`` by name: ``supported`` and, where there are any,
        ``types`` and ``restrictions`` (a sentence).

    Raises:
        ValueError: the text is not that list.
    """
    opsets = re.search(r"opset (\d+) to opset (\d+)", markdown)
    operators = dict(_rows(markdown))
    if opsets is None or not operators:
        raise ValueError("this is not the list of operators of onnx-tensorrt: no range of opsets or no table")
    return {"opsets": [int(opset) for opset in opsets.groups()], "operators": operators}


def _rows(markdown: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in markdown.splitlines():
        row = re.match(r"\|\s*(\w+)\s*\|\s*([YN])\s*\|(.*)$", line)
        if row is None:
            continue
        name, supported, rest = row.groups()
        types, _, restrictions = rest.partition("|")
        kinds = [_MISPRINTS.get(kind, kind) for kind in re.findall(r"\w+", types)]
        if unknown := set(kinds) - set(_TYPES):
            raise ValueError(f"{name} has the unknown type {min(unknown)}")
        facts: dict[str, Any] = {"supported": supported == "Y"}
        if kinds:
            facts["types"] = kinds
        if text := restrictions.strip(" |").replace("<br />", " "):
            facts["restrictions"] = text
        yield name, facts


def as_json(document: dict[str, Any]) -> str:
    """Write the document with one operator a line."""
    operators = document["operators"]
    head = json.dumps({key: value for key, value in document.items() if key != "operators"}, indent=2)[:-2]
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(facts)}" for name, facts in operators.items())
    return f'{head},\n  "operators": {{\n{lines}\n  }}\n}}\n'


def convert(
    markdown: Annotated[Path, typer.Argument(help="docs/operators.md of onnx-tensorrt.")],
    version: Annotated[str, typer.Option(help="Release, such as 10.1-GA.")],
    commit: Annotated[str, typer.Option(help="Commit of the release.")],
    date: Annotated[str, typer.Option(help="Its date.")],
    output: Annotated[Path, typer.Option("--output", help="File to write.")] = OPERATORS_FILE,
) -> None:
    """Make tensorrt_operators.json from the list of operators that onnx-tensorrt publishes."""
    document = {
        "source": f"https://github.com/onnx/onnx-tensorrt/blob/{commit}/docs/operators.md",
        "version": f"onnx-tensorrt {version}, commit {commit} of {date}",
        **parse_operators(markdown.read_text(encoding="utf-8")),
    }
    write_text_atomically(output, as_json(document))
    supported = sum(facts["supported"] for facts in document["operators"].values())
    print(f"{output}: {len(document['operators'])} operators, {supported} of them supported")


def main() -> int:
    return run_command(convert, "python -m export.tensorrt_operators", errors=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
