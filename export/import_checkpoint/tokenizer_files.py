"""The words of a published tokeniser: a table of pieces is made from its files, which a robot joins to sentences.

WordPiece (BERT) and byte-level byte pairs (GPT-2) are read from tokenizer.json, or from vocab.txt and vocab.json of
older models. Nothing on the robot runs a tokeniser.
"""

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from export.import_checkpoint.model_folder import read_settings
from export.import_checkpoint.published import ImportCheckpointError
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary, byte_name
from training.data.json_files import read_json

_CLEANED_UP = (".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re")
"""Beginnings of the pieces before which the decoder of tokenizers leaves the space out (``cleanup``)."""
_MISSING_SHARE = 100
"""One row in so many of a table of words may lack a piece: models pad their tables."""


@dataclass(frozen=True)
class PublishedWords:
    """A published vocabulary in the order of ours."""

    vocabulary: Vocabulary
    order: list[int]
    """Published id of each of our words; the ids of padding, begin, end and unknown may be the same."""

    def encode(self, pieces: Iterable[int]) -> list[int]:
        """Convert published ids to ours."""
        places = {published: place for place, published in reversed(list(enumerate(self.order)))}
        return [places[piece] for piece in pieces]


@dataclass(frozen=True)
class TokenizerFiles:
    """The files of a published tokeniser."""

    path: Path
    """The file that has the pieces."""
    pieces: Mapping[str, int]
    """Published id of each piece, added ones included."""
    silent: frozenset[str]
    """Pieces that are left out of sentences (``skip_special_tokens``)."""
    unknown: str | None
    continuation: str
    """Prefix of the pieces of WordPiece that continue a word; empty: byte-level byte pairs."""
    cleaned_up: tuple[bool, bool]
    """Whether spaces before punctuation are removed from pieces, and from whole sentences."""


def read_tokenizer(folder: Path) -> TokenizerFiles:
    """Read the tokeniser of a model's folder.

    Raises:
        ImportCheckpointError: there is none, or one of another kind.
        DataError: a file is not JSON.
    """
    settings, added = (read_settings(folder, name) for name in ("tokenizer_config.json", "added_tokens.json"))
    named = {**read_settings(folder, "special_tokens_map.json"), **settings}
    special = {_content(named[key]) for key in named if key.endswith("_token") and named[key]}
    special |= {_content(token) for token in named.get("additional_special_tokens") or ()}
    decoder = dict(settings.get("added_tokens_decoder") or {})
    added |= {token["content"]: int(index) for index, token in decoder.items()}
    special |= {token["content"] for token in decoder.values() if token.get("special")}
    path, unknown, decodes = folder / "tokenizer.json", named.get("unk_token"), True
    if path.is_file():
        found = read_json(path)
        model = found["model"]
        kind, continuation = model.get("type"), model.get("continuing_subword_prefix") or ""
        if kind not in ("WordPiece", "BPE") or (kind == "BPE" and "ByteLevel" not in str(found.get("decoder"))):
            raise ImportCheckpointError(
                f"{path}: the tokeniser is {kind}; WordPiece and byte-level BPE can be imported, others need a reader "
                "in export/import_checkpoint/tokenizer_files.py"
            )
        continuation = continuation if kind == "WordPiece" else ""
        unknown, pieces = unknown or model.get("unk_token"), dict(model["vocab"])
        added |= {token["content"]: token["id"] for token in found.get("added_tokens") or ()}
        special |= {token["content"] for token in found.get("added_tokens") or () if token.get("special")}
        decodes = bool((found.get("decoder") or {}).get("cleanup", True))
    elif (path := folder / "vocab.txt").is_file():
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        continuation, pieces = "##", {line: index for index, line in enumerate(lines)}
        unknown = unknown or "[UNK]"
        special |= {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} & pieces.keys()
    elif (path := folder / "vocab.json").is_file():
        continuation, pieces = "", dict(read_json(path))
        special |= {"<|endoftext|>"} & pieces.keys()
    else:
        raise ImportCheckpointError(
            f"{folder} has no tokenizer.json, vocab.txt or vocab.json; copy the tokeniser's files beside config.json"
        )
    whole = bool(continuation) and bool(settings.get("clean_up_tokenization_spaces", True))
    cleaned_up = (bool(continuation) and decodes, whole)
    silent = frozenset(special)
    return TokenizerFiles(
        path, {**pieces, **added}, silent, _content(unknown) if unknown else None, continuation, cleaned_up
    )


def published_words(files: TokenizerFiles, rows: int, padding: int, begin: int, end: int) -> PublishedWords:
    """Make the table of pieces of a model with ``rows`` words; captions are framed by the three published ids.

    Raises:
        ImportCheckpointError: the tokeniser belongs to another model.
    """
    by_id = {index: piece for piece, index in files.pieces.items()}
    beyond = max(by_id)
    if beyond >= rows or rows - len(by_id) > rows // _MISSING_SHARE:
        raise ImportCheckpointError(
            f"{files.path} has {len(by_id)} pieces up to id {beyond}, but the model's table has {rows} words: they are "
            "of different models"
        )
    for name, index in (("padding", padding), ("begin", begin), ("end", end)):
        piece = by_id.get(index, "[unnamed]")
        if piece not in files.silent and not (piece[0] + piece[-1] in ("[]", "<>") and len(piece) > 2):
            raise ImportCheckpointError(
                f"{files.path}: config.json says that id {index} is {name}, which is the word {piece!r} here: the "
                "tokeniser and the model do not belong together"
            )
    unknown = files.pieces.get(files.unknown or "", end)
    special = [padding, begin, end, unknown]
    order = [*special, *(index for index in range(rows) if index not in special)]
    table = [_Piece.of(by_id.get(index), index, files) for index in order[len(SPECIAL) :]]
    own = [piece.text for piece in table if not piece.continues]
    continuation = _unused_prefix("##", own)
    attachment = _unused_prefix("~~", [*own, continuation])
    prefixes = {(True, False): continuation, (False, True): attachment, (False, False): ""}
    words = [prefixes[piece.continues, piece.attached] + piece.text for piece in table]
    try:
        vocabulary = Vocabulary((*SPECIAL, *words), continuation, attachment, files.cleaned_up[1])
    except ValueError as error:
        raise ImportCheckpointError(f"{files.path}: {error}") from None
    return PublishedWords(vocabulary, order)


@dataclass(frozen=True)
class _Piece:
    """A published piece as a vocabulary of ours writes it."""

    text: str
    continues: bool = False
    attached: bool = False

    @classmethod
    def of(cls, piece: str | None, index: int, files: TokenizerFiles) -> "_Piece":
        if piece is None or piece in files.silent:
            return cls(byte_name(b"", index), continues=True)
        if files.continuation:
            continues = piece.startswith(files.continuation) and piece != files.continuation
            text = piece.removeprefix(files.continuation) if continues else piece
            attached = not continues and files.cleaned_up[0] and text.startswith(_CLEANED_UP)
            return cls(text if text.split() == [text] else byte_name(text.encode()), continues, attached)
        content = b"".join(_bytes().get(character, character.encode()) for character in piece)
        begins = content.startswith(b" ")
        content = content.removeprefix(b" ")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            return cls(byte_name(content), continues=not begins)
        if text.split() != [text] or "<0x" in text:
            return cls(byte_name(content), continues=not begins)
        is_word = not begins and "-" not in text and (text.startswith("'") or not any(map(str.isalnum, text)))
        return cls(text, continues=not begins and not is_word, attached=is_word)


@cache
def _bytes() -> dict[str, bytes]:
    """Return the byte of each character of byte-level pieces."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode  # imported here: it takes a while

    return {character: bytes([byte]) for byte, character in bytes_to_unicode().items()}


def _unused_prefix(prefix: str, texts: Iterable[str]) -> str:
    """Lengthen a prefix until no text begins with it."""
    taken = list(texts)
    while any(text.startswith(prefix) for text in taken):
        prefix += string.punctuation[len(prefix) % len(string.punctuation)]
    return prefix


def _content(token: Any) -> str:
    return str(token["content"] if isinstance(token, Mapping) else token)
