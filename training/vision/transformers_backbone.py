"""Published vision towers in transformers' format, as backbones: CLIP, SigLIP, DINOv2, ViT, and those of captioners.

Tokens are ``last_hidden_state``: a pooled head is not part of the backbone.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.errors import BackboneError
from training.paths import find_below
from training.vision.backbone import Backbone, BackboneSpec, ImageFeatures
from training.vision.torchvision_operators import import_library


class _Tower(NamedTuple):
    """A vision tower of transformers."""

    model: str
    """Name of its class."""
    before: int
    """Number of tokens before the grid, registers not counted."""
    arguments: Mapping[str, Any] = {}
    """Arguments of its constructor."""
    takes_rectangles: bool = False
    """Whether frames may be wider than high."""
    width: str = "hidden_size"
    """Name in its config of the width of a token."""


TOWERS: Mapping[str, _Tower] = {
    "blip_vision_model": _Tower("BlipVisionModel", 1),
    "clip_vision_model": _Tower("CLIPVisionModel", 1),
    "deit": _Tower("DeiTModel", 2, {"add_pooling_layer": False}, takes_rectangles=True),
    "dinov2": _Tower("Dinov2Model", 1),
    "dinov2_with_registers": _Tower("Dinov2WithRegistersModel", 1),
    "florence_vision": _Tower("Florence2Eyes", 1, takes_rectangles=True, width="projection_dim"),
    "git_vision_model": _Tower("GitVisionModel", 1),
    "siglip_vision_model": _Tower("SiglipVisionModel", 0),
    "vit": _Tower("ViTModel", 1, {"add_pooling_layer": False}, takes_rectangles=True),
}
"""By ``model_type`` of the tower's config."""
_ALIKE = dict.fromkeys(("idefics3", "idefics3_vision", "smolvlm", "smolvlm_vision"), "siglip_vision_model")
"""Towers that compute what another one computes, for whole frames; released files call them by either name."""
_PREFIXES = {
    "blip": "vision_model", "florence2": "model", "git": "git.image_encoder", "idefics3": "model.vision_model",
    "smolvlm": "model.vision_model", "vision-encoder-decoder": "encoder",
}  # fmt: skip
"""Prefixes of the tower's weights in files of models that contain it, by ``model_type``, if unknown to transformers."""
_FILTERS = {1: "lanczos", 2: "bilinear", 3: "bicubic"}
"""Interpolation by its number in Pillow and in preprocessor_config.json."""


_SWITCHES = ("do_center_crop", "do_convert_rgb", "do_normalize", "do_rescale", "do_resize")
"""Switches of an image processor that the preprocessing follows."""
_OF_TILES = ("do_image_splitting", "do_pad")
"""Switches that only matter if frames are split into tiles. Here the network takes the whole frame once."""


class TransformersBackbone(Backbone):
    """A vision tower of transformers, its patches as grid."""

    kind: ClassVar[str] = "hf"
    network: Any
    """The tower, with its config."""

    def __init__(
        self,
        config: Mapping[str, Any],
        preprocessing: Mapping[str, Any],
        mean: tuple[float, float, float],
        std: tuple[float, float, float],
        shuffle: int = 1,
    ) -> None:
        """
        Args:
            config: of the tower, as in config.json.
            preprocessing: fields of :class:`Preprocessing`; the tower's image size becomes that of the frames.
            shuffle: rows and columns of patches that are joined to one token, as wide as all of them (Idefics3).
        """
        super().__init__()
        self._shuffle = shuffle
        self._preprocessing = Preprocessing(**preprocessing)
        self._mean, self._std = (*mean,), (*std,)
        self._config = dict(config)
        self.network = _tower(self._config, self._preprocessing.size)
        kind = self._config["model_type"].removesuffix("_model").replace("_", " ")
        self.description = f"{kind}, tokens of {self.spec.token_width}"

    @property
    def spec(self) -> BackboneSpec:
        config, frames = self.network.config, self._preprocessing
        patch, tower = _patch_size(config), TOWERS[config.model_type]
        return BackboneSpec(
            preprocessing=frames, mean=self._mean, std=self._std,
            rows=frames.height // patch // self._shuffle, columns=frames.width // patch // self._shuffle,
            token_width=int(getattr(config, tower.width)) * self._shuffle**2,
            before=tower.before + int(getattr(config, "num_register_tokens", 0)),
        )  # fmt: skip

    @property
    def options(self) -> dict[str, Any]:
        return {
            "config": self._config, "preprocessing": asdict(self._preprocessing),
            "mean": [*self._mean], "std": [*self._std], "shuffle": self._shuffle,
        }  # fmt: skip

    def set_image_size(self, width: int, height: int) -> None:
        frames, patch = self._preprocessing, _patch_size(self.network.config)
        cell = patch * self._shuffle
        if (width, height) == frames.size:
            return
        if min(width, height) < cell or width % cell or height % cell:
            raise ValueError(f"the size of frames must be a positive multiple of {cell}, not {width} x {height}")
        if max(width, height) > patch * getattr(self.network.config, "max_position_embeddings", math.inf):
            raise ValueError(f"the model has no positions for frames of {width} x {height}")
        if width != height and not TOWERS[self._config["model_type"]].takes_rectangles:
            raise ValueError(f"a {self._config['model_type']} takes square frames, not {width} x {height}")
        self._preprocessing = frames.resized(width, height)
        weights = self.network.state_dict()
        training = self.network.training
        device = next(self.network.parameters()).device
        self.network = _tower(self._config, (width, height)).to(device).train(training)
        self.network.load_state_dict(_with_positions(weights, self.network, (frames.size, patch), (width, height)))

    def features(self, image_bgr: Tensor) -> ImageFeatures:
        tokens = self.network(self.normalise(image_bgr)).last_hidden_state
        if self._shuffle == 1:
            return ImageFeatures(tokens)
        rows, columns = self.spec.rows, self.spec.columns
        cells = tokens.unflatten(1, (rows, self._shuffle, columns, self._shuffle)).transpose(2, 3)
        return ImageFeatures(cells.flatten(3).flatten(1, 2))


def load_transformers(name: str, data: Path) -> TransformersBackbone:
    """Read a vision tower, alone or in a model that contains it, with its weights and its image processor.

    Args:
        name: a folder with config.json, preprocessor_config.json and the weights, absolute, below the checkout or below
            ``data``; or an id of the Hugging Face hub, whose files are taken from the hub's cache or downloaded.
        data: folder of backbones.

    Raises:
        BackboneError: files are missing or are those of another kind of model.
    """
    transformers = import_library("transformers")
    folder = find_below(name, data)
    source = str(folder or name)
    where = f"hf/{name}"
    if folder is None and (Path(name).is_absolute() or name.count("/") != 1):
        raise BackboneError(f"{where}: no such folder, and no id of the Hugging Face hub (owner/name)")
    with _quiet(transformers):
        try:
            whole = transformers.AutoConfig.from_pretrained(source)
        except (OSError, ValueError) as error:
            raise BackboneError(_reading_failed(where, folder is not None, error)) from None
        config = getattr(whole, "vision_config", None) or getattr(whole, "encoder", None) or whole
        own_kind = config.model_type
        if own_kind in _ALIKE:
            config = transformers.AutoConfig.for_model(
                _ALIKE[own_kind], **{key: value for key, value in config.to_dict().items() if key != "model_type"}
            )
        if config.model_type not in TOWERS:
            raise BackboneError(
                f"{where}: model_type {config.model_type!r} is no vision tower that is known here; known are "
                f"{', '.join(TOWERS)}, alone or in a model that contains one; for others try timm/NAME"
            )
        try:
            processor = transformers.AutoImageProcessor.from_pretrained(source, use_fast=False)
            network, info = _read_weights(source, whole.model_type, config)
        except (OSError, RuntimeError, ValueError) as error:
            raise BackboneError(_reading_failed(where, folder is not None, error)) from None
    if missing := sorted(info["missing_keys"]):
        raise BackboneError(f"{where}: the weights lack {missing[0]}, which a {config.model_type} has")
    preprocessing, mean, std = _read_processor(processor, where)
    patch, shuffle = _patch_size(config), int(getattr(whole, "scale_factor", 1)) if own_kind in _ALIKE else 1
    if preprocessing.width % (cell := patch * shuffle) or preprocessing.height % cell:
        raise BackboneError(f"{where}: frames of {preprocessing.size} pixels are not whole patches of {cell}")
    backbone = TransformersBackbone(json.loads(config.to_json_string()), asdict(preprocessing), mean, std, shuffle)
    size = getattr(config, "image_size", 0)  # DaViT takes any
    size = size if isinstance(size, (list, tuple)) else (size, size)
    published, weights = ((int(size[1]), int(size[0])), patch), dict(network.state_dict())
    if own_kind in _ALIKE:
        (name,) = (name for name in weights if name.endswith("position_embedding.weight"))
        weights[name] = _nearest_positions(weights[name], preprocessing.width // patch)
        published = preprocessing.size, patch
    backbone.network.load_state_dict(_with_positions(weights, backbone.network, published, preprocessing.size))
    return backbone.eval()


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Hold back the progress bars and the reports of transformers, which list the weights of the text side."""
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)
        transformers.logging.enable_progress_bar()


def _tower(config: Mapping[str, Any], size: tuple[int, int]) -> nn.Module:
    """Construct a tower for frames of a size, width and height in pixels."""
    transformers = import_library("transformers")
    fields = {key: value for key, value in config.items() if key not in ("image_size", "model_type")}
    width, height = size
    kind = config["model_type"]
    # The tower's positions are those of a square, or of (rows, columns) where it looks the pair up itself.
    side = width if width == height else (height, width)
    made = transformers.AutoConfig.for_model(kind, **fields, image_size=side)
    made.vision_use_head = False  # of SigLIP
    network: nn.Module = _class_of(kind)(made, **TOWERS[kind].arguments)
    return network


def _class_of(kind: str) -> Any:
    """Return the class of a tower by its ``model_type``."""
    if kind == "florence_vision":
        from training.vision.florence2_eyes import Florence2Eyes

        return Florence2Eyes
    return getattr(import_library("transformers"), TOWERS[kind].model)


def _patch_size(config: Any) -> int:
    """Return the pixels of a frame that a cell of the grid stands for, on each side."""
    return math.prod(getattr(config, "patch_stride", [config.patch_size]))


def _read_weights(source: str, kind: str, config: Any) -> tuple[nn.Module, Mapping[str, Any]]:
    """Read the weights of a tower from those of a model of a ``model_type``; return it with what was not found."""
    mapping = {rf"^{re.escape(_PREFIXES[kind])}\.": ""} if kind in _PREFIXES else None
    config.vision_use_head = False
    tower = TOWERS[config.model_type]
    # Weights in 16 bits are copied into a network of 32 (load_transformers).
    read: tuple[nn.Module, Mapping[str, Any]] = _class_of(config.model_type).from_pretrained(
        source, config=config, key_mapping=mapping, output_loading_info=True, **tower.arguments
    )
    return read


def _read_processor(
    processor: Any, where: str
) -> tuple[Preprocessing, tuple[float, float, float], tuple[float, float, float]]:
    """Return the published preprocessing, and mean and std of channels from 0 to 1.

    Raises:
        BackboneError: the processor does something else as well or not what is needed, or another interpolation.
    """
    switches = {name: getattr(processor, name, None) for name in dir(processor) if name.startswith("do_")}
    tile = dict(getattr(processor, "max_image_size", None) or {}).get("longest_edge")
    if tile:
        switches = {name: value for name, value in switches.items() if name not in _OF_TILES}
    if unknown := sorted(name for name, value in switches.items() if value and name not in _SWITCHES):
        raise BackboneError(f"{where}: preprocessor_config.json sets {unknown[0]}, which is not known here")
    if not switches.get("do_resize", True):
        raise BackboneError(f"{where}: preprocessor_config.json sets do_resize to false; frames have one size here")
    size, crop = dict(processor.size), dict(getattr(processor, "crop_size", None) or {})
    shorter = size.get("shortest_edge")
    is_cropped = bool(getattr(processor, "do_center_crop", False))
    if shorter and not is_cropped:
        shorter, size = None, {"width": shorter, "height": shorter}  # transformers would give frames of any shape
    longest = size.get("longest_edge") if tile else None
    frame = {"width": tile, "height": tile} if tile else crop if is_cropped else size
    interpolation = _FILTERS.get(int(processor.resample))
    if interpolation is None or not frame.get("width"):
        raise BackboneError(f"{where}: its image processor {type(processor).__name__} is not known here")
    preprocessing = Preprocessing(
        int(frame["width"]), int(frame["height"]), interpolation, shorter or None, longest and int(longest)
    )
    largest = 255 * (processor.rescale_factor if switches.get("do_rescale", True) else 1.0)
    normalises = switches.get("do_normalize", True)
    mean, std = (processor.image_mean, processor.image_std) if normalises else ((0.0,) * 3, (1.0,) * 3)
    return preprocessing, _of_unit_range(mean, largest), _of_unit_range(std, largest)


def _of_unit_range(channels: Iterable[float], largest: float) -> tuple[float, float, float]:
    """Divide the values of three channels by that of the brightest pixel."""
    red, green, blue = (float(value) / largest for value in channels)
    return red, green, blue


def _reading_failed(where: str, is_folder: bool, error: Exception) -> str:
    reason = str(error).strip().splitlines()[0]
    if is_folder:
        return f"{where}: {reason}"
    return (
        f"{where}: not in the cache of the Hugging Face hub, and could not be downloaded ({reason}); on a machine with "
        f"internet run `hf download {where.removeprefix('hf/')} --local-dir FOLDER`, copy the folder here, and name it "
        "hf/FOLDER"
    )


def _nearest_positions(table: Tensor, count: int) -> Tensor:
    """Return the embeddings that Idefics3 takes for count x count patches, rounding as it does."""
    side = round(len(table) ** 0.5)
    places = (torch.arange(count) * (1.0 / torch.tensor(count))).clamp(max=1 - 1e-6)
    nearest = torch.bucketize(places, torch.arange(1 / side, 1.0, 1 / side), right=True)
    return table[(nearest[:, None] * side + nearest).flatten()]


def _with_positions(
    weights: Mapping[str, Tensor], network: nn.Module, old: tuple[tuple[int, int], int], size: tuple[int, int]
) -> dict[str, Tensor]:
    """Interpolate the embeddings of the positions of patches for frames of another size, as transformers does.

    Args:
        weights: of the tower, which may have more than ``network``.
        network: the tower for the new size.
        old: width and height of the frames of ``weights``, and the size of a patch, pixels.
        size: width and height of the new frames.
    """
    wanted = network.state_dict()
    found = {name: weights[name] for name in wanted if name in weights}
    (width, height), patch = old
    cells = (height // patch) * (width // patch)
    for name, tensor in found.items():
        if "position_embedding" not in name or tensor.shape == wanted[name].shape:
            continue
        rows = tensor.reshape(-1, tensor.shape[-1])
        first, grid = rows.split([len(rows) - cells, cells])
        grid = functional.interpolate(
            grid.reshape(1, height // patch, width // patch, -1).permute(0, 3, 1, 2),
            (size[1] // patch, size[0] // patch), mode="bicubic", align_corners=False,
        )  # fmt: skip
        found[name] = torch.cat([first, grid.permute(0, 2, 3, 1).flatten(0, 2)]).reshape(wanted[name].shape)
    return {**{name: wanted[name] for name in wanted if name.endswith("position_ids")}, **found}
