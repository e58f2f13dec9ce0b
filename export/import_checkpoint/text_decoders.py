"""The decoders of GIT, BLIP and vision-encoder-decoder models of transformers, as captioners of our families.

``read_text_decoder(config, state, order, prompt)`` takes the content of config.json and the tensors of a model that
transformers saved, ``GitForCausalLM``, ``BlipForConditionalGeneration`` or ``VisionEncoderDecoderModel`` with GPT-2 or
BERT, and returns a :class:`TextDecoder`: the family, the captioner with the published weights, the prefix of the
vision model's tensors, and the words that the search must not choose. ``special_ids(config)`` says with which words
captions begin and end.

Both word tables are compared: a projection that equals the embeddings, or is left out as a copy of them, is tied.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from export.import_checkpoint.published import ImportCheckpointError, Source, affine, load_published
from training.models import FAMILIES
from training.models.captioner import Captioner


class SpecialIds(NamedTuple):
    """Published ids of the words that frame a caption."""

    padding: int
    begin: int
    end: int


class TextDecoder(NamedTuple):
    """A published decoder as a captioner of ours."""

    family: str
    """A key of :data:`training.models.FAMILIES`."""
    captioner: Captioner
    vision_prefix: str
    """Beginning of the names of the vision model's tensors."""
    forbidden: tuple[int, ...]
    """Our ids of special words that repeat another word, and whose probability would count twice."""


class Architecture(NamedTuple):
    """How an architecture of transformers is read."""

    model_type: str
    """Its name in config.json and in transformers."""
    family: str
    """A key of :data:`training.models.FAMILIES`."""
    vision_prefix: str
    sources: Callable[[Any], Iterator[Source]]
    """Where our parameters are from, except the word tables; takes the configuration of transformers."""
    options: Callable[[Any], dict[str, Any]]
    """Hyper-parameters of our family that only this architecture has, from the configuration of transformers."""


def read_text_decoder(
    config: Mapping[str, Any], state: Mapping[str, Tensor], order: Sequence[int] | Tensor, prompt: Sequence[int] = ()
) -> TextDecoder:
    """Build the captioner of a published model and load the published values.

    Args:
        config: content of config.json.
        state: tensors by their published names, in any float type.
        order: published id of each word of our vocabulary, which begins with padding, begin, end and unknown; an id
            may stand for several of them.
        prompt: our ids of the words before every caption, the begin token first; empty: the begin token alone.

    Raises:
        ImportCheckpointError: the architecture is unknown or differs from the published one in what it computes, or a
            parameter is missing, unknown or of another shape; names the first.
    """
    full = _with_defaults(config)
    architecture = ARCHITECTURES[config["architectures"][0]]
    text, names = _text_config(full), _WORD_TABLES[_text_config(full).model_type]
    rows = torch.as_tensor(order)
    if int(rows.max()) >= text.vocab_size:
        raise ImportCheckpointError(f"the vocabulary has the id {int(rows.max())}, config.json {text.vocab_size} words")
    words, projection = _word_tables(state, names, text.tie_word_embeddings)
    vision = full.encoder if architecture.family == "vision_encoder_decoder" else full.vision_config
    options = {
        "d_model": text.hidden_size,
        "heads": text.num_attention_heads,
        "layers": text.num_hidden_layers,
        "max_length": text.max_position_embeddings,
        "tied": projection is None,
        "prompt": list(prompt),
        **(_gpt2_options(text) if text.model_type == "gpt2" else _bert_options(text)),
        **architecture.options(full),
    }
    family = FAMILIES[architecture.family]
    try:
        with torch.device("meta"):  # its weights are the published tensors
            captioner = family(family.Config(len(rows), vision.hidden_size, **options)).eval()
    except ValueError as error:
        raise ImportCheckpointError(f"config.json: {error}") from None
    tables = [("word_projection.weight", projection or words)]
    if projection is not None:
        tables.append(("word_embedding.weight", words))
    if names.bias:
        tables.append(("word_projection.bias", next((name for name in names.bias if name in state), names.bias[0])))
    sources = [
        *architecture.sources(full),
        *(Source(ours, theirs, lambda table: table[rows]) for ours, theirs in tables),
    ]
    ignored = {names.embedding, names.projection, *names.bias}
    ignored |= {name for name in state if name.startswith(architecture.vision_prefix) or name.endswith(_IGNORED)}
    load_published(captioner, sources, state, "a model of this config.json", ignored)
    padding, begin, end, unknown = rows[:4].tolist()
    repeats = (padding == end, begin in (padding, end), False, unknown in (padding, begin, end))
    forbidden = tuple(place for place, repeated in enumerate(repeats) if repeated)
    return TextDecoder(architecture.family, captioner, architecture.vision_prefix, forbidden)


def special_ids(config: Mapping[str, Any], generation: Mapping[str, Any] = MappingProxyType({})) -> SpecialIds:
    """Return the words that frame a caption.

    Args:
        config: content of config.json.
        generation: that of generation_config.json, which has precedence.

    Raises:
        ImportCheckpointError: the architecture is unknown, or the files do not say one word for each.
    """
    full = _with_defaults(config)
    text = _text_config(full)
    if full.model_type == "blip":  # its captions end with BERT's separator, whatever eos_token_id says
        found = {"bos_token_id": text.bos_token_id, "eos_token_id": text.sep_token_id}
    else:
        begins = [
            generation.get("decoder_start_token_id"), getattr(full, "decoder_start_token_id", None),
            generation.get("bos_token_id"), text.bos_token_id,
        ]  # fmt: skip
        found = {
            "bos_token_id": next((begin for begin in begins if begin is not None), None),
            "eos_token_id": generation.get("eos_token_id", text.eos_token_id),
        }
    found["pad_token_id"] = found["eos_token_id"] if text.pad_token_id is None else text.pad_token_id
    for key, value in found.items():
        if isinstance(value, list) and len(value) == 1:
            (found[key],) = value
        elif not isinstance(value, int):
            raise ImportCheckpointError(f"config.json or generation_config.json must name one {key}, not {value}")
    return SpecialIds(found["pad_token_id"], found["bos_token_id"], found["eos_token_id"])


def vocabulary_size(config: Mapping[str, Any]) -> int:
    """Return the number of words of the decoder's tables.

    Raises:
        ImportCheckpointError: the architecture is unknown.
    """
    return int(_text_config(_with_defaults(config)).vocab_size)


def _with_defaults(config: Mapping[str, Any]) -> Any:
    """Read config.json as transformers does, which fills in what the file leaves out."""
    from transformers import AutoConfig  # imported here: it takes seconds

    named = (config.get("architectures") or ["none"])[0]
    if named not in ARCHITECTURES:
        raise ImportCheckpointError(
            f"config.json: the architecture is {named}; known are {', '.join(ARCHITECTURES)}. Another captioner needs "
            "a family of its own, see docs/families.md"
        )
    full = AutoConfig.for_model(**{**config, "model_type": ARCHITECTURES[named].model_type})
    text = _text_config(full)
    if text.model_type not in _WORD_TABLES:
        raise ImportCheckpointError(f"config.json: the decoder is {text.model_type}; known are gpt2 and bert")
    for option, expected in _EXPECTED.items():
        if getattr(text, option, expected) != expected:
            raise ImportCheckpointError(
                f"config.json: {option} is {getattr(text, option)}; decoders with {expected} alone can be imported"
            )
    return full


_EXPECTED = {
    "position_embedding_type": "absolute",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "cross_attention_hidden_size": None,
}
"""Options of decoders that change what they compute, with the values that the families have."""


def _text_config(full: Any) -> Any:
    """Return the configuration of the decoder."""
    if full.model_type == "vision-encoder-decoder":
        return full.decoder
    return full.text_config if full.model_type == "blip" else full


class _WordTables(NamedTuple):
    """Published names of what has a row for each word."""

    embedding: str
    projection: str
    bias: tuple[str, ...] = ()
    """Two names of the same values; a file may have one or both."""


def _bert_tables(prefix: str) -> _WordTables:
    head = f"{prefix}.cls.predictions"
    return _WordTables(
        f"{prefix}.bert.embeddings.word_embeddings.weight",
        f"{head}.decoder.weight",
        (f"{head}.decoder.bias", f"{head}.bias"),
    )


_WORD_TABLES = {
    "git": _WordTables("git.embeddings.word_embeddings.weight", "output.weight", ("output.bias",)),
    "blip_text_model": _bert_tables("text_decoder"),
    "bert": _bert_tables("decoder"),
    "gpt2": _WordTables("decoder.transformer.wte.weight", "decoder.lm_head.weight"),
}
"""By the decoder's ``model_type``."""


def _word_tables(state: Mapping[str, Tensor], names: _WordTables, may_be_tied: bool) -> tuple[str, str | None]:
    """Return the names of the embeddings and of the projection, None where it is the embeddings."""
    found = [name for name in (names.embedding, names.projection) if name in state]
    if len(found) == 1 and may_be_tied:  # a file has a shared table once, by either name
        return found[0], None
    if len(found) == 2 and torch.equal(state[found[0]], state[found[1]]):
        return names.embedding, None
    return names.embedding, names.projection


def _bert_options(text: Any) -> dict[str, Any]:
    return {
        "d_ff": text.intermediate_size,
        "dropout": text.hidden_dropout_prob,
        "activation": text.hidden_act,
        "epsilon": text.layer_norm_eps,
    }


def _gpt2_options(text: Any) -> dict[str, Any]:
    return {
        "d_ff": text.n_inner or 4 * text.n_embd,
        "dropout": text.resid_pdrop,
        "activation": text.activation_function,
        "epsilon": text.layer_norm_epsilon,
    }


def _git_sources(full: Any) -> Iterator[Source]:
    for layer in range(2):
        yield from affine(f"git.visual_projection.visual_projection.{layer}", f"token_projection.{layer}")
    yield from _bert_sources("git", full.num_hidden_layers, cross=False)


def _blip_sources(full: Any) -> Iterator[Source]:
    yield from _bert_sources("text_decoder.bert", full.text_config.num_hidden_layers)
    yield from _transform_sources("text_decoder")


def _vision_encoder_decoder_sources(full: Any) -> Iterator[Source]:
    layers = full.decoder.num_hidden_layers
    if _projects(full):
        yield from affine("enc_to_dec_proj", "token_projection")
    if full.decoder.model_type == "gpt2":
        yield from _gpt2_sources("decoder.transformer", layers)
    else:
        yield from _bert_sources("decoder.bert", layers, "decoder.bert.embeddings.token_type_embeddings.weight")
        yield from _transform_sources("decoder")


def _projects(full: Any) -> bool:
    """Whether a linear layer brings the tokens to the decoder's width."""
    return bool(full.encoder.hidden_size != full.decoder.hidden_size)


ARCHITECTURES = {
    "GitForCausalLM": Architecture(
        "git",
        "git",
        "git.image_encoder.",
        _git_sources,
        lambda full: {"token_epsilon": full.vision_config.layer_norm_eps},
    ),
    "BlipForConditionalGeneration": Architecture("blip", "blip", "vision_model.", _blip_sources, lambda full: {}),
    "VisionEncoderDecoderModel": Architecture(
        "vision-encoder-decoder",
        "vision_encoder_decoder",
        "encoder.",
        _vision_encoder_decoder_sources,
        lambda full: {"decoder": full.decoder.model_type, "project_tokens": _projects(full)},
    ),
}
"""The architectures by the names of config.json."""


def _bert_sources(prefix: str, layers: int, types: str = "", *, cross: bool = True) -> Iterator[Source]:
    """Map embeddings and layers; ``types`` names the table of token types, if there is one."""
    embeddings = f"{prefix}.embeddings"
    yield Source("position_embedding.weight", f"{embeddings}.position_embeddings.weight", addend=types)
    yield from affine(f"{embeddings}.LayerNorm", "embedding_norm")
    for layer in range(layers):
        ours, theirs = f"layers.{layer}", f"{prefix}.encoder.layer.{layer}"
        attentions = {"self": "attention", "cross": "crossattention"} if cross else {"self": "attention"}
        for kind, their_attention in attentions.items():
            for name in ("query", "key", "value"):
                yield from affine(f"{theirs}.{their_attention}.self.{name}", f"{ours}.{kind}_attention.{name}")
            yield from affine(f"{theirs}.{their_attention}.output.dense", f"{ours}.{kind}_attention.output")
            yield from affine(f"{theirs}.{their_attention}.output.LayerNorm", f"{ours}.{kind}_norm")
        yield from affine(f"{theirs}.intermediate.dense", f"{ours}.inner")
        yield from affine(f"{theirs}.output.dense", f"{ours}.outer")
        yield from affine(f"{theirs}.output.LayerNorm", f"{ours}.feed_forward_norm")


def _transform_sources(prefix: str) -> Iterator[Source]:
    yield from affine(f"{prefix}.cls.predictions.transform.dense", "transform")
    yield from affine(f"{prefix}.cls.predictions.transform.LayerNorm", "transform_norm")


def _gpt2_sources(prefix: str, layers: int) -> Iterator[Source]:
    """Map positions and layers; GPT-2 stores the weights of linear layers as (in, out), several side by side."""
    yield Source("position_embedding.weight", f"{prefix}.wpe.weight")
    yield from affine(f"{prefix}.ln_f", "final_norm")
    for layer in range(layers):
        ours, theirs = f"layers.{layer}", f"{prefix}.h.{layer}"
        joined = {
            f"{theirs}.attn.c_attn": [f"{ours}.self_attention.{name}" for name in ("query", "key", "value")],
            f"{theirs}.attn.c_proj": [f"{ours}.self_attention.output"],
            f"{theirs}.crossattention.q_attn": [f"{ours}.cross_attention.query"],
            f"{theirs}.crossattention.c_attn": [f"{ours}.cross_attention.{name}" for name in ("key", "value")],
            f"{theirs}.crossattention.c_proj": [f"{ours}.cross_attention.output"],
            f"{theirs}.mlp.c_fc": [f"{ours}.inner"],
            f"{theirs}.mlp.c_proj": [f"{ours}.outer"],
        }
        for their_name, our_names in joined.items():
            for place, our_name in enumerate(our_names):
                for leaf in ("weight", "bias"):
                    yield Source(f"{our_name}.{leaf}", f"{their_name}.{leaf}", _part(place, len(our_names)))
        for our_norm, their_norm in (("self", "ln_1"), ("cross", "ln_cross_attn"), ("feed_forward", "ln_2")):
            yield from affine(f"{theirs}.{their_norm}", f"{ours}.{our_norm}_norm")


def _part(place: int, parts: int) -> Callable[[Tensor], Tensor]:
    """Return what copies one of several equal parts of the last axis of a weight or a bias, and turns a weight."""

    def part(value: Tensor) -> Tensor:
        chosen = value.chunk(parts, dim=-1)[place]
        return chosen.T.contiguous() if chosen.ndim == 2 else chosen.clone()

    return part


_IGNORED = (".position_ids", ".attn.bias", ".attn.masked_bias", ".crossattention.bias", ".crossattention.masked_bias")
"""Endings of constants that older versions of transformers stored."""
