"""YOLOX-nano (Ge et al., 2021): CSPDarknet, a path aggregation network and decoupled heads, all depthwise-separable.

Batch normalisation is folded into the convolutions, as in the released file of weights. Modules are defined in the
order of the convolutions of that file's graph.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.sources.acvr import ACVR_CLASSES
from training.errors import BackboneError
from training.vision.backbone import IMAGE_SIZE, RawDetections
from training.vision.weight_files import copy_convolutions, read_onnx

DETECTION_CLASSES = (*ACVR_CLASSES[1:], *(name for name in COCO_CLASSES if name not in ACVR_CLASSES))
"""The classes of a captioner's detector, those of COCO, in the order of its scores: the classes of the ACRV challenge
first; spelled as :func:`smart_caption_ros.detection.class_names.normalise` returns them."""
RELEASED = {"name": "COCO, through the YOLOX-nano weights that Megvii released", "terms": "weights Apache-2.0"}
"""Name and terms of the data of :func:`load_yolox_nano`, for the manifests of models."""
STRIDES = (8, 16, 32)
_WIDTH = 64  # channels of the head
_PRIOR = 0.01  # initial probability of an object, and of each class
_LARGEST_LOG = 4.0  # upper bound of the logarithm of a box side in strides; keeps exp finite


class Convolution(nn.Module):
    """Convolution with a folded batch normalisation, then SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        return functional.silu(self.convolution(x))


def _separable(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Build a depthwise convolution of 3 x 3 followed by a pointwise one."""
    return nn.Sequential(Convolution(inputs, inputs, 3, stride, groups=inputs), Convolution(inputs, outputs))


class _Bottleneck(nn.Module):
    def __init__(self, width: int, residual: bool) -> None:
        super().__init__()
        self.narrow, self.filter = Convolution(width, width), _separable(width, width)
        self.residual = residual

    def forward(self, x: Tensor) -> Tensor:
        y = self.filter(self.narrow(x))
        return x + y if self.residual else y


class _CrossStage(nn.Module):
    """A cross stage partial layer: half of the channels pass the bottlenecks, half bypass them."""

    def __init__(self, inputs: int, outputs: int, repeats: int, residual: bool) -> None:
        super().__init__()
        hidden = outputs // 2
        self.through, self.around = Convolution(inputs, hidden), Convolution(inputs, hidden)
        self.bottlenecks = nn.Sequential(*(_Bottleneck(hidden, residual) for _ in range(repeats)))
        self.merge = Convolution(2 * hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.merge(torch.cat([self.bottlenecks(self.through(x)), self.around(x)], dim=1))


class _PyramidPooling(nn.Module):
    """Spatial pyramid pooling with windows of 5, 9 and 13 cells."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow, self.merge = Convolution(width, width // 2), Convolution(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.narrow(x)
        pooled = [functional.max_pool2d(x, size, stride=1, padding=size // 2) for size in (5, 9, 13)]
        return self.merge(torch.cat([x, *pooled], dim=1))


class _Network(nn.Module):
    """CSPDarknet with a path aggregation network: 0.80 M parameters."""

    level_widths = (64, 128, 256)

    def __init__(self) -> None:
        super().__init__()
        self.stem = Convolution(12, 16, 3)
        self.stage_4 = nn.Sequential(_separable(16, 32, 2), _CrossStage(32, 32, 1, residual=True))
        self.stage_8 = nn.Sequential(_separable(32, 64, 2), _CrossStage(64, 64, 3, residual=True))
        self.stage_16 = nn.Sequential(_separable(64, 128, 2), _CrossStage(128, 128, 3, residual=True))
        self.stage_32 = nn.Sequential(
            _separable(128, 256, 2), _PyramidPooling(256), _CrossStage(256, 256, 1, residual=False)
        )
        self.narrow_32 = Convolution(256, 128)
        self.down_16 = _CrossStage(256, 128, 1, residual=False)
        self.narrow_16 = Convolution(128, 64)
        self.down_8 = _CrossStage(128, 64, 1, residual=False)
        self.shrink_8 = _separable(64, 64, 2)
        self.up_16 = _CrossStage(128, 128, 1, residual=False)
        self.shrink_16 = _separable(128, 128, 2)
        self.up_32 = _CrossStage(256, 256, 1, residual=False)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the feature maps of strides 8, 16 and 32.
        ``image``: (B, 3, H, W) float, BGR from 0 to 255, H and W multiples of 32.

        Returns:
            (B, 64, H/8, W/8), (B, 128, H/16, W/16), (B, 256, H/32, W/32).
        """
        # Focus: 2 x 2 pixels become one of four times the channels; the left columns come first.
        patches = [image[..., row::2, column::2] for column in (0, 1) for row in (0, 1)]
        stride_8 = self.stage_8(self.stage_4(self.stem(torch.cat(patches, dim=1))))
        stride_16 = self.stage_16(stride_8)
        narrow_32 = self.narrow_32(self.stage_32(stride_16))
        narrow_16 = self.narrow_16(self.down_16(torch.cat([_upsample(narrow_32), stride_16], dim=1)))
        level_8 = self.down_8(torch.cat([_upsample(narrow_16), stride_8], dim=1))
        level_16 = self.up_16(torch.cat([self.shrink_8(level_8), narrow_16], dim=1))
        level_32 = self.up_32(torch.cat([self.shrink_16(level_16), narrow_32], dim=1))
        return level_8, level_16, level_32


class _Branch(nn.Module):
    """The decoupled head of one feature map (Sec. 2.1)."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.stem = Convolution(inputs, _WIDTH)
        self.class_tower = nn.Sequential(_separable(_WIDTH, _WIDTH), _separable(_WIDTH, _WIDTH))
        self.class_logits = nn.Conv2d(_WIDTH, classes, 1)
        self.box_tower = nn.Sequential(_separable(_WIDTH, _WIDTH), _separable(_WIDTH, _WIDTH))
        self.box_shapes = nn.Conv2d(_WIDTH, 4, 1)
        self.object_logits = nn.Conv2d(_WIDTH, 1, 1)
        for last in (self.class_logits, self.object_logits):
            assert last.bias is not None
            nn.init.normal_(last.weight, std=0.01)
            nn.init.constant_(last.bias, -math.log((1 - _PRIOR) / _PRIOR))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        of_box = self.box_tower(x)
        parts = [self.box_shapes(of_box), self.object_logits(of_box), self.class_logits(self.class_tower(x))]
        return torch.cat(parts, dim=1)


class _Head(nn.Module):
    """The heads of all three feature maps: 0.10 M parameters with the classes of COCO."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(_Branch(inputs, classes) for inputs in _Network.level_widths)

    def forward(self, levels: Sequence[Tensor]) -> list[Tensor]:
        return [branch(level) for branch, level in zip(self.branches, levels, strict=True)]


class YoloxOutput(NamedTuple):
    """Output of one pass over a batch of frames of H x W."""

    levels: tuple[Tensor, Tensor, Tensor]
    """Feature maps of strides 8, 16 and 32: (B, 64, H/8, W/8), (B, 128, H/16, W/16), (B, 256, H/32, W/32)."""
    raw: list[Tensor]
    """For each level (B, 5 + classes, H/stride, W/stride): offset of the box centre from the cell's top left corner in
    strides, logarithms of the box sides in strides, logits of an object and of each class."""

    @property
    def class_scores(self) -> list[Tensor]:
        """For each level (B, classes, H/stride, W/stride) float32: probability of an object times that of the class."""
        return [level[:, 4:5].float().sigmoid() * level[:, 5:].float().sigmoid() for level in self.raw]


class YoloxNano(nn.Module):
    """The detector for frames of one size. Depth 0.33, width 0.25: 113 convolutions, 0.90 M parameters."""

    level_widths = _Network.level_widths
    cells: Tensor
    """(A, 2) float32, centres of the cells of all maps in pixels, from the finest map to the coarsest, row by row."""
    strides: Tensor
    """(A, 1) float32, pixels."""

    def __init__(self, class_names: Sequence[str]) -> None:
        """``class_names``: the classes, in the order of the scores."""
        super().__init__()
        self.class_names = tuple(class_names)
        self.network, self.head = _Network(), _Head(len(self.class_names))
        self.set_image_size(IMAGE_SIZE)

    def set_image_size(self, size: int) -> None:
        """Take frames of ``size`` x ``size`` pixels, a multiple of 32."""
        self._image_size = size
        cells, strides = _grid(size)
        device = next(self.parameters()).device
        self.register_buffer("cells", cells.to(device), persistent=False)
        self.register_buffer("strides", strides.to(device), persistent=False)

    def output(self, pixels: Tensor) -> YoloxOutput:
        """Run the network and its heads.
        ``pixels``: (B, 3, H, W) float, BGR from 0 to 255, H and W multiples of 32.
        """
        levels = self.network(pixels)
        return YoloxOutput(levels, self.head(levels))

    def raw_detections(self, output: YoloxOutput) -> RawDetections:
        """Decode boxes and scores of the output for frames of the detector's size."""
        shapes = _rows(level[:, :4] for level in output.raw).float()
        centres = self.cells + (shapes[..., :2] - 0.5) * self.strides
        half = shapes[..., 2:].clamp(max=_LARGEST_LOG).exp() * (self.strides / 2)
        boxes = torch.cat([centres - half, centres + half], dim=-1) * (1 / self._image_size)
        return RawDetections(_rows(output.class_scores), boxes)

    def forward(self, image_bgr: Tensor) -> RawDetections:
        """Detect objects in (B, size, size, 3) uint8 frames, BGR."""
        return self.raw_detections(self.output(image_bgr.permute(0, 3, 1, 2).float()))

    def convolutions(self) -> list[nn.Conv2d]:
        """Return the convolutions in the order of the released file's graph."""
        return [module for module in self.modules() if isinstance(module, nn.Conv2d)]


def _upsample(x: Tensor) -> Tensor:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")


def _rows(maps: Iterable[Tensor]) -> Tensor:
    """Join maps (B, C, H, W) to rows (B, A, C), one for each cell."""
    return torch.cat([level.flatten(2) for level in maps], dim=2).transpose(1, 2)


def _grid(size: int) -> tuple[Tensor, Tensor]:
    """Return (A, 2) centres of the cells of a frame in pixels, and (A, 1) their strides."""
    cells, strides = [], []
    for stride in STRIDES:
        centres = (torch.arange(size // stride) + 0.5) * stride
        ys, xs = torch.meshgrid(centres, centres, indexing="ij")
        cells.append(torch.stack([xs, ys], dim=-1).reshape(-1, 2))
        strides.append(torch.full((len(centres) ** 2, 1), float(stride)))
    return torch.cat(cells), torch.cat(strides)


def load_yolox_nano(path: Path) -> YoloxNano:
    """Read the ONNX file that the authors of YOLOX released; in evaluation mode.

    Raises:
        BackboneError: the file is missing, or holds other layers.
    """
    if not path.is_file():
        raise BackboneError(f"{path}: no such file; set SMART_CAPTION_DATA to the folder that holds detectors/")
    detector = YoloxNano(COCO_CLASSES)
    copy_convolutions(read_onnx(path), detector.convolutions(), path, "YOLOX-nano")
    return detector.eval()


def with_classes(detector: YoloxNano, class_names: Sequence[str]) -> YoloxNano:
    """Construct the same detector for other classes; heads of new classes keep their initial, low probability."""
    changed, old_names = YoloxNano(class_names), detector.class_names
    kept = [index for index, name in enumerate(class_names) if name in old_names]
    origins = [old_names.index(class_names[index]) for index in kept]
    tensors = detector.state_dict()
    for name, tensor in changed.state_dict().items():
        if ".class_logits." in name:
            tensor[kept] = tensors[name][origins]
        else:
            tensor.copy_(tensors[name])
    return changed.eval()
