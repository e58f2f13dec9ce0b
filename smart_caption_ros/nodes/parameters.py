"""Declare, validate and update the parameters of a node.

Each node has one table of :class:`ParameterSpec`, in its module `parameters.py`. The descriptors of
`ros2 param describe`, the checks of new values and the parameter files in `config/` follow these tables; tests compare
them.
"""

import difflib
import enum
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from smart_caption_ros.nodes.rclpy_private import parameter_overrides
from smart_caption_ros.nodes.ros_versions import add_parameter_callbacks
from smart_caption_ros.text import MAX_SENTENCE, shortened, visible

MAX_STRING = 1024
"""Maximum length of a string parameter, because it is repeated in messages, diagnostics and logs."""

Rule = Callable[[Mapping[str, Any]], str | None]
"""Checks all values of a node together; returns one sentence that says what is wrong, or None."""


class Changes(enum.Enum):
    """When the value of a parameter may change."""

    ONLY_AT_START = "only at start"
    WHILE_UNCONFIGURED = "while unconfigured"
    ANY_TIME = "at any time"


_DECLARED_LATER = ("qos_overrides.", "diagnostic_updater.")  # by publishers and subscriptions, and by the updater

_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a floating point number (with a decimal point)",
    str: "a string",
    tuple: "a list of strings",
}


@dataclass(frozen=True)
class ParameterSpec:
    """Declaration of one parameter.

    Attributes:
        name: its name; ends in the unit if it has one.
        default: its default value, whose type is the type of the parameter; an empty tuple for a list of strings.
        description: its meaning, for `ros2 param describe` and the documentation.
        changes: when its value may change.
        limits: smallest and largest allowed number; every number has them.
        choices: allowed strings; None allows any of at most :data:`MAX_STRING` characters.
        pattern: regular expression that each string of a list has to match, and its meaning for the error: "a name".
    """

    name: str
    default: bool | int | float | str | tuple[str, ...]
    description: str
    changes: Changes
    limits: tuple[float, float] | None = None
    choices: tuple[str, ...] | None = None
    pattern: tuple[str, str] | None = None

    def descriptor(self) -> ParameterDescriptor:
        """Build the descriptor that `ros2 param describe` shows, with the range that rclpy enforces."""
        descriptor = ParameterDescriptor(description=self.description, read_only=self.changes is Changes.ONLY_AT_START)
        choices = f"One of: {', '.join(self.choices)}. " if self.choices is not None else ""
        descriptor.additional_constraints = f"{choices}Changes {self.changes.value}."
        if self.limits is not None:
            minimum, maximum = self.limits
            if isinstance(self.default, int):
                descriptor.integer_range = [IntegerRange(from_value=int(minimum), to_value=int(maximum))]
            else:
                descriptor.floating_point_range = [FloatingPointRange(from_value=minimum, to_value=maximum)]
        return descriptor

    def error_in(self, value: Any) -> str | None:
        """Return one sentence that says what is wrong with a value, or None for a valid value."""
        if isinstance(self.default, tuple):
            return self._error_in_list(self.value_of(value))
        if type(value) is not type(self.default):
            return f"{self.name} must be {_TYPE_NAMES[type(self.default)]}, not {shortened(repr(value))}"
        if self.choices is not None and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, not {shortened(repr(value))}"
        if isinstance(value, str) and not value.isprintable():
            return f"{self.name} must have printable characters alone, not {shortened(repr(value))}"
        if isinstance(value, str) and len(value) > MAX_STRING:
            return f"{self.name} must have at most {MAX_STRING} characters, not {len(value)}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{self.name} must be a finite number, not {value}"
        if self.limits is not None and isinstance(value, int | float) and not self.limits[0] <= value <= self.limits[1]:
            return f"{self.name} must lie between {self.limits[0]:g} and {self.limits[1]:g}, not {value}"
        return None

    def value_of(self, value: Any) -> Any:
        """Convert a value of rclpy: a list to a tuple, and None, which stands for an empty list, to an empty tuple."""
        if not isinstance(self.default, tuple):
            return value
        return tuple(value) if isinstance(value, list) else () if value is None else value

    def _error_in_list(self, value: Any) -> str | None:
        if not (isinstance(value, tuple) and all(isinstance(item, str) for item in value)):
            return f"{self.name} must be {_TYPE_NAMES[tuple]}, not {shortened(repr(value))}"
        for place, item in enumerate(value):
            if self.pattern is not None and not re.fullmatch(self.pattern[0], item):
                return f"{self.name} must have {self.pattern[1]} in each place, not {shortened(repr(item))}"
            if not item.isprintable():
                return f"{self.name} must have printable characters alone, not {shortened(repr(item))}"
            if item in value[:place]:
                return f"{self.name} has {item!r} twice"
        return None


class Parameters:
    """The declared parameters of one node.

    The mapping in `values` is replaced at every change and never modified: any thread may read it without a lock.
    """

    def __init__(
        self,
        node: Node,
        table: Sequence[ParameterSpec],
        *,
        rule: Rule = lambda values: None,
        is_configured: Callable[[], bool] = lambda: False,
        on_change: Callable[[set[str]], None] = lambda names: None,
    ) -> None:
        """Declare all parameters of a table; overrides from files and the command line apply.

        Args:
            rule: checks the values together, at the start and at every change.
            is_configured: returns whether the node is configured, so that WHILE_UNCONFIGURED parameters are fixed.
            on_change: called with the names of the changed parameters, after `values` has the new values.

        Raises:
            ValueError: overrides are invalid or contradict each other; one sentence.
        """
        self._specs = {spec.name: spec for spec in table}
        self._rule = rule
        self._is_configured: Callable[[], bool] = lambda: False
        self._on_change = on_change
        overrides = parameter_overrides(node)
        for name in sorted(overrides.keys() - self._specs.keys()):
            if not node.has_parameter(name) and not name.startswith(_DECLARED_LATER):
                nearest = difflib.get_close_matches(name, self._specs, n=1)
                hint = f"; did you mean {nearest[0]}?" if nearest else ""
                node.get_logger().warning(f"there is no parameter {visible(name)}: its value is not used{hint}")
        self.values: Mapping[str, Any] = MappingProxyType({spec.name: spec.default for spec in table})
        """Read-only snapshot of all values by name."""
        if errors := self._errors([overrides[spec.name] for spec in table if spec.name in overrides]):
            raise ValueError("parameter " + "; ".join(errors))
        self.values = MappingProxyType({spec.name: spec.value_of(_declare(node, spec)) for spec in table})
        self._is_configured = is_configured
        add_parameter_callbacks(node, self._check, self._apply)

    def _check(self, parameters: list[Parameter]) -> SetParametersResult:
        """Check the parameters of one request together, and reject all of them, with a reason, if one is wrong.

        rclpy calls this once for `set_parameters_atomically`, and once per parameter for `set_parameters`, whose
        parameters are thus checked one after the other, each together with the values that the node has by then.
        Parameters outside the table (use_sim_time, QoS) are not checked.
        """
        if errors := self._errors([parameter for parameter in parameters if parameter.name in self._specs]):
            return SetParametersResult(successful=False, reason=shortened("; ".join(errors), MAX_SENTENCE))
        return SetParametersResult(successful=True)

    def _errors(self, parameters: Sequence[Parameter]) -> list[str]:
        """Return what is wrong with new values of parameters in the table, each by itself or all together."""
        errors = [error for parameter in parameters if (error := self._error_in(parameter.name, parameter.value))]
        if not errors:
            given = {parameter.name: self._specs[parameter.name].value_of(parameter.value) for parameter in parameters}
            errors += filter(None, [self._rule({**self.values, **given})])
        return errors

    def _error_in(self, name: str, value: object) -> str | None:
        """Return why a value is invalid or may not be set now; the present value may be set again at any time."""
        spec = self._specs[name]
        error = spec.error_in(value)
        if error is not None or spec.value_of(value) == self.values[name]:
            return error
        if spec.changes is Changes.WHILE_UNCONFIGURED and self._is_configured():
            return f"{name} changes only while the node is unconfigured: deactivate it and clean it up"
        return None

    def _apply(self, parameters: list[Parameter]) -> None:
        changed = {p.name: self._specs[p.name].value_of(p.value) for p in parameters if p.name in self._specs}
        if changed:
            self.values = MappingProxyType({**self.values, **changed})
            self._on_change(set(changed))


def _declare(node: Node, spec: ParameterSpec) -> Any:
    """Declare a parameter and return its value; None for an empty list, which has no type in parameter files."""
    descriptor = spec.descriptor()
    if not isinstance(spec.default, tuple):
        return node.declare_parameter(spec.name, spec.default, descriptor).value
    # rclpy takes an empty list for a list of bytes unless it is set with its type, and sets no read-only parameter.
    changeable = spec.descriptor()
    changeable.read_only = False
    value = node.declare_parameter(spec.name, Parameter.Type.STRING_ARRAY, changeable).value
    if value is None:
        node.set_parameters([Parameter(spec.name, Parameter.Type.STRING_ARRAY, [])])
    descriptor.type = Parameter.Type.STRING_ARRAY.value
    node.set_descriptor(spec.name, descriptor)
    return value
