"""Read published captioners from the folders of transformers as trained captioners of ours.

The words become a table of pieces (:mod:`export.import_checkpoint.tokenizer_files`), the decoder a captioner
(:mod:`export.import_checkpoint.text_decoders`), the vision model a backbone (:mod:`training.vision`), and the settings
of ``generate`` those of our search.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from export.import_checkpoint.model_folder import (
    CONFIG,
    GENERATION,
    find_model_folder,
    read_config,
    read_settings,
    read_weights,
)
from export.import_checkpoint.published import ImportCheckpointError, experiment_of
from export.import_checkpoint.text_decoders import (
    TextDecoder,
    architecture_of,
    read_text_decoder,
    special_ids,
    vocabulary_size,
)
from export.import_checkpoint.tokenizer_files import PublishedWords, published_words, read_tokenizer
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import BackboneError
from training.models.captioner import Captioner
from training.paths import data_folder
from training.vision.transformers_backbone import load_transformers


@dataclass(frozen=True)
class PublishedSearch:
    """The search that an architecture was published with, in the terms of transformers' ``generate``."""

    num_beams: int
    max_length: int
    """Begin token and prompt included."""
    min_length: int = 0
    length_penalty: float = 1.0
    max_new_tokens: int | None = None
    """Used instead of ``max_length`` if given."""
    no_repeat_ngram_size: int = 0
    early_stopping: bool = False
    prompt: str = ""
    """Words before a caption, or the question of a chat."""


PUBLISHED: Mapping[str, PublishedSearch] = {
    "git": PublishedSearch(4, 20, length_penalty=0.6),  # GIT, Sec. 3
    "blip": PublishedSearch(3, 20, 5, prompt="a picture of"),  # configs/caption_coco.yaml of BLIP's code
    "vision-encoder-decoder": PublishedSearch(4, 16),  # the model card of vit-gpt2-image-captioning
    "smolvlm": PublishedSearch(1, 0, max_new_tokens=40, prompt="Describe the image in one sentence."),
    "florence2": PublishedSearch(3, 32, no_repeat_ngram_size=3, early_stopping=True, prompt="<CAPTION>"),
}
"""By the name of the format; generation_config.json has precedence."""
TASKS = {
    "<CAPTION>": ("What does the image describe?", 32),
    "<DETAILED_CAPTION>": ("Describe in detail what is shown in the image.", 96),
    "<MORE_DETAILED_CAPTION>": ("Describe with a paragraph what is shown in the image.", 160),
}
"""The prompts of Florence-2: the question that its processor makes of each, and our ``max_length`` of the answer."""
_LEFT_OUT = ("repetition_penalty", "num_beam_groups", "do_sample")
"""Settings of ``generate`` that the search lacks: their name is printed, and the model is imported without them."""
_REFUSED = (
    "bad_words_ids", "begin_suppress_tokens", "exponential_decay_length_penalty", "force_words_ids",
    "forced_bos_token_id", "forced_decoder_ids", "forced_eos_token_id", "sequence_bias", "suppress_tokens",
)  # fmt: skip
"""Settings of ``generate`` that forbid, force or favour words, where config.json has them: older models."""
_HARMLESS = re.compile(
    r"_.*|transformers_version|use_cache|cache_.*|.*compile.*|output_.*|return_.*|num_return_sequences|low_memory|"
    r"temperature|top_.|typical_p|min_p|e.+_cutoff|prefill_chunk_size|remove_invalid_values"
)
"""Settings of ``generate`` without effect on the best caption of a beam search."""
_FOLLOWED = (
    "num_beams", "max_length", "max_new_tokens", "min_length", "min_new_tokens", "length_penalty", "early_stopping",
    "no_repeat_ngram_size", "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id",
)  # fmt: skip
_FORCED = ("forced_bos_token_id", "forced_eos_token_id")
"""Settings that are followed where captions answer one of :data:`TASKS`."""
_NEUTRAL_AT_1 = ("repetition_penalty", "encoder_repetition_penalty", "num_beam_groups", "guidance_scale")


@dataclass(frozen=True)
class SearchChoices:
    """What the user says about the search; None: as published."""

    beam_size: int | None = None
    max_words: int | None = None
    """Longest caption in pieces, without the prompt, end token included."""
    prompt: str | None = None
    first_sentence: bool = False
    """Whether a caption ends with its first sentence."""


def read_transformers_model(
    format_name: str, source: str, name: str | None, choices: SearchChoices
) -> TrainedCaptioner:
    """Read a model of a format in :data:`PUBLISHED`.

    Args:
        source: folder, or id in the local cache of the Hugging Face hub.
        name: of the model; None: the last part of ``source``.

    Raises:
        ImportCheckpointError: files are missing or malformed, or the model is of another kind.
        DataError: a file is not JSON.
    """
    folder = find_model_folder(source)
    config = read_config(folder)
    _check_architecture(folder, config, format_name)
    state = read_weights(folder)
    _check_values(folder, state)
    published = PUBLISHED[format_name]
    text = published.prompt if choices.prompt is None else choices.prompt
    is_task = published.prompt in TASKS
    generation = _generation(folder, config, _FORCED if is_task else ())
    frame = special_ids(config, generation)
    words = published_words(read_tokenizer(folder), vocabulary_size(config), *frame)
    question, before_image, prompt, forced = list[int](), list[int](), list[int](), list[int]()
    if is_task:
        question = _question(folder, words, text)
        forced = words.encode(_forced(folder, generation, words.order, frame.end))
        prompt = [words.vocabulary.begin_id, *forced]
        published = replace(published, max_length=TASKS[text][1])
    elif architecture_of(config).is_chat:
        before_image, prompt = _chat(folder, words, text, config["image_token_id"])
    else:
        prompt = _prompt(folder, words, text)
    made = read_text_decoder(config, state, words.order, prompt, before_image, question)
    try:
        backbone = load_transformers(str(folder.resolve()), data_folder() / "backbones")
    except BackboneError as error:
        raise ImportCheckpointError(str(error)) from None
    before = len(before_image) + max(len(prompt), 1) + (backbone.spec.tokens if before_image else 0)
    search = _search(published, generation, before, made.captioner, made.forbidden, tuple(forced), choices.beam_size)
    record = _record(name or Path(source).name, made)
    trained = TrainedCaptioner(made.family, made.captioner, backbone, words.vocabulary, record, search)
    trained.change_search(
        max_words=choices.max_words, end_words=_sentence_ends(words.vocabulary) if choices.first_sentence else None
    )
    return trained


def _check_architecture(folder: Path, config: Mapping[str, Any], format_name: str) -> None:
    try:
        right = architecture_of(config).format
    except ImportCheckpointError as error:
        raise ImportCheckpointError(f"{folder}: {error}") from None
    if (config.get("vision_config") or {}).get("model_type") == "davit":
        raise ImportCheckpointError(
            f"{folder} is in the layout of Microsoft's own code; take the same weights in that of transformers: "
            "florence-community/Florence-2-base"
        )
    if right != format_name:
        named = config["architectures"][0]
        raise ImportCheckpointError(f"{folder} holds a {named}; import it as {right}, not as {format_name}")


def _check_values(folder: Path, state: Mapping[str, Tensor]) -> None:
    for name, tensor in state.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ImportCheckpointError(
                f"{folder}: {name} has values that are infinite or no numbers; copy the weights again, or take those "
                "in float32: a model that was saved in float16 may have overflowed"
            )


def _prompt(folder: Path, words: PublishedWords, text: str) -> list[int]:
    """Return our ids of a prompt, the begin token first; empty without one.

    Raises:
        ImportCheckpointError: the tokeniser has no pieces for it.
    """
    if not text.strip():
        return []
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    pieces = tokenizer.encode(text.strip(), add_special_tokens=False)
    if not pieces or tokenizer.unk_token_id in pieces:
        raise ImportCheckpointError(
            f"{folder}: its tokeniser has no pieces for the prompt {text.strip()!r}; give another with --prompt, or "
            "none with --prompt ''"
        )
    return [words.vocabulary.begin_id, *words.encode(pieces)]


def _chat(folder: Path, words: PublishedWords, question: str, image: int) -> tuple[list[int], list[int]]:
    """Return our ids of the words before the image of a chat, and of those after it, which a caption answers.

    Raises:
        ImportCheckpointError: the folder has no chat template, or one without a place for an image.
    """
    from jinja2 import TemplateError
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    given = read_settings(folder, "chat_template.json").get("chat_template") or tokenizer.chat_template
    if not given:
        raise ImportCheckpointError(f"{folder} has no chat template; copy chat_template.json beside config.json")
    content = [{"type": "image"}, {"type": "text", "text": question.strip()}]
    chat: Any = [{"role": "user", "content": content}]
    try:
        text = str(tokenizer.apply_chat_template(chat, chat_template=given, tokenize=False, add_generation_prompt=True))
    except (TemplateError, ValueError) as error:
        raise ImportCheckpointError(f"{folder}: its chat template fails ({error}); copy it again") from None
    # One frame, without tiles, as the processor of Idefics3 writes it.
    ids = tokenizer.encode(
        text.replace("<image>", "<fake_token_around_image><global-img><image><fake_token_around_image>")
    )
    if ids.count(image) != 1:
        raise ImportCheckpointError(f"{folder}: its chat template has {ids.count(image)} places for an image, not one")
    return words.encode(ids[: ids.index(image)]), words.encode(ids[ids.index(image) + 1 :])


def _question(folder: Path, words: PublishedWords, task: str) -> list[int]:
    """Return our ids of the question that the encoder of Florence-2 reads with the image.

    Raises:
        ImportCheckpointError: the task is unknown.
    """
    if task not in TASKS:
        raise ImportCheckpointError(f"{folder}: --prompt must be one of {', '.join(TASKS)}, not {task!r}")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    question = f"{tokenizer.bos_token}{TASKS[task][0]}{tokenizer.eos_token}"
    return words.encode(tokenizer.encode(question, add_special_tokens=False))


def _forced(folder: Path, generation: Mapping[str, Any], known: Sequence[int], end: int) -> list[int]:
    """Return the published ids that ``generate`` is forced to begin with.

    Raises:
        ImportCheckpointError: it is forced to begin with an unknown token, or to end with another than the end token.
    """
    for key, allowed in zip(_FORCED, (known, (end,)), strict=True):
        if key in generation and generation[key] not in allowed:
            raise ImportCheckpointError(f"{folder / GENERATION} has {key} {generation[key]}, which no search follows")
    return [generation[key] for key in _FORCED[:1] if key in generation]


def _generation(folder: Path, config: Mapping[str, Any], forced: Collection[str]) -> dict[str, Any]:
    """Read the settings of ``generate`` that the search follows, ``forced`` among them.

    Raises:
        ImportCheckpointError: a setting changes the words, and the search cannot follow it.
    """
    found = {key: value for key, value in read_settings(folder, GENERATION).items() if value is not None}
    older, followed = {**(config.get("decoder") or {}), **config}, {*_FOLLOWED, *forced}
    given = {**{key: older[key] for key in _REFUSED if key in older}, **found}
    for key, value in given.items():
        if key in followed or _HARMLESS.fullmatch(key) or (key in _NEUTRAL_AT_1 and value == 1):
            continue
        if value is None or (not value and not key.endswith("_token_id")):
            continue
        if key not in _LEFT_OUT:
            raise ImportCheckpointError(
                f"{folder / GENERATION if key in found else folder / CONFIG} has {key} {value}, which the search of a "
                "bundle lacks and which may change every caption; remove the setting to import the model without it"
            )
        print(f"note: {GENERATION} has {key} {value}, which the search of a bundle lacks; it is left out")
    return found


def _search(
    published: PublishedSearch,
    generation: Mapping[str, Any],
    before: int,
    captioner: Captioner,
    forbidden: tuple[int, ...],
    forced: tuple[int, ...],
    beams: int | None,
) -> Search:
    """Translate the settings of ``generate``. Its lengths count the ``before`` words of begin token and prompt, and its
    numbers of new words the ``forced`` ones among them; ``beams`` replaces the published number of beams.
    """
    found = {key: generation.get(key, value) for key, value in asdict(published).items() if key != "prompt"}
    if generation.get("early_stopping") == "never" and found["length_penalty"] > 0:
        print(f"note: {GENERATION} has early_stopping never, which the search of a bundle lacks; it is taken as false")
    by_length = "max_length" in generation and "max_new_tokens" not in generation
    new_words, forced_end = found["max_new_tokens"], "forced_eos_token_id" in generation
    longest = found["max_length"] - before if by_length or not new_words else new_words - len(forced)
    longest -= forced_end
    if captioner.max_words is not None:
        longest = min(longest, captioner.max_words)
    shortest = generation.get("min_new_tokens", found["min_length"] - before + len(forced)) - len(forced)
    beams = beams or int(found["num_beams"])
    greedy = beams == 1
    try:
        return Search(
            beam_size=beams,
            max_words=int(longest),
            forbidden=forbidden,
            min_words=max(1, int(shortest) + 1),
            length_penalty=0.0 if greedy else float(found["length_penalty"]),
            no_repeat_ngram=int(found["no_repeat_ngram_size"]),
            forced_begin=forced,
            forced_end=forced_end,
            finished="in_beams" if greedy else "apart_until_k" if found["early_stopping"] is True else "apart",
        )
    except (TypeError, ValueError) as error:
        raise ImportCheckpointError(f"{GENERATION}: {error}") from None


def _sentence_ends(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Return the ids of the marks that end sentences."""
    marks = (["."], ["!"], ["?"])
    return tuple(index for index in range(len(SPECIAL), len(vocabulary)) if vocabulary.decode([index]) in marks)


def _record(name: str, made: TextDecoder) -> dict[str, Any]:
    terms = {
        "name": f"the photographs and captions of {name}, see its model card",
        "terms": "the licence of its weights",
    }
    return {
        "name": name,
        "backbone_trained_on": [terms],
        "experiment": experiment_of(
            name,
            made.family,
            made.captioner.config,
            {"dataset": "coco", "options": {"karpathy": "dataset_coco.json"}},
        ),
    }
