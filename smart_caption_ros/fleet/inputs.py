"""Find the inputs of `describe --shards`: bags and other sources, named by paths, folders, patterns and list files."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.acvr import LABELS
from smart_caption_ros.sources.bag_storage import is_bag, storage_files
from smart_caption_ros.sources.image_folder import is_image_file


@dataclass(frozen=True)
class Input:
    """A bag or another source; its output has the same name and a suffix."""

    name: str
    path: Path
    is_bag: bool


def find_inputs(specs: Sequence[str], list_file: Path | None = None, leave_out: Path | None = None) -> list[Input]:
    """Find all inputs, in order.

    Bags, sequences and folders of images keep their place below the folder in which they were found: `day_1/run_3`.

    Args:
        specs: bags and other sources, folders that are searched for bags, sequences and images, and patterns with
            `*`, `?` and `**`.
        list_file: file with one such path or pattern per line; empty lines and lines that begin with `#` are skipped.
        leave_out: a folder that is not searched, the one of the outputs.

    Raises:
        SourceError: a path does not exist, no input was found, or two inputs have the same name.
    """
    found: dict[str, Input] = {}
    left_out = leave_out.resolve() if leave_out else None
    for spec in [*specs, *_lines(list_file)]:
        shards = list(_inputs(spec, left_out))
        if not shards and Path(spec).resolve() != left_out:
            raise SourceError(f"no bag, sequence or image was found in {spec}")
        for shard in shards:
            other = found.setdefault(shard.name, shard)
            if other.path.resolve() != shard.path.resolve():
                raise SourceError(
                    f"{other.path} and {shard.path} would have the same output, {shard.name}: name a folder that holds "
                    "both of them"
                )
    if not found:
        raise SourceError(
            f"no bag, sequence or image was found in {', '.join([*specs, *map(str, [list_file] * bool(list_file))])}"
        )
    return list(found.values())


def _lines(list_file: Path | None) -> list[str]:
    if list_file is None:
        return []
    try:
        lines = list_file.read_text(encoding="utf-8-sig", errors="surrogateescape").splitlines()
    except OSError as error:
        raise SourceError(f"the list {list_file} cannot be read: {error.strerror}") from None
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


def _inputs(spec: str, leave_out: Path | None) -> Iterator[Input]:
    path = Path(spec)
    if path.exists():
        yield from _below(path, "", leave_out)
    elif glob.has_magic(spec):
        first = next(place for place, part in enumerate(path.parts) if glob.has_magic(part))
        fixed = Path(*path.parts[:first])
        for match in sorted(fixed.glob(str(Path(*path.parts[first:])))):
            if any(part.startswith(".") for part in match.relative_to(fixed).parts):  # .ipynb_checkpoints
                continue
            place = match.parent.relative_to(fixed).as_posix()
            yield from _below(match, "" if place == "." else place, leave_out, named=True)
    else:
        raise SourceError(f"there is no file or folder {spec}")


def _below(path: Path, place: str, leave_out: Path | None, *, named: bool = False) -> Iterator[Input]:
    """Yield the path itself if it is an input, else its images as one input and the inputs below it.

    Args:
        place: beginning of the names, without the name of this path.
        leave_out: resolved path of a folder that is not searched.
        named: whether the name of this folder is part of the names of the inputs below it.
    """
    if leave_out is not None and path.resolve() == leave_out:
        return
    name = path.resolve().name if path.is_dir() else path.stem
    whole = f"{place}/{name}" if place else name
    if is_bag(path) and not (path.is_dir() and _holds_separate_bags(path)):
        yield Input(whole, path, is_bag=True)
    elif not path.is_dir() or (path / LABELS).is_file():
        yield Input(whole, path, is_bag=False)
    else:
        inner = whole if named else place
        entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
        if any(map(is_image_file, entries)):
            yield Input(whole, path, is_bag=False)
        for entry in entries:
            if entry.is_dir():
                yield from _below(entry, inner, leave_out, named=True)
            elif is_bag(entry):
                yield Input(f"{inner}/{entry.stem}" if inner else entry.stem, entry, is_bag=True)


def _holds_separate_bags(folder: Path) -> bool:
    """Whether each storage file of a folder is a bag of its own, as in a folder without metadata."""
    return not (folder / "metadata.yaml").is_file() and len(storage_files(folder)) > 1
