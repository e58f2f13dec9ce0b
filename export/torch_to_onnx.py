"""The call of PyTorch's exporter with the settings that all graphs share, and the shapes of its inputs."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import onnx
import onnx_ir as ir
import torch
from onnx_ir.passes.common import CheckerPass
from torch import Tensor, nn
from torch.export import Dim

from export.weights import to_proto

BATCH, TOKENS, SLOTS, STEPS = "batch", "tokens", "slots", "steps"
"""Names of the dynamic sizes: images, visual tokens of an image, words decoded before over all beams of an image, words
decoded of each beam."""
EXAMPLE_SIZES: Mapping[str, int] = {BATCH: 3, TOKENS: 11, SLOTS: 13, STEPS: 4}
"""Sizes for tracing. None is 0 or 1, which the exporter would treat as fixed."""


class Size(NamedTuple):
    """A dynamic size: ``factor * symbol + offset``."""

    symbol: str
    factor: int = 1
    offset: int = 0

    def at(self, sizes: Mapping[str, int]) -> int:
        """Return the value, given those of the symbols."""
        return self.factor * sizes[self.symbol] + self.offset


Shape: TypeAlias = tuple[int | Size, ...]


def shape_at(shape: Shape, sizes: Mapping[str, int]) -> list[int]:
    """Return the shape, given the values of the symbols."""
    return [axis.at(sizes) if isinstance(axis, Size) else axis for axis in shape]


class TensorSpec(NamedTuple):
    """Type and shape of a tensor."""

    dtype: torch.dtype
    shape: Shape

    def example(self, sizes: Mapping[str, int] = EXAMPLE_SIZES) -> Tensor:
        """Return a tensor with these sizes: of ones (True) if it is boolean, else of zeros."""
        make = torch.ones if self.dtype == torch.bool else torch.zeros
        return make(shape_at(self.shape, sizes), dtype=self.dtype)


OPSET = 20


class _Named(nn.Module):
    """Takes its inputs as one list, so that modules may have ``**keywords``, which the exporter cannot trace."""

    def __init__(self, module: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, inputs: list[Tensor]) -> Any:
        return self.module(**dict(zip(self.names, inputs, strict=True)))


def to_onnx(module: nn.Module, inputs: Mapping[str, TensorSpec], outputs: list[str]) -> onnx.ModelProto:
    """Export a module.

    Args:
        inputs: the module's keyword arguments. No example size of a dynamic axis should equal a fixed size.
        outputs: names of the (flat) outputs.

    Returns:
        The graph without metadata.
    """
    from torch._dynamo import config  # slow to import

    names = list(inputs)
    dims = {axis.symbol: Dim(axis.symbol) for spec in inputs.values() for axis in spec.shape if isinstance(axis, Size)}
    dynamic = [
        {
            index: axis.factor * dims[axis.symbol] + axis.offset
            if axis.factor != 1 or axis.offset
            else dims[axis.symbol]
            for index, axis in enumerate(spec.shape)
            if isinstance(axis, Size)
        }
        for spec in inputs.values()
    ]
    for logger in ("onnx_ir", "onnxscript", "torch.onnx"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    logging.getLogger("torch.__trace").disabled = True  # a record for every symbol: a fifth of the time, if captured
    # The cache of fake tensors compares symbolic sizes, which takes longer than computing anew: a quarter of an export.
    uncached = config.patch(fake_tensor_cache_enabled=False)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad(), uncached:
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            _Named(module.eval(), names), args=([spec.example() for spec in inputs.values()],), input_names=names,
            output_names=outputs, dynamic_shapes=(dynamic,), opset_version=OPSET, dynamo=True, optimize=True,
            verbose=False,
        )  # fmt: skip
    assert program is not None
    _take_shapes_of_floats(program.model.graph)
    CheckerPass()(program.model)
    model = to_proto(program.model)
    clear_metadata(model)  # the exporter writes stack traces
    return model


def _take_shapes_of_floats(graph: ir.Graph) -> None:
    """Take the shapes of images from their values as floats: TensorRT has no Shape of a uint8 tensor."""
    images = [value for value in graph.inputs if value.dtype == ir.DataType.UINT8]
    for value in images:
        casts = [node for node, _ in value.uses() if node.op_type == "Cast"]
        for node, index in value.uses():
            if node.op_type == "Shape" and casts:
                node.replace_input_with(index, casts[0].outputs[0])
    if images:
        graph.sort()


def clear_metadata(model: onnx.ModelProto) -> bool:
    """Clear doc strings and metadata, in place, in the model and all that is in it; return whether there were any."""
    found = False
    for message in (model, *model.functions, *_messages(model.graph)):
        for field in ("doc_string", "metadata_props"):
            if field in message.DESCRIPTOR.fields_by_name:
                found |= bool(getattr(message, field))
                message.ClearField(field)
    return found


def _messages(graph: onnx.GraphProto) -> Iterator[Any]:
    """Yield the graph, its values, tensors, nodes and attributes, and those of the graphs in its nodes."""
    yield from (graph, *graph.input, *graph.output, *graph.value_info, *graph.initializer, *graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _messages(attribute.g)
