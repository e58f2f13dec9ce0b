"""Experiment files: one YAML a run, every choice one line, nothing silently ignored."""

from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml

from training.data.datasets import DATASETS
from training.data.feature_formats import FEATURE_KINDS
from training.data.tokenizer import RULES
from training.engine.schedules import SCHEDULES
from training.errors import ConfigError
from training.objectives import OBJECTIVES

T = TypeVar("T")


@dataclass(frozen=True)
class DataConfig:
    """Captions and how they become words."""

    dataset: str = "flickr8k"
    """One of :data:`training.data.datasets.DATASETS`."""
    options: dict[str, Any] = field(default_factory=dict)
    """The data set's own, e.g. :class:`training.data.coco_dataset.CocoOptions`."""
    vocabulary: str = "m2"
    """The rule by which captions become words, one of :data:`training.data.tokenizer.RULES`."""
    minimum_count: int = 0
    """Words seen less often in the training split are unknown; 0: as often as the rule says."""
    max_words: int = 20
    """Longer captions are cut; also the longest caption that beam search makes."""
    text: str = ""
    """Captions without pictures, for phases with the objective ``language``: a ``captions_*.json`` of COCO below the
    data folder, or absolute."""

    def __post_init__(self) -> None:
        if self.dataset not in DATASETS:
            raise ValueError(f"dataset must be one of {', '.join(DATASETS)}, not {self.dataset!r}")
        if self.vocabulary not in RULES:
            raise ValueError(f"vocabulary must be one of {', '.join(RULES)}, not {self.vocabulary!r}")
        if self.minimum_count < 0:
            raise ValueError(f"minimum_count must not be negative, not {self.minimum_count}")


@dataclass(frozen=True)
class FeaturesConfig:
    """Features that were computed before, in place of a backbone; at most one kind. Paths as in ``data``.

    They are taken as they are stored: ``flip`` and ``crop`` of a phase have no effect.
    """

    store: str = ""
    """A folder of ``python -m training.features``."""
    hdf5: str = ""
    """A file of bottom-up features, as M2 published them."""
    tsv: list[str] = field(default_factory=list)
    """One or more files of bottom-up features, as Anderson et al. published them."""
    npz: str = ""
    """A folder with a file an image."""
    width: int = 2048
    """Of a feature. A store knows its own."""
    max_regions: int = 50
    """Read of an image, the first in file order. Of a store all are read."""

    def __post_init__(self) -> None:
        if len(self._given()) > 1:
            raise ValueError(f"give one of {', '.join(self._given())}, not several")
        for name in ("width", "max_regions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")

    def __bool__(self) -> bool:
        return bool(self._given())

    @property
    def kind(self) -> str:
        """Which kind is given."""
        return self._given()[0]

    def paths(self, data: Path) -> list[Path]:
        """Of the kind that is given, below the data folder or absolute."""
        given = getattr(self, self.kind)
        return [data / path for path in ([given] if isinstance(given, str) else given)]

    def _given(self) -> list[str]:
        return [kind for kind in FEATURE_KINDS if getattr(self, kind)]


@dataclass(frozen=True)
class PhaseConfig:
    """A stretch of epochs with settings of its own."""

    name: str
    epochs: int
    learning_rate: float
    """Of the captioner; ``schedule`` multiplies it. With ``noam`` 1.0 gives the paper's rule."""
    schedule: str = "cosine"
    """``cosine`` (warm-up, then half a cosine down to ``final_share``), ``noam`` or ``constant``."""
    warmup_steps: int = 0
    final_share: float = 0.02
    objective: str = "cross_entropy"
    """``cross_entropy``, ``self_critical``, or ``language``, which learns the captions of ``data: text:`` alone."""
    images_per_batch: int = 20
    """Images a step, of all processes together; each brings all its captions and is encoded once."""
    accumulate: int = 1
    """A process computes its images of a step in so many parts, one after the other: less memory, the same step."""
    backbone_learning_rate: float = 0.0
    """0 keeps the backbone frozen and, with a ``crop`` of 1, takes cached features."""
    backbone_coarse_only: bool = False
    """Let only those of its layers learn that are behind the map of stride 8: those before see edges and textures,
    and cost most of the time."""
    label_smoothing: float = 0.0
    flip: bool = True
    """Mirror half of the photographs."""
    crop: float = 1.0
    """Smallest share of the side that a random crop keeps; 1 is the whole photograph. Below 1 a frozen backbone, too,
    sees every photograph anew in every epoch."""
    beam_size: int = 5
    """Captions that self-critical training tries for an image."""
    reward_end_token: bool = True
    """Whether the reward counts the end as a word, so that broken-off captions do not pay. M2's code: false."""
    patience: int = 0
    """The phase ends after so many epochs without a better dev CIDEr; 0: never."""
    average: float = 0.0
    """What a step keeps of the moving average of the weights, e.g. 0.997; the average is then what is scored, kept as
    the best and handed to the next phase. 0: no average."""
    fresh_captioner: bool = False
    """Begin with new captioner weights, on the backbone that the phases before have fine-tuned."""
    from_best: bool = False
    """Start from the best model of the phases before, by dev CIDEr, not from where the last one ended."""
    sources: list[str] = field(default_factory=list)
    """The sources of a mixture that the phase learns from; all, if none is named."""

    def __post_init__(self) -> None:
        for key, known in (("objective", OBJECTIVES), ("schedule", SCHEDULES)):
            if getattr(self, key) not in known:
                raise ValueError(f"{key} must be one of {', '.join(known)}, not {getattr(self, key)!r}")
        if self.schedule == "noam" and self.warmup_steps < 1:
            raise ValueError("schedule noam needs warmup_steps (10000 in the paper)")
        if self.objective == "self_critical" and self.beam_size < 2:
            raise ValueError(f"beam_size must be at least 2 for self_critical, not {self.beam_size}")
        for key in ("epochs", "images_per_batch", "accumulate"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key} must be at least 1, not {getattr(self, key)}")
        if not 0 <= self.average < 1:
            raise ValueError(f"average must be at least 0 and less than 1, not {self.average}")
        if self.patience < 0:
            raise ValueError(f"patience must not be negative, not {self.patience}")

    @property
    def trains_backbone(self) -> bool:
        return self.backbone_learning_rate > 0


@dataclass(frozen=True)
class EvaluationConfig:
    """How the dev split is captioned after each epoch."""

    beam_size: int = 5
    images_per_batch: int = 50


@dataclass(frozen=True)
class ExperimentConfig:
    """The whole file."""

    name: str
    phases: list[PhaseConfig]
    backbone: str = ""
    """File under ``backbones/`` of the data folder, a bundle's folder (with a slash), or ``efficientnet_lite1``: see
    :func:`training.vision.released_weights.locate`."""
    beside: list[str] = field(default_factory=list)
    """More of the same kind, side by side with ``backbone``: the captioner sees what all of them see."""
    yolox: str = ""
    """A YOLOX-nano beside the backbone, so that the captioner sees what both see and the model finds objects:
    ``yolox_nano.onnx``, the released file under ``detectors/`` of the data folder, or, with a slash, a file of
    ``python -m training.detection.train`` below the checkout or absolute."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    """In place of a backbone."""
    start_from: str = ""
    """``best.safetensors`` of another run of the same family and size, below the checkout or absolute, whose words,
    captioner and backbone this run begins with; the detector is the one that ``yolox`` names."""
    family: str = "smart"
    model: dict[str, Any] = field(default_factory=dict)
    """The family's own hyper-parameters."""
    seed: int = 1
    precision: str = "auto"
    """``fp32``, ``bf16`` (autocast), or ``auto``: bf16 where the device multiplies it natively."""
    compile: bool = False
    """Whether torch.compile makes the backbone and teacher forcing faster, after some minutes of compiling."""
    checkpoint_minutes: float = 3.0
    """Time between checkpoints; one is also written after every epoch."""
    data: DataConfig = field(default_factory=DataConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)


def load_config(path: Path) -> ExperimentConfig:
    """Read an experiment file.

    Raises:
        ConfigError: not YAML, an unknown or missing key, or a value of another type.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    return parse_config(raw, str(path))


def parse_config(raw: Any, where: str) -> ExperimentConfig:
    """An experiment from plain keys and values, what is not said by default.

    Raises:
        ConfigError: as :func:`load_config`; the message begins with ``where``.
    """
    config = _build(ExperimentConfig, raw, where)
    names = [phase.name for phase in config.phases]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{where}: phases: two are named {repeated[0]!r}")
    if config.precision not in ("auto", "fp32", "bf16"):
        raise ConfigError(f"{where}: precision must be auto, fp32 or bf16, not {config.precision!r}")
    if not config.phases:
        raise ConfigError(f"{where}: phases: expected a list of phases, found none")
    if config.phases[0].from_best:
        raise ConfigError(f"{where}: phases[0]: from_best: no phase comes before it")
    if bool(config.backbone) == bool(config.features):
        raise ConfigError(f"{where}: give backbone or features, one of the two")
    if config.features:
        for index, phase in enumerate(config.phases):
            if phase.trains_backbone:
                raise ConfigError(f"{where}: phases[{index}]: backbone_learning_rate: features have no backbone")
        if config.yolox or config.beside:
            raise ConfigError(f"{where}: {'yolox' if config.yolox else 'beside'}: features have no backbone")
    if any(phase.objective == "language" for phase in config.phases) and not config.data.text:
        raise ConfigError(f"{where}: data: text: a phase has the objective language, but there are no captions")
    _build(DATASETS[config.data.dataset].options, config.data.options, f"{where}: data: options")
    known = config.data.options.get("sources", {})
    for index, phase in enumerate(config.phases):
        if unknown := [name for name in phase.sources if name not in known]:
            of = f"the sources are {', '.join(known)}" if known else f"{config.data.dataset} is no mixture of sources"
            raise ConfigError(f"{where}: phases[{index}]: sources: {unknown[0]!r}: {of}")
    return config


def what_is_learnt(config: ExperimentConfig) -> ExperimentConfig:
    """The experiment without what may be another when a run goes on: options of how it is computed."""
    phases = [replace(phase, accumulate=1) for phase in config.phases]
    return replace(config, phases=phases, compile=False, checkpoint_minutes=0.0)


def _build(kind: type[T], raw: Any, where: str) -> T:
    if not isinstance(raw, dict):
        raise ConfigError(f"{where}: expected keys and values, found {raw!r}")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for key in raw:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; known are {', '.join(known)}")
    values = {}
    for name, f in known.items():
        if name in raw:
            values[name] = _convert(f.type, raw[name], f"{where}: {name}")
        elif f.default is MISSING and f.default_factory is MISSING:
            raise ConfigError(f"{where}: {name} is missing")
    try:
        return kind(**values)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _convert(kind: Any, value: Any, where: str) -> Any:
    if kind == list[str] and isinstance(value, str):
        return [value]
    if get_origin(kind) is list:
        if not isinstance(value, list):
            raise ConfigError(f"{where}: expected a list, found {value!r}")
        return [_convert(get_args(kind)[0], item, f"{where}[{index}]") for index, item in enumerate(value)]
    if hasattr(kind, "__dataclass_fields__"):
        return _build(kind, value, where)
    if kind is float and isinstance(value, str):
        # YAML 1.1 reads 5e-4 as a string, 5.0e-4 as a number.
        try:
            return float(value)
        except ValueError:
            pass
    wanted = get_origin(kind) or kind
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise ConfigError(f"{where}: expected {wanted.__name__}, found {value!r}")
    return value
