"""Networks of timm as backbones: ``timm/NAME`` with timm's weights, or with those of a file or folder."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.errors import BackboneError
from training.paths import find_below
from training.vision.backbone import Backbone, BackboneSpec, ImageFeatures, token_grid
from training.vision.torchvision_operators import import_library

_LOCAL = "local-dir:"


class TimmBackbone(Backbone):
    """A network of timm without its head: the patches of a transformer, or the last feature map of a CNN, as grid."""

    kind: ClassVar[str] = "timm"
    network: Any
    """The network, with timm's attributes."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        preprocessing: Mapping[str, Any],
        mean: tuple[float, float, float],
        std: tuple[float, float, float],
    ) -> None:
        """Construct the architecture ``name`` of timm; ``preprocessing`` has the fields of :class:`Preprocessing`."""
        super().__init__()
        self._name, self._arguments = name, dict(arguments)
        self._mean, self._std = (*mean,), (*std,)
        self.description = f"{name} of timm"
        self.network = import_library("timm").create_model(name, pretrained=False, **{**arguments, "num_classes": 0})
        self._set_frames(Preprocessing(**preprocessing))

    def _set_frames(self, preprocessing: Preprocessing) -> None:
        width, height = preprocessing.size
        if hasattr(self.network, "set_input_size"):  # a network whose weights depend on it
            self.network.set_input_size(img_size=(height, width))
        self._preprocessing = preprocessing
        training = self.network.training
        with torch.no_grad():
            made = self.network.eval().forward_features(torch.zeros(1, 3, height, width, device=self._device))
        self.network.train(training)
        if made.ndim == 4:
            made = self._channels_first(made)
            self._before, (self._width, self._rows, self._columns) = 0, made.shape[1:]
        else:
            self._before, self._width = int(self.network.num_prefix_tokens), made.shape[2]
            self._rows, self._columns = self.network.patch_embed.grid_size

    @property
    def _device(self) -> torch.device:
        return next(self.network.parameters()).device

    def _channels_first(self, grid: Tensor) -> Tensor:
        is_last = getattr(self.network, "output_fmt", "NCHW") == "NHWC"
        return grid.permute(0, 3, 1, 2) if is_last else grid

    @property
    def spec(self) -> BackboneSpec:
        return BackboneSpec(
            preprocessing=self._preprocessing, mean=self._mean, std=self._std,
            rows=self._rows, columns=self._columns, token_width=self._width, before=self._before,
        )  # fmt: skip

    @property
    def options(self) -> dict[str, Any]:
        return {
            "name": self._name, "arguments": self._arguments, "preprocessing": asdict(self._preprocessing),
            "mean": [*self._mean], "std": [*self._std],
        }  # fmt: skip

    def set_image_size(self, width: int, height: int) -> None:
        if (width, height) == self._preprocessing.size:
            return
        try:
            self._set_frames(self._preprocessing.resized(width, height))
        except (AssertionError, RuntimeError) as error:
            raise ValueError(f"{self._name} takes no frames of {width} x {height}: {error}") from None

    def features(self, image_bgr: Tensor) -> ImageFeatures:
        made = self.network.forward_features(self.normalise(image_bgr))
        return ImageFeatures(token_grid(self._channels_first(made)) if made.ndim == 4 else made)


def load_timm(name: str, data: Path) -> TimmBackbone:
    """Read a network of timm with its weights.
    ``name``: a model of timm, whose weights are taken from the hub's cache or downloaded; ``NAME:FILE``, with the
    weights of a file, which may be one of open_clip if timm knows its tensors; or ``local-dir:FOLDER``, a folder of
    ``timm.models.save_for_hf``. Paths are absolute, below the checkout or below ``data``.

    Raises:
        BackboneError: the model is unknown, or its weights are missing or another network's.
    """
    timm = import_library("timm")
    where, overlay = f"timm/{name}", None
    arguments: dict[str, Any] = {}
    if name.startswith(_LOCAL):
        folder = _find(name.removeprefix(_LOCAL), data, where)
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            arguments = dict(config.get("model_args") or {})
        except (OSError, ValueError) as error:
            raise BackboneError(f"{where}: config.json cannot be read ({error})") from None
        name = _LOCAL + str(folder)
    elif ":" in name and not name.startswith("hf-hub:"):
        name, _, file = name.partition(":")
        overlay = {"file": str(_find(file, data, where))}
    try:
        network = timm.create_model(name, pretrained=True, num_classes=0, pretrained_cfg_overlay=overlay)
    except Exception as error:  # of the hub's client there are many types
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BackboneError(
            f"{where}: {reason}; timm.list_models() lists the names. Without internet, copy the model's folder of the "
            "Hugging Face hub (timm/NAME there) here and name it timm/local-dir:FOLDER"
        ) from None
    facts = network.pretrained_cfg
    _, height, width = facts["input_size"]
    interpolation = facts["interpolation"] if facts["interpolation"] != "random" else "bilinear"
    squashed = facts["crop_mode"] == "squash"
    shorter = None if squashed else math.floor(max(height, width) / facts["crop_pct"])
    frames = Preprocessing(width, height, interpolation, shorter)
    architecture = facts["architecture"] or name
    backbone = TimmBackbone(architecture, arguments, asdict(frames), facts["mean"], facts["std"])
    backbone.network.load_state_dict(network.state_dict())
    return backbone.eval()


def _find(path: str, data: Path, where: str) -> Path:
    if (found := find_below(path, data)) is None:
        raise BackboneError(f"{where}: {path} is neither below the checkout nor below {data}")
    return found
