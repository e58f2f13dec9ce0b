"""Checks of configuration values for ``__post_init__``; each raises a ValueError whose message names the key.

None is a number that is not given, and passes.
"""

from collections.abc import Iterable


def check_one_of(config: object, key: str, known: Iterable[str]) -> None:
    value = getattr(config, key)
    if value not in known:
        raise ValueError(f"{key} must be one of {', '.join(known)}, not {value!r}")


def check_file_name(config: object, key: str) -> None:
    value = getattr(config, key)
    if not value or value in (".", "..") or "/" in value or "\0" in value:
        raise ValueError(f"{key} becomes the name of a folder or file; it must not be empty or a path, as {value!r}")


def check_at_least_1(config: object, *keys: str) -> None:
    for key in keys:
        if (value := getattr(config, key)) is not None and value < 1:
            raise ValueError(f"{key} must be at least 1, not {getattr(config, key)}")


def check_not_negative(config: object, *keys: str) -> None:
    for key in keys:
        if (value := getattr(config, key)) is not None and value < 0:
            raise ValueError(f"{key} must not be negative, not {getattr(config, key)}")


def check_positive(config: object, *keys: str) -> None:
    for key in keys:
        if getattr(config, key) <= 0:
            raise ValueError(f"{key} must be positive, not {getattr(config, key)}")


def check_shares(config: object, *keys: str) -> None:
    for key in keys:
        if not 0 <= getattr(config, key) < 1:
            raise ValueError(f"{key} must be at least 0 and less than 1, not {getattr(config, key)}")
