"""Types of configuration values, which say their ranges; pydantic checks both.

Experiment files are dataclasses of pydantic; :func:`check_ranges` checks the hyper-parameters of a family.
"""

from functools import cache
from typing import Annotated, Any, ClassVar, get_origin, get_type_hints

from pydantic import AfterValidator, AllowInfNan, Field, Strict, TypeAdapter, ValidationError


def _file_name(value: str) -> str:
    if not value or value in (".", "..") or "/" in value or "\0" in value:
        raise ValueError(f"it becomes the name of a folder or file; it must not be empty or a path, as {value!r}")
    return value


Int = Annotated[int, Strict()]
PositiveInt = Annotated[int, Strict(), Field(ge=1)]
NonNegativeInt = Annotated[int, Strict(), Field(ge=0)]
Float = Annotated[float, Strict(), AllowInfNan(False)]
PositiveFloat = Annotated[float, Strict(), AllowInfNan(False), Field(gt=0)]
NonNegativeFloat = Annotated[float, Strict(), AllowInfNan(False), Field(ge=0)]
Share = Annotated[float, Strict(), AllowInfNan(False), Field(ge=0, lt=1)]
PositiveShare = Annotated[float, Strict(), AllowInfNan(False), Field(gt=0, le=1)]
Bool = Annotated[bool, Strict()]
Str = Annotated[str, Strict()]
FileName = Annotated[str, Strict(), AfterValidator(_file_name)]

_EXPECTED = {
    "bool_type": "bool",
    "dict_type": "keys and values",
    "dataclass_type": "keys and values",
    "float_type": "float",
    "int_type": "int",
    "list_type": "a list",
    "string_type": "str",
}
"""Names of expected types in error sentences, by the type of pydantic's error."""
_BOUNDS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "one of {expected}",
}
"""What a value must be, likewise."""


def complaint(problem: Any) -> str:
    """Say what is wrong with a value, for a sentence that begins with its key; ``problem``: an error of pydantic."""
    kind, found = problem["type"], problem["input"]
    if kind == "value_error":
        return f": {problem['ctx']['error']}"
    if kind in _BOUNDS:
        bound = _BOUNDS[kind].format(**problem["ctx"]).replace("'", "").replace(" or ", ", ")
        return f" must be {bound}, not {found!r}"
    expected = f"expected {_EXPECTED[kind]}" if kind in _EXPECTED else problem["msg"]
    return f": {expected}, found {found!r}"


def check_ranges(config: object) -> None:
    """Check the values of a dataclass by their types.

    Raises:
        ValueError: a value has another type or is out of range; the message names its key.
    """
    for name, kind in get_type_hints(type(config), include_extras=True).items():
        if get_origin(kind) is not ClassVar:
            check_value(name, kind, getattr(config, name))


def check_value(name: str, kind: Any, value: object) -> None:
    """Check a value, as :func:`check_ranges` does."""
    try:
        _adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        raise ValueError(name + complaint(error.errors()[0])) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
