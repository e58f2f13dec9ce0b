"""Schema of experiment files: every option with its type, its default and the values that it accepts.

:mod:`training.configs.parsing` reads the files; :mod:`training.engine.experiment` checks the names that stand for code
(data sets, families, objectives, schedules, optimizers) against their registries.
"""

from dataclasses import field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict
from pydantic.dataclasses import dataclass

from smart_caption_ros.captioning.search import Finished, Search
from training.configs.ranges import (
    Bool,
    FileName,
    Float,
    Int,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PositiveShare,
    Share,
    Str,
)

Precision: TypeAlias = Literal["auto", "fp32", "bf16", "fp16"]

FORBID_UNKNOWN_KEYS = ConfigDict(extra="forbid")


def _as_list(value: object) -> object:
    """Put a string into a list."""
    return [value] if isinstance(value, str) else value


StrList = Annotated[list[Str], BeforeValidator(_as_list)]


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class DataConfig:
    """Images with captions, and how the captions become words."""

    dataset: Str = "flickr8k"
    """A key of :data:`training.data.datasets.DATASETS`."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the data set, e.g. :class:`training.data.coco_dataset.Coco`."""
    vocabulary: Str = "spacy"
    """Rule by which captions become words, a key of :data:`training.data.tokenizer.RULES`."""
    tokenizer: Literal["words", "bpe", "unicode"] = "words"
    """``words``; ``unicode``: words by the rules of Unicode, in any script, in place of ``vocabulary``; or ``bpe``:
    pieces of words, learnt from the training split by byte-pair encoding."""
    vocabulary_size: NonNegativeInt = 0
    """Number of pieces of ``bpe``, special words included."""
    minimum_count: NonNegativeInt = 0
    """Words that occur less often in the training split are unknown; 0: the count of the rule."""
    required_words: Literal["", "detector"] = ""
    """Words that the vocabulary has however rare they are: ``detector``, those that people use for the classes of the
    captioner's detector; empty: none."""
    extend_vocabulary: Bool = False
    """With ``start_from``: the words of this data that the run's vocabulary lacks are appended to it."""
    bad_data: Literal["", "skip", "refuse"] = ""
    """``skip``: pictures are read before the first step, and what cannot be used is left out with a warning;
    ``refuse``: it is an error. Empty: ``skip`` for own data (``folder``, ``table``); of other data sets only the files
    are looked for, and one that is missing is an error."""
    max_words: PositiveInt | None = None
    """Maximum length of a caption in beam search, in words or pieces, including the end token. Not given: that of
    ``start_from``, else 20."""
    max_caption_words: NonNegativeInt = 0
    """Maximum length of a caption in training, in words, including the end token; 0: ``max_words``. A longer caption
    is cut and has no end token."""

    def __post_init__(self) -> None:
        if (self.tokenizer == "bpe") != bool(self.vocabulary_size):
            raise ValueError("tokenizer bpe and vocabulary_size go together; give both or none")
        for key in ("minimum_count", "required_words", "extend_vocabulary"):
            if self.tokenizer == "bpe" and getattr(self, key):
                raise ValueError(f"{key}: pieces of bpe make every word")

    @property
    def rule(self) -> str:
        """Rule by which captions become words."""
        return self.tokenizer if self.tokenizer == "unicode" else self.vocabulary


_FEATURE_KINDS = ("store", "hdf5", "tsv", "npz")
"""Formats of stored features; :class:`FeaturesConfig` has an option for each."""


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class FeaturesConfig:
    """Stored features in place of a backbone. Paths are below the data folder, or absolute.

    Features are used as they are stored: ``flip`` and ``crop`` of a phase have no effect.
    """

    store: Str = ""
    """Folder made by ``python -m training.features``. Beside one of the published formats: their conversion, which is
    read in their place."""
    hdf5: Str = ""
    """File of bottom-up features in the format of M2."""
    tsv: StrList = field(default_factory=list)
    """One or more files of bottom-up features in the format of Anderson et al."""
    npz: Str = ""
    """Folder with a file for each image."""
    width: PositiveInt = 2048
    """Width of a feature; not used for a store, which records it."""
    max_regions: NonNegativeInt = 0
    """Maximum number of regions of an image, the first in file order; 0: all. A store must have been converted with the
    same number."""
    image_sizes: StrList = field(default_factory=list)
    """Annotation files of COCO with the sizes of the images, for boxes in pixels in an ``hdf5`` or ``npz`` without
    ``image_w`` and ``image_h``, such as M2's published file."""

    def __post_init__(self) -> None:
        published = [kind for kind in self._given() if kind != "store"]
        if len(published) > 1:
            raise ValueError(f"give one of {', '.join(published)}, not several")
        if self.image_sizes and not (self.hdf5 or self.npz):
            raise ValueError("image_sizes is for hdf5 and npz; other formats have the sizes of their images")

    def __bool__(self) -> bool:
        return bool(self._given())

    @property
    def kind(self) -> str:
        """The kind that is read."""
        return self._given()[0]

    def paths(self, data: Path) -> list[Path]:
        """Paths of the kind that is given, below the data folder or absolute."""
        given = getattr(self, self.kind)
        return [data / path for path in ([given] if isinstance(given, str) else given)]

    def _given(self) -> list[str]:
        return [kind for kind in _FEATURE_KINDS if getattr(self, kind)]


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class OptimizerConfig:
    """The optimizer of a phase. The default is that of the paper (Sec. IV-C)."""

    name: Str = "adam"
    """A key of :data:`training.engine.optimizers.OPTIMIZERS`."""
    betas: list[Float] = field(default_factory=lambda: [0.9, 0.98])
    """Decay of the running means of the gradient and of its square; not for ``sgd``."""
    momentum: Share = 0.9
    """Used by ``sgd`` alone."""
    eps: NonNegativeFloat = 1e-9
    weight_decay: NonNegativeFloat = 0.0
    """Applied to matrices alone: biases, normalisations and embeddings do not decay."""

    def __post_init__(self) -> None:
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be two numbers of at least 0 and less than 1, not {self.betas}")


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class ClippingConfig:
    """Clipping of the gradient of each module (captioner, backbone) separately."""

    by: Literal["norm", "value", "none"] = "norm"
    """``norm``: the gradient is scaled down to the norm ``limit``; ``value``: every element is clamped to
    [-limit, limit]; ``none``."""
    limit: PositiveFloat = 5.0
    """Largest norm or absolute value."""


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class ScheduledSamplingConfig:
    """Schedule of the probability that cross-entropy replaces an input word by one that the captioner predicts there.

    In the epoch with n epochs of the phase before it, the probability is ``increase`` * floor((n - 1 - ``start``) /
    ``every``), between 0 and ``maximum``. ``maximum: 0.5`` with the defaults is X-LAN's published schedule.
    """

    maximum: Float = 0.0
    """Largest probability; 0: no sampling."""
    start: NonNegativeInt = 6
    every: PositiveInt = 5
    """Epochs from one increase to the next."""
    increase: NonNegativeFloat = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.maximum <= 1:
            raise ValueError(f"maximum must be at least 0 and at most 1, not {self.maximum}")


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class PhaseConfig:
    """A phase of training: a number of epochs with its own settings."""

    name: FileName
    epochs: PositiveInt
    learning_rate: NonNegativeFloat
    """Peak learning rate; ``schedule`` multiplies it. With ``noam`` 1.0 gives the rate of the paper."""
    schedule: Str = "cosine"
    """``cosine`` (warm-up, then half a cosine down to ``final_share``), ``linear``, ``exponential``, ``hold``, ``noam``
    or ``constant``: a key of :data:`training.engine.schedules.SCHEDULES`."""
    warmup_steps: NonNegativeInt = 0
    """Number of steps in which the learning rate rises linearly."""
    final_share: NonNegativeFloat = 0.02
    """Share of the learning rate at the end of any schedule but ``noam`` and ``constant``."""
    hold_steps: Int = 0
    """Step until which a ``hold`` keeps the peak learning rate."""
    decay_steps: Int = 0
    """Step at which a ``hold`` has reached ``final_share`` of it."""
    schedule_width: PositiveInt = 512
    """Model width in the formula of ``noam``."""
    stop_after: NonNegativeInt = 0
    """Number of epochs after which the phase ends, while its schedule is still that of ``epochs``; 0: ``epochs``."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    clipping: ClippingConfig = field(default_factory=ClippingConfig)
    images_per_batch: PositiveInt = 20
    """Images per step, over all processes; pairs with ``pairs``."""
    pairs: Bool = False
    """Train on pairs of an image and one of its captions in random order, as most published codes do, for which an
    image is encoded once for each caption. False: an image comes with all its captions, is encoded once for them, and
    shares a batch with images whose captions have as many words."""
    accumulate: PositiveInt = 1
    """Number of parts in which a process computes its images of a step in sequence: less memory, the same result."""
    flip: Bool = True
    """Mirror half of the images."""
    crop: PositiveShare = 1.0
    """Smallest share of each side that a random crop keeps; 1: the whole image."""
    degrade: Share = 0.0
    """Share of the views that are made worse as a robot's camera makes them: dark, tilted, blurred, noisy or
    compressed."""
    average: Share = 0.0
    """Decay per step of the moving average of the weights, e.g. 0.997; the average is then scored, saved and passed on
    to the next phase. 0: no average."""
    patience: NonNegativeInt = 0
    """Number of epochs without a better dev CIDEr after which the phase ends; 0: it never ends early."""
    from_best: Bool = False
    """Start from the best model of the previous phases by dev CIDEr, instead of the last one."""
    objective: Str = "cross_entropy"
    """A key of :data:`training.objectives.OBJECTIVES`."""
    backbone_learning_rate: NonNegativeFloat = 0.0
    """Peak learning rate of the backbone; 0 freezes it and, with a ``crop`` of 1, uses cached features."""
    backbone_layer_decay: PositiveShare = 1.0
    """Factor of the backbone's learning rate from one layer to the layer before it, e.g. 0.75 for a vision transformer;
    1: all layers learn at one rate."""
    backbone_coarse_only: Bool = False
    """Train only the layers of the backbone behind the feature map of stride 8: the early layers detect edges and
    textures, and take most of the time."""
    patch_dropout: Share = 0.0
    """Share of the visual tokens of an image that a step leaves out, in [0, 1): PatchDropout."""
    label_smoothing: Share = 0.0
    """Probability that cross-entropy distributes over all words, in [0, 1)."""
    scheduled_sampling: ScheduledSamplingConfig = field(default_factory=ScheduledSamplingConfig)
    beam_size: PositiveInt | None = None
    """Number of captions of an image in self-critical training, at least 2. Not given: the beams of the run's search,
    ``evaluation.beam_size``."""
    reward_end_token: Bool = True
    """Whether the reward counts the end token as a word, so that truncated captions are not rewarded; false in M2's
    code."""
    reward_documents: Literal["images", "captions"] = "images"
    """Documents of the reward's document frequencies: ``images``, or ``captions``, as in M2's code."""
    cider_btw_reward: NonNegativeFloat = 0.0
    """Share of the sampled caption's CIDErBtw that self-critical training subtracts from the reward; 0: none."""
    presence_weight: NonNegativeFloat = 0.0
    """Weight of the presence loss of things (:mod:`training.objectives.presence`) beside cross-entropy, for a captioner
    that predicts ``things`` and data with exhaustive lists; 0: none."""
    absent_penalty: NonNegativeFloat = 0.0
    """Self-critical training subtracts it from the reward for each thing that a caption names but neither the list nor
    the captions of the image do, and for each wrong colour: the image's captions give the thing another colour, or the
    colour to other things. Only for images with an exhaustive list; 0: nothing."""
    eight_bits: Bool = False
    """Compute the captioner's linear layers in 8 bits, with the arithmetic of a bundle of the precision int8
    (:mod:`training.models.eight_bits`), so that the model learns with it."""

    def __post_init__(self) -> None:
        if self.schedule == "noam" and self.warmup_steps < 1:
            raise ValueError("schedule noam needs warmup_steps (10000 in the paper)")
        if self.schedule == "hold" and not self.warmup_steps <= self.hold_steps < self.decay_steps:
            raise ValueError(
                "schedule hold needs warmup_steps <= hold_steps < decay_steps, "
                f"not {self.warmup_steps}, {self.hold_steps}, {self.decay_steps}"
            )
        if self.stop_after > self.epochs:
            raise ValueError(f"stop_after must be at most epochs, {self.epochs}, not {self.stop_after}")
        if self.scheduled_sampling.maximum and self.objective != "cross_entropy":
            raise ValueError(f"scheduled_sampling is a part of cross_entropy; {self.objective} has none")
        if self.cider_btw_reward and self.objective != "self_critical":
            raise ValueError(f"cider_btw_reward is for self_critical, {self.objective} has no reward")
        if self.pairs and self.objective == "self_critical":
            raise ValueError("pairs: self_critical has no use for human captions; leave it out")

    @property
    def has_fixed_views(self) -> bool:
        """Whether every photograph has two views at most, itself and its mirror image, so that features can be kept."""
        return self.crop == 1 and not self.degrade

    @property
    def last_epoch(self) -> int:
        """Number of epochs that are trained, if the phase does not end early."""
        return self.stop_after or self.epochs

    @property
    def trains_backbone(self) -> bool:
        """Whether the backbone learns."""
        return self.backbone_learning_rate > 0


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class EvaluationConfig:
    """Captions of the dev split after each epoch, and the search of the exported captioner.

    A setting of the search that is not given is that of ``start_from``; without one, that of
    :class:`smart_caption_ros.captioning.search.Search`.
    """

    beam_size: PositiveInt | None = None
    images_per_batch: PositiveInt = 200
    """Images that a process captions at a time; it does not change the scores."""
    subset: NonNegativeInt = 0
    """Number of dev images, drawn once with the seed, that are scored after an epoch; 0: all. The best epoch is one of
    those that are scored on the whole split: the last ones of a phase and, in a phase with ``patience``, those with the
    best score of the subset."""
    whole_split_in_last_epochs: PositiveInt = 1
    """Number of epochs at the end of a phase that are scored on the whole split."""
    repeat_penalty: NonNegativeFloat | None = None
    """Natural logarithm that the search subtracts for a content word that the caption has already; 0: nothing."""
    end_penalty: NonNegativeFloat | None = None
    """Natural logarithm that the search subtracts from the logit of the end token, so that captions become longer; 0:
    nothing."""
    length_penalty: Float | None = None
    """Captions are ranked by score / length ** length_penalty, which needs ``finished: apart``."""
    min_words: PositiveInt | None = None
    """Shortest caption in words, or pieces of words, end token included."""
    no_repeat_ngram: NonNegativeInt | None = None
    """n: no n words, or pieces of words, in a row occur twice in a caption; 0: any may."""
    finished: Finished | None = None
    """Where finished hypotheses are kept: in their beams (``in_beams``) or, as published captioners have it, ``apart``
    from the beams."""

    @property
    def search(self) -> dict[str, Any]:
        """The settings of the search that are given, by the names of
        :class:`smart_caption_ros.captioning.search.Search`."""
        return {field.name: getattr(self, field.name) for field in fields(Search) if hasattr(self, field.name)}


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class ExperimentConfig:
    """Training of a captioner."""

    name: FileName
    """Name of the run and of its folder."""
    phases: list[PhaseConfig]
    seed: NonNegativeInt = 1
    precision: Precision = "auto"
    """``fp32``, ``bf16``, ``fp16`` (autocast; the gradients of ``fp16`` are scaled), or ``auto``: the fastest one, see
    :mod:`training.engine.precision`."""
    compile: Bool = False
    """Compile encoding, teacher forcing and the steps of the search with torch.compile, which takes some minutes and
    makes them faster."""
    checkpoint_minutes: Float = 3.0
    """Least time between checkpoints; one is also written after every epoch."""
    log_every: PositiveInt = 10
    """Number of steps between readings of loss, reward and gradient norms, which wait for the device and the other
    processes. TensorBoard gets their means over these steps. A loss that is not finite ends the run at the next
    reading, and checkpoints within an epoch are written after a reading."""
    data: DataConfig = field(default_factory=DataConfig)
    backbone: Str = ""
    """File under ``backbones/`` of the data folder, ``efficientnet_lite1``, or, with a slash, a bundle's folder or the
    ``best.safetensors`` of a run, below the checkout or absolute: see
    :func:`training.vision.released_weights.locate`."""
    more_backbones: list[Str] = field(default_factory=list)
    """Further backbones side by side with ``backbone``; the captioner gets the tokens of all."""
    yolox: Str = ""
    """A YOLOX-nano side by side with the backbone, whose features and class scores are part of the visual tokens:
    ``yolox_nano.onnx``, the released file under ``detectors/`` of the data folder, or, with a slash, such a file below
    the checkout or absolute."""
    image_size: NonNegativeInt = 0
    """Width and height in pixels of the frames that the backbone takes, a multiple of its patches or of 32; 0: its own,
    224 for the networks of this project."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    """Stored features, in place of a backbone."""
    start_from: Str = ""
    """``best.safetensors`` of another run of the same family and size, below the checkout or absolute. The run starts
    with its vocabulary and with the weights of its captioner and backbone; the detector is the one that ``yolox``
    names."""
    family: Str = "smart"
    """A key of :data:`training.models.FAMILIES`."""
    model: dict[str, Any] = field(default_factory=dict)
    """Hyper-parameters of the family. With ``start_from`` they may be left out: they are those of that model."""
    word_vectors: Str = ""
    """GloVe text file, below the data folder or absolute, for a family with ``word_vector_width``, e.g.
    ``glove/glove.6B.300d.merged.txt``. Words without a vector are learnt."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        names = [phase.name for phase in self.phases]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"phases: two are named {repeated[0]!r}")
        if not self.phases:
            raise ValueError("phases: expected a list of phases, found none")
        if self.phases[0].from_best:
            raise ValueError("phases[0]: from_best: no phase comes before it")
        if self.data.extend_vocabulary and not self.start_from:
            raise ValueError("data: extend_vocabulary needs start_from, whose vocabulary it extends")
        if not self.start_from:
            self.search()  # checks the settings
        if bool(self.backbone) == bool(self.features):
            raise ValueError("give backbone or features, one of the two")
        if self.features:
            for index, phase in enumerate(self.phases):
                if phase.trains_backbone:
                    raise ValueError(f"phases[{index}]: backbone_learning_rate: features have no backbone")
            if self.yolox or self.more_backbones:
                raise ValueError(f"{'yolox' if self.yolox else 'more_backbones'}: features have no backbone")

    def search(self, start: Search | None = None) -> Search:
        """Return the settings of the search: those that are given, the others as in ``start``.

        Raises:
            ValueError: they do not go together.
        """
        return (start or Search()).changed(max_words=self.data.max_words, **self.evaluation.search)


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class AverageMemberConfig:
    """One model of an average: the weights of a run after an epoch."""

    run: Str
    phase: Str
    epoch: Int
    """Counted from 1, within the phase."""


@dataclass(frozen=True, config=FORBID_UNKNOWN_KEYS)
class RecipeConfig:
    """A file with several runs, trained one after the other, and the average of their weights."""

    name: FileName
    runs: list[dict[str, Any]]
    """Experiments. ``run:NAME`` as a path is the result of the run ``NAME`` of this file, which stands before it."""
    average: list[AverageMemberConfig] = field(default_factory=list)
    """Models whose weights are averaged; empty: the result is that of the last run."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs: expected a list of experiments, found none")
        if len(self.average) == 1:
            raise ValueError("average: expected two models or more, found one")
