"""One call of PyTorch's exporter, with the settings that all graphs share."""

import contextlib
import io
import logging
import warnings
from typing import Any

import onnx
import torch
from torch import Tensor, nn

OPSET = 18


class _Named(nn.Module):
    """Takes its inputs as one list, so that modules may have ``**keywords``, which the exporter cannot trace."""

    def __init__(self, module: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, inputs: list[Tensor]) -> Any:
        return self.module(**dict(zip(self.names, inputs, strict=True)))


def to_onnx(
    module: nn.Module, inputs: dict[str, Tensor], outputs: list[str], dynamic: dict[str, dict[int, Any]]
) -> onnx.ModelProto:
    """Export ``module``.

    Args:
        inputs: example tensors by name. Sizes of dynamic axes should not be 0 or 1, nor equal to a fixed one.
        outputs: names of the (flat) outputs.
        dynamic: for each input, its dynamic axes as :class:`torch.export.Dim`.

    Returns:
        The graph with its weights inside.
    """
    names = list(inputs)
    for logger in ("onnx_ir", "onnxscript", "torch.onnx"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            _Named(module.eval(), names), args=(list(inputs.values()),), input_names=names, output_names=outputs,
            dynamic_shapes=([dynamic.get(name, {}) for name in names],), opset_version=OPSET, dynamo=True,
            optimize=True, verbose=False,
        )  # fmt: skip
    assert program is not None
    model = program.model_proto
    onnx.checker.check_model(model)
    return model
