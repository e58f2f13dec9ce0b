"""Several networks on the same frame, and optionally the detector YOLOX-nano; the registry of backbones.

A visual token concatenates the features that all networks have of one cell of the grid; with a detector it also
holds the highest score of each class in that cell. Tokens before the grid are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.vision.backbone import Backbone, BackboneSpec, CachesEarlyLayers, ImageFeatures, pixels_of
from training.vision.inverted_residuals import GRIDS
from training.vision.timm_backbone import TimmBackbone
from training.vision.transformers_backbone import TransformersBackbone
from training.vision.yolox import STRIDES, YoloxNano, YoloxOutput

SCORE_SCALE = 4.0
"""Factor of the class scores in a token, which brings them nearer to the range of the grid features, 0 to 6."""


class SideBySide(Backbone):
    """Backbones of one grid and, optionally, a detector. Frames are preprocessed as for the first backbone."""

    kind: ClassVar[str] = "side_by_side"

    def __init__(self, grids: Sequence[Backbone], yolox: YoloxNano | None = None) -> None:
        """Join networks; :func:`side_by_side` does it."""
        super().__init__()
        self.grids = nn.ModuleList(grids)
        self.yolox = yolox
        self._detector_width = 0
        if self.yolox is not None:
            self.class_names = self.yolox.class_names
            self._detector_width = YoloxNano.level_widths[-1] + len(self.class_names)
        self._check_grids()

    def _check_grids(self) -> None:
        first = self._grids[0]
        for grid in self._grids[1:]:
            one, other = first.spec, grid.spec
            if (one.rows, one.columns, one.preprocessing.size) != (other.rows, other.columns, other.preprocessing.size):
                raise ValueError(
                    "backbones side by side need one size of frames and one grid: "
                    f"{first.description} has {_grid_of(one)}, {grid.description} {_grid_of(other)}"
                )
        spec = first.spec
        if self.yolox is not None and _cells_of_detector(spec.preprocessing) != (spec.rows, spec.columns):
            raise ValueError(
                f"a detector beside a backbone needs frames of {STRIDES[-1]} pixels a cell, on each side, and square "
                f"ones: {first.description} has {_grid_of(spec)}"
            )

    @property
    def spec(self) -> BackboneSpec:
        first = self._grids[0].spec
        width = sum(grid.spec.token_width for grid in self._grids) + self._detector_width
        return BackboneSpec(first.preprocessing, first.mean, first.std, first.rows, first.columns, width)

    @property
    def _grids(self) -> list[Backbone]:
        return [grid for grid in self.grids if isinstance(grid, Backbone)]

    @property
    def description(self) -> str:  # type: ignore[override]  # depends on the networks of the instance
        return " and ".join([*(grid.description for grid in self._grids), *(["YOLOX-nano"] if self.yolox else [])])

    def set_image_size(self, width: int, height: int) -> None:
        for grid in self._grids:
            grid.set_image_size(width, height)
        self._check_grids()
        if self.yolox is not None:
            self.yolox.set_image_size(width)

    @property
    def trainable(self) -> nn.Module:
        """The grid backbones alone: captions have no boxes, so training on them would degrade the detector."""
        return self.grids

    @property
    def options(self) -> dict[str, Any]:
        grids = [grid.kind if grid.kind in GRIDS else {"kind": grid.kind, **grid.options} for grid in self._grids]
        return {"grids": grids, "yolox": [*self.class_names] if self.yolox else None}

    def fold_channel_order(self) -> None:
        for grid in self._grids:
            grid.fold_channel_order()

    def features(self, image_bgr: Tensor) -> ImageFeatures:
        image_bgr = image_bgr.float()
        tokens = [grid.tokens(image_bgr)[:, grid.spec.before :] for grid in self._grids]
        if self.yolox is None:
            return ImageFeatures(torch.cat(tokens, dim=-1))
        with torch.no_grad():
            output = self.yolox.output(pixels_of(image_bgr))
            of_detector, detections = _detector_tokens(output), self.yolox.raw_detections(output)
        return ImageFeatures(torch.cat([*tokens, of_detector.to(tokens[0])], dim=-1), detections)


class _CachedSideBySide(SideBySide, CachesEarlyLayers):
    """The same of networks whose early layers can be cached."""

    @property
    def _cached(self) -> list[CachesEarlyLayers]:
        return [grid for grid in self.grids if isinstance(grid, CachesEarlyLayers)]

    @property
    def early_width(self) -> int:
        return sum(grid.early_width for grid in self._cached) + self.spec.tokens * self._detector_width

    @property
    def early_layers(self) -> list[nn.Module]:
        return [layer for grid in self._cached for layer in grid.early_layers]

    def early_features(self, image_bgr: Tensor) -> Tensor:
        early = [grid.early_features(image_bgr) for grid in self._cached]
        if self.yolox is not None:
            of_detector = _detector_tokens(self.yolox.output(pixels_of(image_bgr)))
            early.append(of_detector.flatten(1).to(early[0]))
        return torch.cat(early, dim=-1)

    def tokens_of_early_features(self, early: Tensor) -> Tensor:
        widths = [grid.early_width for grid in self._cached]
        *of_grids, of_detector = early.split([*widths, early.shape[1] - sum(widths)], dim=1)
        tokens = [grid.tokens_of_early_features(part) for grid, part in zip(self._cached, of_grids, strict=True)]
        if self.yolox is not None:
            tokens.append(of_detector.unflatten(1, (-1, self._detector_width)).to(tokens[0]))
        return torch.cat(tokens, dim=-1)


def side_by_side(
    grids: Sequence[Backbone | str | Mapping[str, Any]], yolox: YoloxNano | Sequence[str] | None = None
) -> SideBySide:
    """Put networks side by side; their early layers can be cached if those of all can.

    Args:
        grids: networks with their weights, or what :func:`construct` makes them of.
        yolox: a detector with its weights, or the class names of a detector that is constructed anew.

    Raises:
        ValueError: the networks have different grids, or the detector has another one.
    """
    networks = [grid if isinstance(grid, Backbone) else construct(grid) for grid in grids]
    detector = yolox if yolox is None or isinstance(yolox, YoloxNano) else YoloxNano(yolox)
    caches = all(isinstance(network, CachesEarlyLayers) for network in networks)
    return (_CachedSideBySide if caches else SideBySide)(networks, detector)


BACKBONES: dict[str, Callable[..., Backbone]] = {
    **GRIDS,
    SideBySide.kind: side_by_side,
    TimmBackbone.kind: TimmBackbone,
    TransformersBackbone.kind: TransformersBackbone,
}
"""All backbones by the name that checkpoints have for them."""


def construct(facts: str | Mapping[str, Any]) -> Backbone:
    """Construct a backbone of its ``kind``, with its :attr:`Backbone.options` where it has any."""
    options = {"kind": facts} if isinstance(facts, str) else dict(facts)
    return BACKBONES[options.pop("kind")](**options)


def _grid_of(spec: BackboneSpec) -> str:
    width, height = spec.preprocessing.size
    return f"{spec.rows} x {spec.columns} tokens of {width} x {height} pixels"


def _cells_of_detector(frames: Preprocessing) -> tuple[int, int] | None:
    stride = STRIDES[-1]
    is_whole = frames.width == frames.height and frames.width % stride == 0
    return (frames.height // stride, frames.width // stride) if is_whole else None


def _detector_tokens(output: YoloxOutput) -> Tensor:
    """Return a detector's part of the tokens, (B, N, width): its coarsest map, and the highest class scores."""
    # The maximum over all cells of the finer maps that lie in a cell of the coarsest one.
    best_scores = torch.stack([
        functional.max_pool2d(scores, STRIDES[-1] // stride)
        for stride, scores in zip(STRIDES, output.class_scores, strict=True)
    ]).amax(dim=0)  # fmt: skip
    return torch.cat([output.levels[-1], best_scores * SCORE_SCALE], dim=1).flatten(2).transpose(1, 2)
