"""The decoders of published captioners of transformers, as captioners of our families.

``read_text_decoder(config, state, order, prompt)`` takes the content of config.json and the tensors of a model that
transformers saved, of an architecture in :data:`ARCHITECTURES`, and returns a :class:`TextDecoder`: the family, the
captioner with the published weights, and the words that the search must not choose. ``special_ids(config)`` says with
which words captions begin and end.

A published decoder is described by the names of its tensors (:class:`Names`) and values of our config. A word
projection that equals the embeddings, or is left out as a copy of them, is tied to them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from export.import_checkpoint.published import ImportCheckpointError, Source, load_published
from training.models import FAMILIES
from training.models.captioner import Captioner
from training.vision.torchvision_operators import declare_torchvision_operators


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
    forbidden: tuple[int, ...]
    """Our ids of special words that repeat another word, and whose probability would count twice."""


class Names(NamedTuple):
    """Published names of a decoder's tensors, without ``.weight`` and ``.bias``."""

    embedding: str
    projection: str
    biases: tuple[str, ...] = ()
    """Biases of the projection: one or two complete names of the same values, of which a file may have one or both."""
    layer: str = ""
    """Prefix of the names of a layer's parts; ``#`` stands for the number of the layer."""
    parts: Mapping[str, "str | Part"] = MappingProxyType({})
    """Published names of the parts of a layer, by our names."""
    others: Mapping[str, str] = MappingProxyType({})
    """Published names outside of the layers, by our names."""
    token_types: str = ""
    """Published table whose first row is added to every learnt position; empty: none."""
    encoder_layer: str = ""
    """Like ``layer``, for an encoder of words and image."""
    unused_positions: int = 0
    """Rows of the tables of positions before the first position."""


class Part(NamedTuple):
    """One of several equal parts of a GPT-2 layer's tensor, which stores weights as (in, out)."""

    name: str
    place: int = 0
    parts: int = 1

    def of(self, value: Tensor) -> Tensor:
        """Copy the part of a weight, transposed, or of a bias."""
        chosen = value.chunk(self.parts, dim=-1)[self.place]
        return chosen.T.contiguous() if chosen.ndim == 2 else chosen.clone()


class Architecture(NamedTuple):
    """How an architecture of transformers is read."""

    model_type: str
    """Its name in config.json and in transformers."""
    family: str
    """A key of :data:`training.models.FAMILIES`."""
    vision_prefix: str | tuple[str, ...]
    """Beginning of the names of the vision model's tensors, or several."""
    text_config: Callable[[Any], Any]
    """Returns the configuration of the decoder, whose ``model_type`` is a key of :data:`NAMES`."""
    options: Callable[[Any], Mapping[str, Any]] = lambda full: {}
    """Computes the values of our config that :data:`SIZES` does not name, from the configuration of transformers."""
    is_chat: bool = False
    """Whether captions answer a question after the image, in a chat template."""

    @property
    def format(self) -> str:
        """Name of the importer's format."""
        return self.family.replace("_", "-")


_PROJECTIONS = ("query", "key", "value")
_BERT_PARTS = {
    **{f"self_attention.{name}": f"attention.self.{name}" for name in _PROJECTIONS},
    **{f"cross_attention.{name}": f"crossattention.self.{name}" for name in _PROJECTIONS},
    "self_attention.output": "attention.output.dense", "self_norm": "attention.output.LayerNorm",
    "cross_attention.output": "crossattention.output.dense", "cross_norm": "crossattention.output.LayerNorm",
    "inner": "intermediate.dense", "outer": "output.dense", "feed_forward_norm": "output.LayerNorm",
}  # fmt: skip
_GPT2_PARTS: dict[str, str | Part] = {
    **{f"self_attention.{name}": Part("attn.c_attn", place, 3) for place, name in enumerate(_PROJECTIONS)},
    "self_attention.output": Part("attn.c_proj"), "self_norm": "ln_1",
    "cross_attention.query": Part("crossattention.q_attn"),
    "cross_attention.key": Part("crossattention.c_attn", 0, 2),
    "cross_attention.value": Part("crossattention.c_attn", 1, 2),
    "cross_attention.output": Part("crossattention.c_proj"), "cross_norm": "ln_cross_attn",
    "inner": Part("mlp.c_fc"), "outer": Part("mlp.c_proj"), "feed_forward_norm": "ln_2",
}  # fmt: skip
_BART = "model.language_model"
_BART_PARTS: dict[str, str | Part] = {
    **{f"self_attention.{name}": f"self_attn.{name[0]}_proj" for name in _PROJECTIONS},
    **{f"cross_attention.{name}": f"encoder_attn.{name[0]}_proj" for name in _PROJECTIONS},
    "self_attention.output": "self_attn.out_proj", "self_norm": "self_attn_layer_norm",
    "cross_attention.output": "encoder_attn.out_proj", "cross_norm": "encoder_attn_layer_norm",
    "inner": "fc1", "outer": "fc2", "feed_forward_norm": "final_layer_norm",
}  # fmt: skip

_LLAMA_PARTS = {
    **{f"self_attention.{name}": f"self_attn.{name[0]}_proj" for name in _PROJECTIONS},
    "self_attention.output": "self_attn.o_proj", "self_norm": "input_layernorm", "gate": "mlp.gate_proj",
    "inner": "mlp.up_proj", "outer": "mlp.down_proj", "feed_forward_norm": "post_attention_layernorm",
}  # fmt: skip


def _bert(prefix: str, token_types: str = "") -> Names:
    bert, head = f"{prefix}.bert", f"{prefix}.cls.predictions"
    return Names(
        f"{bert}.embeddings.word_embeddings", f"{head}.decoder", (f"{head}.decoder.bias", f"{head}.bias"),
        f"{bert}.encoder.layer.#", _BERT_PARTS,
        {
            "position_embedding": f"{bert}.embeddings.position_embeddings",
            "embedding_norm": f"{bert}.embeddings.LayerNorm", "token_projection": "enc_to_dec_proj",
            "transform": f"{head}.transform.dense", "transform_norm": f"{head}.transform.LayerNorm",
        },
        token_types and f"{bert}.embeddings.{token_types}",
    )  # fmt: skip


NAMES: Mapping[str, Names] = {
    "git": Names(
        "git.embeddings.word_embeddings", "output", ("output.bias",), "git.encoder.layer.#", _BERT_PARTS,
        {
            "position_embedding": "git.embeddings.position_embeddings", "embedding_norm": "git.embeddings.LayerNorm",
            "token_projection.0": "git.visual_projection.visual_projection.0",
            "token_projection.1": "git.visual_projection.visual_projection.1",
        },
    ),
    "blip_text_model": _bert("text_decoder"),
    "bert": _bert("decoder", "token_type_embeddings.weight"),
    "gpt2": Names(
        "decoder.transformer.wte", "decoder.lm_head", (), "decoder.transformer.h.#", _GPT2_PARTS,
        {
            "position_embedding": "decoder.transformer.wpe", "final_norm": "decoder.transformer.ln_f",
            "token_projection": "enc_to_dec_proj",
        },
    ),
    "llama": Names(
        "model.text_model.embed_tokens", "lm_head", (), "model.text_model.layers.#", _LLAMA_PARTS,
        {
            "final_norm": "model.text_model.norm",
            "token_projection": "model.connector.modality_projection.proj",
        },
    ),
    "bart": Names(
        f"{_BART}.shared", "lm_head", (), f"{_BART}.decoder.layers.#", _BART_PARTS,
        {
            "position_embedding": f"{_BART}.decoder.embed_positions",
            "embedding_norm": f"{_BART}.decoder.layernorm_embedding",
            "encoder_positions": f"{_BART}.encoder.embed_positions",
            "encoder_norm": f"{_BART}.encoder.layernorm_embedding",
        },
        encoder_layer=f"{_BART}.encoder.layers.#", unused_positions=2,
    ),
}  # fmt: skip
"""By the decoder's ``model_type``."""
SIZES = {
    "d_model": ("hidden_size",),
    "heads": ("num_attention_heads",),
    "key_value_heads": ("num_key_value_heads",),
    "layers": ("num_hidden_layers",),
    "max_length": ("max_position_embeddings",),
    "d_ff": ("intermediate_size", "n_inner"),
    "dropout": ("hidden_dropout_prob", "resid_pdrop"),
    "activation": ("hidden_act", "activation_function"),
    "epsilon": ("layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps"),
}
"""Names in a decoder's configuration, by ours; the first that it has."""


def _vision_encoder_decoder_options(full: Any) -> dict[str, Any]:
    is_bert = full.decoder.model_type == "bert"
    return {
        "project_tokens": full.encoder.hidden_size != full.decoder.hidden_size,
        "norm_first": not is_bert,
        **dict.fromkeys(("embedding_norm", "transform", "word_bias"), is_bert),
    }


def _florence2_options(full: Any) -> dict[str, Any]:
    text = full.text_config
    return {
        "layers": text.decoder_layers, "heads": text.decoder_attention_heads, "d_ff": text.decoder_ffn_dim,
        "encoder_layers": text.encoder_layers, "encoder_heads": text.encoder_attention_heads,
        "encoder_d_ff": text.encoder_ffn_dim, "dropout": text.dropout,
    }  # fmt: skip


def _smolvlm_options(full: Any) -> dict[str, Any]:
    text = full.text_config
    rotary = text.rope_parameters
    expected = {
        "head_dim": text.hidden_size // text.num_attention_heads, "mlp_bias": text.attention_bias,
    }  # fmt: skip
    _check_options(text, expected)
    if rotary.get("rope_type", "default") != "default":
        raise ImportCheckpointError(
            f"config.json: the rotary positions are {rotary['rope_type']}; those that are not scaled can be imported"
        )
    return {"rotary_base": float(rotary["rope_theta"]), "bias": text.attention_bias, "dropout": 0.0}


def _smolvlm(model_type: str) -> Architecture:
    return Architecture(
        model_type, "smolvlm", "model.vision_model.", lambda full: full.text_config, _smolvlm_options, is_chat=True
    )


_TOO_LARGE = {
    "Blip2ForConditionalGeneration": "a Q-Former and OPT or T5 behind it: 3.7 billion parameters and more, 15 GB",
    "PaliGemmaForConditionalGeneration": "Gemma's decoder and 257,000 words: 3 billion parameters, 12 GB",
}
"""Why known architectures are too large for the processor of a robot, by their names."""
ARCHITECTURES = {
    "GitForCausalLM": Architecture(
        "git", "git", "git.image_encoder.", lambda full: full,
        lambda full: {"token_epsilon": full.vision_config.layer_norm_eps},
    ),
    "BlipForConditionalGeneration": Architecture("blip", "blip", "vision_model.", lambda full: full.text_config),
    "VisionEncoderDecoderModel": Architecture(
        "vision-encoder-decoder", "vision_encoder_decoder", "encoder.", lambda full: full.decoder,
        _vision_encoder_decoder_options,
    ),
    "Idefics3ForConditionalGeneration": _smolvlm("idefics3"),
    "SmolVLMForConditionalGeneration": _smolvlm("smolvlm"),
    "Florence2ForConditionalGeneration": Architecture(
        "florence2", "florence2", ("model.vision_tower.", "model.multi_modal_projector."),
        lambda full: full.text_config, _florence2_options,
    ),
}  # fmt: skip
"""The architectures by the names of config.json."""


def read_text_decoder(
    config: Mapping[str, Any],
    state: Mapping[str, Tensor],
    order: Sequence[int] | Tensor,
    prompt: Sequence[int] = (),
    before_image: Sequence[int] = (),
    question: Sequence[int] = (),
) -> TextDecoder:
    """Build the captioner of a published model and load the published values.

    Args:
        config: content of config.json.
        state: tensors by their published names, in any float type.
        order: published id of each word of our vocabulary, which begins with padding, begin, end and unknown; an id
            may stand for several of them.
        prompt: our ids of the words before every caption, the begin token first; empty: the begin token alone.
        before_image: our ids of the words before the image.
        question: our ids of the words that an encoder reads with the image.

    Raises:
        ImportCheckpointError: the architecture is unknown or differs from the published one in what it computes, or a
            parameter is missing, unknown or of another shape; names the first.
    """
    full, text = _configurations(config)
    architecture, names = ARCHITECTURES[config["architectures"][0]], NAMES[text.model_type]
    rows = torch.as_tensor(order)
    if int(rows.max()) >= text.vocab_size:
        raise ImportCheckpointError(f"the vocabulary has the id {int(rows.max())}, config.json {text.vocab_size} words")
    words, projection = _word_tables(state, names, (full if architecture.is_chat else text).tie_word_embeddings)
    vision = full.encoder if architecture.family == "vision_encoder_decoder" else full.vision_config
    options = {
        "d_ff": 4 * text.hidden_size,  # GPT-2's, where it names none
        **{ours: value for ours, keys in SIZES.items() if (value := _first(text, keys)) is not None},
        "tied": projection is None,
        "prompt": list(prompt),
        "before_image": list(before_image),
        **({"question": list(question)} if question else {}),
        **architecture.options(full),
    }
    family = FAMILIES[architecture.family]
    try:
        with torch.device("meta"):  # its weights are the published tensors
            width = _first(vision, ("hidden_size", "projection_dim")) * getattr(full, "scale_factor", 1) ** 2
            captioner = family(family.Config(len(rows), width, **options)).eval()
    except ValueError as error:
        raise ImportCheckpointError(f"config.json: {error}") from None
    tables = {"word_projection.weight": projection or words, "word_embedding.weight": words}
    if names.biases:
        tables["word_projection.bias"] = next((name for name in names.biases if name in state), names.biases[0])
    sources = [
        Source(ours, tables[ours], lambda table: table[rows]) if ours in tables else _source(ours, names)
        for ours in captioner.state_dict()
    ]
    ignored = {f"{names.embedding}.weight", f"{names.projection}.weight", *names.biases}
    ignored |= {name for name in state if name.startswith(architecture.vision_prefix) or name.endswith(_IGNORED)}
    copies = (name for name in state if name.endswith(".embed_tokens.weight"))
    ignored |= {name for name in copies if torch.equal(state[name], state[words])}
    load_published(captioner, sources, state, "a model of this config.json", ignored)
    padding, begin, end, unknown = rows[:4].tolist()
    repeats = (padding == end, begin in (padding, end), False, unknown in (padding, begin, end))
    forbidden = tuple(place for place, repeated in enumerate(repeats) if repeated)
    return TextDecoder(architecture.family, captioner, forbidden)


def _source(ours: str, names: Names) -> Source:
    """Return the source of one of our parameters."""
    module, _, leaf = ours.rpartition(".")
    if found := re.match(r"(encoder_)?layers\.(\d+)\.(.+)", module):
        part = names.parts[found[3]]
        prefix = (names.encoder_layer if found[1] else names.layer).replace("#", found[2])
        if isinstance(part, Part):
            return Source(ours, f"{prefix}.{part.name}.{leaf}", part.of)
        return Source(ours, f"{prefix}.{part}.{leaf}")
    theirs = f"{names.others[module]}.{leaf}"
    if module in ("position_embedding", "encoder_positions"):
        return Source(ours, theirs, lambda table: table[names.unused_positions :], addend=names.token_types)
    return Source(ours, theirs)


def _first(config: Any, keys: Sequence[str]) -> Any:
    """Return the value of the first of the keys that a configuration has; None where it has none."""
    return next((value for key in keys if (value := getattr(config, key, None)) is not None), None)


def special_ids(config: Mapping[str, Any], generation: Mapping[str, Any] = MappingProxyType({})) -> SpecialIds:
    """Return the words that frame a caption, from config.json and generation_config.json, which has precedence.

    Raises:
        ImportCheckpointError: the architecture is unknown, or the files do not name one word for each.
    """
    full, text = _configurations(config)
    if full.model_type == "blip":  # its captions end with BERT's separator, whatever eos_token_id says
        found = {"bos_token_id": text.bos_token_id, "eos_token_id": text.sep_token_id}
    else:
        begins = [
            generation.get("decoder_start_token_id"), getattr(full, "decoder_start_token_id", None),
            getattr(text, "decoder_start_token_id", None), generation.get("bos_token_id"), text.bos_token_id,
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
    return int(_configurations(config)[1].vocab_size)


def _configurations(config: Mapping[str, Any]) -> tuple[Any, Any]:
    """Read config.json as transformers does, which fills in what the file leaves out; return it and its decoder's."""
    declare_torchvision_operators()
    from transformers import AutoConfig  # imported here: it takes seconds

    architecture = architecture_of(config)
    full = AutoConfig.for_model(**{**config, "model_type": architecture.model_type})
    text = architecture.text_config(full)
    if text.model_type not in NAMES or (architecture.is_chat and text.model_type != "llama"):
        known = "llama" if architecture.is_chat else "gpt2 and bert"
        raise ImportCheckpointError(f"config.json: the decoder is {text.model_type}; known are {known}")
    _check_options(text, _EXPECTED)
    return full, text


def architecture_of(config: Mapping[str, Any]) -> Architecture:
    """Return the architecture that a config.json names.

    Raises:
        ImportCheckpointError: it is unknown, or too large for a robot.
    """
    named = (config.get("architectures") or ["none"])[0]
    if named in _TOO_LARGE:
        raise ImportCheckpointError(
            f"config.json: the architecture is {named}, which needs {_TOO_LARGE[named]}; take smolvlm or blip"
        )
    if named not in ARCHITECTURES:
        raise ImportCheckpointError(
            f"config.json: the architecture is {named}; known are {', '.join(ARCHITECTURES)}. Another captioner needs "
            "a family of its own, see docs/families.md"
        )
    return ARCHITECTURES[named]


def _check_options(text: Any, expected: Mapping[str, Any]) -> None:
    for option, value in expected.items():
        if getattr(text, option, value) != value:
            raise ImportCheckpointError(
                f"config.json: {option} is {getattr(text, option)}; decoders with {value} alone can be imported"
            )


_EXPECTED = {
    "position_embedding_type": "absolute",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "cross_attention_hidden_size": None,
    "scale_embedding": False,
}
"""Options of decoders that change what they compute, with the values that the families have."""


def _word_tables(state: Mapping[str, Tensor], names: Names, may_be_tied: bool) -> tuple[str, str | None]:
    """Return the names of the embeddings and of the projection, None where it is the embeddings."""
    embedding, projection = f"{names.embedding}.weight", f"{names.projection}.weight"
    found = [name for name in (embedding, projection) if name in state]
    if len(found) == 1 and may_be_tied:  # a file has a shared table once, by either name
        return found[0], None
    if len(found) == 2 and torch.equal(state[embedding], state[projection]):
        return embedding, None
    return embedding, projection


_IGNORED = (".position_ids", ".attn.bias", ".attn.masked_bias", ".crossattention.bias", ".crossattention.masked_bias")
"""Endings of constants that older versions of transformers stored."""
