"""Prepare the training of a captioner: captions, vocabulary, model and visual inputs."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.configs.schema import DataConfig, ExperimentConfig
from training.data.byte_pairs import BytePairs
from training.data.captions import Captions, count_words, tokenize_captions
from training.data.datasets import TRAINED_ON, merge_provenance, open_dataset, provenance
from training.data.tokenizer import RULES, build_vocabulary, script_of
from training.data.visual_inputs import VisualInputs, open_visual_inputs
from training.data.vocabulary_words import DETECTOR, read_vectors, words_of_detector
from training.engine.bundle_captioner import load_trained
from training.engine.trained_captioner import MERGES, UNTRAINED, TrainedCaptioner
from training.engine.untrained_words import untrained_words
from training.errors import ConfigError, DataError
from training.models import FAMILIES
from training.models.captioner import Captioner
from training.objectives.objective import TrainingCaptions
from training.paths import CHECKOUT


@dataclass
class TaskSetup:
    """Data and model at the beginning of a captioner's training."""

    images: Mapping[str, Sequence[str]]
    """Image ids of the splits ``train`` and ``dev``."""
    references: Mapping[str, Sequence[str]]
    """Captions of the dev images, as words joined by spaces."""
    sources: Mapping[str, str]
    """Source of each training image in a mixture of data sets."""
    captions: TrainingCaptions
    """Captions of the training images."""
    inputs: VisualInputs
    """Visual tokens of both splits."""
    trained: TrainedCaptioner
    """Backbone, vocabulary and the captioner's first weights."""
    facts: str
    """A sentence on pictures, captions and vocabulary."""


def set_up_task(config: ExperimentConfig, data: Path, cache: Path, left_out: Collection[str] = ()) -> TaskSetup:
    """Read the data of an experiment and build its model.

    Args:
        cache: folder for grid features, shared between runs.
        left_out: image ids that cannot be used.

    Raises:
        ConfigError: the model's hyper-parameters are wrong, or ``start_from`` is a different model.
        DataError, BackboneError, CheckpointError: data or weights are missing or malformed.
    """
    torch.manual_seed(config.seed)
    dataset = open_dataset(config.data, data)
    images = {split: [name for name in dataset.split(split) if name not in left_out] for split in ("train", "dev")}
    for split, left in images.items():
        if not left:
            raise DataError(f"data: no picture of the {split} split can be used")
    words = {
        image: tokenize_captions(dataset.captions[image], config.data.rule)
        for image in dict.fromkeys(chain.from_iterable(images.values()))  # an image of a mixture may be repeated
    }
    _check_words(words, dataset.captions)
    initial = load_trained(CHECKOUT / config.start_from) if config.start_from else None
    train_words: Captions = [words[image] for image in images["train"]]
    try:
        search = config.search(None if initial is None else initial.search)
    except ValueError as error:
        raise ConfigError(f"evaluation: {error}") from None
    vocabulary, pairs = _vocabulary(config.data, train_words, initial)
    _check_vocabulary_and_beams(vocabulary, config, search)
    train_words = train_words if pairs is None else pairs.split(train_words)
    captions = TrainingCaptions(
        train_words,
        vocabulary,
        search.max_words,
        config.data.max_caption_words or search.max_words,
        dataset.caption_weights(images["train"]),
        search=search,
        things=[dataset.things.get(image) for image in images["train"]] if dataset.things else (),
    )
    inputs = open_visual_inputs(config, data, dataset, images, cache)
    captioner = _build_captioner(config, _model_options(config, initial), vocabulary, inputs.token_width)
    for key, length in {"max_words": search.max_words, "max_caption_words": config.data.max_caption_words}.items():
        if captioner.max_words is not None and length > captioner.max_words:
            raise ConfigError(f"data: {key} is {length}, but the captioner decodes at most {captioner.max_words} words")
    _check_things(config, captions, captioner)
    record = {
        "name": config.name,
        TRAINED_ON: provenance(config.data),
        **inputs.facts,
        "experiment": asdict(config),
    }
    if pairs is not None and pairs.merges is not None:
        record[MERGES] = pairs.merges
    if config.word_vectors:
        record["word_vectors"] = _set_word_vectors(captioner, vocabulary, data / config.word_vectors)
    if pairs is None and (untrained := untrained_words(vocabulary, count_words(train_words))):
        trained_before = (
            () if initial is None else set(initial.vocabulary.words) - set(initial.record.get(UNTRAINED, []))
        )
        record[UNTRAINED] = [word for word in untrained if word not in trained_before]
    trained = TrainedCaptioner(config.family, captioner, inputs.backbone, vocabulary, record, search)
    if initial is not None:
        _start_from(initial, trained, config.start_from)
    references = {image: [" ".join(caption) for caption in words[image]] for image in images["dev"]}
    facts = _facts(images, words, vocabulary)
    sources = {image: dataset.source_of(image) for image in images["train"]}
    return TaskSetup(images, references, sources, captions, inputs, trained, facts)


def _check_things(config: ExperimentConfig, captions: TrainingCaptions, captioner: Captioner) -> None:
    """Refuse options of lists of things in phases where they would change nothing."""
    for phase in config.phases:
        where = f"phase {phase.name}: {{}}, on data with lists of things, such as looked_at"
        scored = phase.objective == "self_critical" and captions.things
        if phase.absent_penalty and not scored:
            raise ConfigError(where.format("absent_penalty is for self_critical"))
        predicted = phase.objective == "cross_entropy" and captions.things and captioner.thing_count
        if phase.presence_weight and not predicted:
            raise ConfigError(where.format("presence_weight is for cross_entropy, of a model with things"))


def _check_words(words: Mapping[str, list[list[str]]], written: Mapping[str, Sequence[str]]) -> None:
    """Check that every caption has a word."""
    empty = [(image, place) for image, own in words.items() for place, caption in enumerate(own) if not caption]
    if empty:
        image, place = empty[0]
        raise DataError(
            f"{len(empty)} captions have no letter or digit, for example {written[image][place]!r} of image {image}; "
            "correct or remove them"
        )


def _facts(images: Mapping[str, Sequence[str]], words: Mapping[str, list[list[str]]], vocabulary: Vocabulary) -> str:
    """Describe the data: pictures, the captions of each (``words``), and the vocabulary."""
    counts = count_words([words[image] for image in dict.fromkeys(images["train"])])
    known = set(vocabulary.words)
    longest = max(map(len, chain.from_iterable(words.values())))
    sentence = (
        f"data: {len(set(images['train']))} training and {len(images['dev'])} dev pictures; vocabulary of "
        f"{len(vocabulary)} {'pieces' if vocabulary.continuation else 'words'}; longest caption {longest} words"
    )
    if not vocabulary.continuation:
        unknown = sum(count for word, count in counts.items() if word not in known)
        sentence += f"; {100 * unknown / counts.total():.1f} % of the words of the training captions are unknown"
    scripts = Counter(script for word in counts if (script := script_of(word)) != "latin")
    if scripts:
        named = ", ".join(f"{count} {script}" for script, count in scripts.most_common())
        sentence += f"; words of other scripts: {named}"
    return sentence


def _check_vocabulary_and_beams(vocabulary: Vocabulary, config: ExperimentConfig, search: Search) -> None:
    """Check that the vocabulary has words, and enough of them for the beams of every search of the run.

    Self-critical training needs two beams: the mean of their rewards is the baseline, so one alone has no gradient.
    """
    if len(vocabulary) == len(SPECIAL):
        raise ConfigError(
            "data: no word of the training captions is in the vocabulary; lower data.minimum_count or check them"
        )
    for phase in config.phases:
        beams = phase.beam_size or search.beam_size
        if phase.objective == "self_critical" and beams < 2:
            raise ConfigError(f"phase {phase.name}: beam_size must be at least 2 for self_critical, not {beams}")
    beams = max([search.beam_size, *(phase.beam_size or 0 for phase in config.phases)])
    if beams > len(vocabulary):
        raise ConfigError(
            f"beam_size is {beams}, but the vocabulary of the training captions has only {len(vocabulary)} words; "
            "use fewer beams"
        )


def _vocabulary(
    config: DataConfig, captions: Captions, initial: TrainedCaptioner | None
) -> tuple[Vocabulary, BytePairs | None]:
    """Return the vocabulary, and how words become pieces, if so.

    The vocabulary is that of the model to start from, if there is one, with the words of these captions after its own
    if the experiment extends it.
    """
    if initial is not None and not config.extend_vocabulary:
        pieces = bool(initial.vocabulary.continuation)
        return initial.vocabulary, BytePairs(initial.vocabulary, initial.record.get(MERGES)) if pieces else None
    if config.tokenizer == "bpe":
        pairs = BytePairs.learn(count_words(captions), config.vocabulary_size)
        return pairs.vocabulary, pairs
    minimum_count = config.minimum_count or RULES[config.rule].minimum_count
    required = words_of_detector() if config.required_words == DETECTOR else ()
    vocabulary = build_vocabulary(count_words(captions), minimum_count, required)
    if initial is None:
        return vocabulary, None
    if initial.vocabulary.continuation:
        raise ConfigError("extend_vocabulary: the vocabulary of start_from has pieces of words, which make every word")
    known = set(initial.vocabulary.words)
    return Vocabulary((*initial.vocabulary.words, *(word for word in vocabulary.words if word not in known))), None


def _model_options(config: ExperimentConfig, initial: TrainedCaptioner | None) -> dict[str, Any]:
    """Return the hyper-parameters of the experiment; if it has none, those of the model that it starts from."""
    if config.model or initial is None or initial.family != config.family:
        return config.model
    by_data = ("vocabulary_size", "token_width")
    return {name: value for name, value in asdict(initial.captioner.config).items() if name not in by_data}


def _build_captioner(
    config: ExperimentConfig, options: dict[str, Any], vocabulary: Vocabulary, token_width: int
) -> Captioner:
    family = FAMILIES[config.family]
    try:
        model = family.Config(vocabulary_size=len(vocabulary), token_width=token_width, **options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"model: {error}") from None
    return family(model)


def _set_word_vectors(captioner: Captioner, vocabulary: Vocabulary, path: Path) -> dict[str, Any]:
    """Give the captioner the vectors of a file, and say which words have none."""
    if vocabulary.continuation:
        raise ConfigError("word_vectors: pieces of words have no vectors; set data: tokenizer to words")
    vectors, known = read_vectors(path, vocabulary.words)
    width = vectors.shape[1]
    if captioner.word_vector_width != width:
        raise ConfigError(
            f"word_vectors: {path} has vectors of width {width}; set word_vector_width of a model that takes them "
            f"(family m2) to it, not {captioner.word_vector_width}"
        )
    captioner.set_word_vectors(vectors, known)
    learnt = [word for word, has_vector in zip(vocabulary.words, known.tolist(), strict=True) if not has_vector]
    return {"file": path.name, "words": len(vocabulary), "learnt": learnt}


def _start_from(initial: TrainedCaptioner, trained: TrainedCaptioner, path: str) -> None:
    """Copy the weights of a finished run, except those of its detector: the experiment names its own.

    Options without weights, such as ``dropout``, may differ.
    """
    if initial.family != trained.family:
        raise ConfigError(f"start_from: {path} is a captioner of the family {initial.family}, not {trained.family}")
    weights = _with_new_words(initial.captioner, len(trained.vocabulary))
    _check_shapes(weights, trained.captioner.state_dict(), path)
    if initial.backbone_options != trained.backbone_options:
        raise ConfigError(
            f"start_from: {path} has its visual tokens from something else (backbone, more_backbones, yolox, features)"
        )
    trained.captioner.load_state_dict(weights)
    if initial.backbone is not None and trained.backbone is not None:
        trained.backbone.trainable.load_state_dict(initial.backbone.trainable.state_dict())
        trained.record["backbone_trained_on"] = merge_provenance(
            trained.record["backbone_trained_on"], initial.caption_provenance, initial.record["backbone_trained_on"]
        )


def _with_new_words(captioner: Captioner, words: int) -> dict[str, Tensor]:
    """Return the tensors of a captioner with rows of new words, so that the vocabulary has ``words``.

    A new word has the mean of the rows of all others: it is no likelier than they are until it has been learned
    (Hewitt, 2021, Initializing New Word Embeddings for Pretrained Language Models). It has no pretrained vector.
    """
    weights = dict(captioner.named_parameters())
    tensors: dict[str, Tensor] = captioner.state_dict()
    for name, rows in captioner.word_tables().items():
        row = rows.mean(dim=0, keepdim=True) if name in weights else torch.zeros_like(rows[:1])
        tensors[name] = torch.cat([rows, row.expand(words - len(rows), *rows.shape[1:])])
    return tensors


def _check_shapes(initial: Mapping[str, Tensor], captioner: Mapping[str, Tensor], path: str) -> None:
    """Refuse weights of another size, naming the first tensor that differs."""
    found = {name: tuple(tensor.shape) for name, tensor in initial.items()}
    wanted = {name: tuple(tensor.shape) for name, tensor in captioner.items()}
    for name in {**wanted, **found}:
        if found.get(name) != wanted.get(name):
            there, here = (str(shapes.get(name, "absent")) for shapes in (found, wanted))
            raise ConfigError(
                f"start_from: {path} has a captioner of another size: {name} is {there}, this experiment's is {here}"
            )
