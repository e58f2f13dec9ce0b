"""Parse experiment files into dataclasses with pydantic; every error is a sentence with file, key and reason."""

import re
from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError

from training.configs.ranges import complaint
from training.errors import ConfigError

T = TypeVar("T")
_NOT_YAML = (yaml.YAMLError, ValueError, RecursionError)
"""What PyYAML raises; ValueError for what only looks like a date or number, such as 2024-99-99."""


class _Loader(yaml.SafeLoader):
    """Reads 5e-4 as a number, as YAML 1.2 does, and refuses a key that is there twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in keys:
                raise yaml.composer.ComposerError(None, None, f"the key {key.value!r} is there twice", key.start_mark)
            keys.add(str(key.value))
        return node


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), [*"-+0123456789"]
)


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        ConfigError: the file is missing or not YAML.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8-sig"), _Loader)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"{path}: {reason}") from None
    except _NOT_YAML as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None


def read_experiment_file(path: Path, derived: Sequence[Path] = ()) -> Any:
    """Read an experiment file. ``base: FILE`` in it, or in a run of a recipe, names a file beside it whose keys it has,
    too: mappings are merged, but that of ``model`` is replaced, and a mapping by number changes entries of a list.
    ``derived``: absolute paths of files that have this one as their base.

    Raises:
        ConfigError: a file is missing or not YAML, has itself as its base, or changes an entry that its base lacks.
    """
    if path.resolve() in derived:
        raise ConfigError(f"{path}: base: it is its own base")
    raw = read_yaml(path)
    if not isinstance(raw, dict):
        return raw
    if isinstance(raw.get("runs"), list):
        raw["runs"] = [_on_base(run, path, derived) for run in raw["runs"]]
    return _on_base(raw, path, derived)


def _on_base(raw: Any, path: Path, derived: Sequence[Path]) -> Any:
    if not isinstance(raw, dict) or "base" not in raw:
        return raw
    changes = {key: value for key, value in raw.items() if key != "base"}
    return _merged(read_experiment_file(path.parent / str(raw["base"]), [*derived, path.resolve()]), changes, str(path))


def _merged(base: Any, changes: Any, where: str, key: str = "") -> Any:
    if isinstance(base, list) and isinstance(changes, dict):
        if unknown := [place for place in changes if place not in range(len(base))]:
            raise ConfigError(f"{where}: {key}: its base has {len(base)} entries, numbered from 0; no {unknown[0]!r}")
        return [_merged(entry, changes.get(place, {}), where) for place, entry in enumerate(base)]
    if not isinstance(base, dict) or not isinstance(changes, dict) or key == "model":
        return changes
    return base | {name: _merged(base.get(name), value, where, name) for name, value in changes.items()}


def set_key(raw: Any, assignment: str) -> Any:
    """Copy the keys and values of an experiment with one value replaced or added.

    Args:
        raw: keys and values, as :func:`read_yaml` returns them.
        assignment: ``KEY=VALUE`` with the path of a key, e.g. ``phases.0.epochs``, and a value in YAML.

    Raises:
        ConfigError: there is no place for the key, or the value is not YAML.
    """
    path, equals, text = assignment.partition("=")
    if not equals:
        raise ConfigError(f"{assignment}: expected KEY=VALUE, e.g. phases.0.epochs=1")
    try:
        return _replaced(raw, path.split("."), yaml.load(text, _Loader), assignment)
    except _NOT_YAML as error:
        raise ConfigError(f"{assignment}: not YAML: {error}") from None


def _replaced(raw: Any, path: Sequence[str], value: Any, assignment: str) -> Any:
    # Copies, because aliases of a YAML file are one object in several places.
    if not path:
        return value
    key, *rest = path
    if isinstance(raw, dict):
        return {**raw, key: _replaced(raw.get(key, {}), rest, value, assignment)}
    if not isinstance(raw, list):
        raise ConfigError(f"{assignment}: {key} is below {raw!r}, which has no keys")
    if not key.isdecimal() or int(key) >= len(raw):
        raise ConfigError(f"{assignment}: {key} is in a list of {len(raw)}; expected a number from 0 to {len(raw) - 1}")
    index = int(key)
    return [*raw[:index], _replaced(raw[index], rest, value, assignment), *raw[index + 1 :]]


def build_config(kind: type[T], raw: Any, where: str, ignore_unknown_keys: bool = False) -> T:
    """Build a configuration from plain keys and values; a key that is not given has its default.

    Args:
        where: beginning of error sentences, e.g. the file's name.
        ignore_unknown_keys: True for keys and values that an earlier version may have written.

    Raises:
        ConfigError: an unknown or missing key, a value of another type or one that is not allowed.
    """
    try:
        return TypeAdapter(kind).validate_python(raw, extra="ignore" if ignore_unknown_keys else None)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        unknown = [problem for problem in problems if problem["type"] == "unexpected_keyword_argument"]
        raise ConfigError(_sentence((unknown or problems)[0], kind, where)) from None


def _sentence(problem: Any, kind: Any, where: str) -> str:
    place: tuple[int | str, ...] = problem["loc"]
    if problem["type"] == "unexpected_keyword_argument":
        known = [field.name for field in fields(_type_at(kind, place[:-1]))]
        return f"{_path(where, place[:-1])}: {unknown_key(str(place[-1]), known)}"
    if problem["type"] == "missing":
        return f"{_path(where, place[:-1])}: {place[-1]} is missing"
    return _path(where, place) + complaint(problem)


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Say that a key is unknown, which known key is spelt nearest, if one is near, and which there are."""
    nearest = get_close_matches(key, known, n=1)
    guess = f" (did you mean {nearest[0]}?)" if nearest else ""
    return f"unknown key {key!r}{guess}; known are {', '.join(known)}"


def _path(where: str, place: Sequence[int | str]) -> str:
    """Format a place, e.g. ``file.yaml: phases[0]: epochs``."""
    return where + "".join(f"[{part}]" if isinstance(part, int) else f": {part}" for part in place)


def _type_at(kind: Any, place: Sequence[int | str]) -> Any:
    """Return the dataclass at a place inside a configuration."""
    for part in place:
        kind = get_args(kind)[0] if isinstance(part, int) else get_type_hints(kind)[part]
    return kind
