"""The picture in docs/architecture.md, drawn from the imports: `python -m tests.packaging.architecture` writes it."""

import re
from functools import cache
from pathlib import Path

from tests.packaging.imports import ROOT, imports_of, imports_of_file

PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("recipes", "export", "training", "smart_caption_ros")
ROOMS_DRAWN = ("training", "smart_caption_ros")
"""Packages whose rooms are drawn; the others are one box each."""
PICTURE = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)


@cache
def box_of(package, name):
    """Return the box of a module or folder; outside the rooms: "commands", "base" if it imports no room, or its own."""
    if package not in ROOMS_DRAWN:
        return package, package
    path = ROOT / package / name
    if path.is_dir():
        return package, name
    module = path.with_suffix(".py")
    if not module.is_file():
        return None
    if '__name__ == "__main__"' in module.read_text(encoding="utf-8"):
        return package, "commands"
    imported = {name.split(".")[1] for name in imports_of_file(module) if name.startswith(f"{package}.")}
    return package, name if any((ROOT / package / room).is_dir() for room in imported) else "base"


def arrows():
    """Return the boxes that each box imports."""
    found = {}
    for package in PACKAGES:
        for file, imported in imports_of(package):
            (_, name, *_), (other, _, inside) = Path(file).with_suffix("").parts, imported.partition(".")
            if other in PACKAGES and inside:
                source, target = box_of(package, name), box_of(other, inside.partition(".")[0])
                if source and target and source != target:
                    found.setdefault(source, set()).add(target)
                    found.setdefault(target, set())
    return found


def picture():
    """Return the picture as Mermaid's text, without arrows that follow from others: A -> C where A -> B -> C."""
    imports = arrows()

    def reached(box):
        seen = set()
        left = [box]
        while left:
            new = imports[left.pop()] - seen
            seen |= new
            left += new
        return seen

    ids = {box: f"b{number}" for number, box in enumerate(sorted(imports))}
    lines = ["flowchart TD"]
    for package in PACKAGES:
        boxes = [f'{ids[box]}["{box[1]}"]' for box in sorted(imports) if box[0] == package]
        if package in ROOMS_DRAWN:
            boxes = [f"subgraph {package}", *(f"  {box}" for box in boxes), "end"]
        lines += boxes
    for box, targets in sorted(imports.items()):
        implied = set().union(*(reached(target) for target in targets))
        lines += [f"{ids[box]} --> {ids[target]}" for target in sorted(targets - implied)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(PICTURE.sub(picture(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
