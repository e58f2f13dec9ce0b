"""One call of PyTorch's exporter, with the settings that all graphs share."""

import contextlib
import io
import logging
import warnings
from collections.abc import Mapping
from typing import Any

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from export.metadata import clear_metadata
from export.shapes import Size, TensorSpec

OPSET = 18


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
        The graph with its weights inside, without metadata.
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
    model = program.model_proto
    clear_metadata(model)  # the exporter writes stack traces
    onnx.checker.check_model(model)
    return model
