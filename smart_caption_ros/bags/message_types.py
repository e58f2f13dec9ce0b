"""The package's messages as rosbags' classes, from their definitions, without ROS."""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from smart_caption_ros.files import PACKAGE, message_definitions

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

CAPTION = f"{PACKAGE}/msg/Caption"
STRING = "std_msgs/msg/String"


@cache
def typestore() -> "Typestore":
    """Return the types of ROS 2 and of this package; raises FileNotFoundError where the latter are not installed."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    types: dict[str, Any] = {}
    for name, path in message_definitions().items():
        types.update(get_types_from_msg(path.read_text(encoding="utf-8"), f"{PACKAGE}/msg/{name}"))
    store.register(types)
    return store


@cache
def message_types() -> Any:
    """Return the package's message classes as :func:`smart_caption_ros.caption_messages.to_message` takes them."""
    return SimpleNamespace(**{name: _MessageClass(f"{PACKAGE}/msg/{name}") for name in message_definitions()})


class _MessageClass:
    """Creates messages of one type, with rclpy's default values; the constants of the type are attributes."""

    def __init__(self, name: str) -> None:
        self._class: Callable[..., Any] = typestore().types[name]
        self._name = name

    def __call__(self, **given: Any) -> Any:
        fields = typestore().fielddefs[self._name][1]
        return self._class(**{name: given[name] if name in given else _default(kind) for name, kind in fields})

    def __getattr__(self, constant: str) -> Any:
        return getattr(self._class, constant)


def _default(description: tuple[Any, Any]) -> Any:
    from rosbags.interfaces import Nodetype

    kind, name = description
    if kind == Nodetype.NAME:
        return _MessageClass(name)()
    if kind == Nodetype.BASE:
        base = name[0]
        return {"string": "", "bool": False}.get(base, 0.0 if base.startswith("float") else 0)
    return []  # lists of messages and strings: the package's messages have no arrays of numbers
