"""Folders of published captioners as transformers saves them, tiny: random weights, words and an image processor."""

import json

from tests.published_captioners import FRAME, WORDS, published

NOUNS = ("dog", "cat", "book", "cup", "man", "table")
FORMATS = {"git": "git", "blip": "blip", "vit-gpt2": "vision-encoder-decoder", "vit-bert": "vision-encoder-decoder"}
"""Format of the importer by the name of the model."""
_PROCESSORS = {"git": "CLIPImageProcessor", "blip": "BlipImageProcessor"}


def write_published(folder, name, **saving):
    """Write a model of :mod:`tests.published_captioners` with all files that an import reads; ``saving``: options of
    ``save_pretrained``.
    """
    model = published(name)
    model.save_pretrained(folder, **saving)
    filler = [f"w{index}" for index in range(WORDS)]
    if name == "vit-gpt2":
        words = [*(f"Ġ{noun}" for noun in NOUNS), ",", "'s", "shelf", *(f"Ġ{word}" for word in filler)]
        pieces = {word: index for index, word in enumerate([*words[: WORDS - 1], "<|endoftext|>"])}
        (folder / "vocab.json").write_text(json.dumps(pieces))
        (folder / "merges.txt").write_text("#version: 0.2\n")
    else:
        words = ["[PAD]", *NOUNS, "a", "picture", "of", ",", "'", "##shelf", "##s", *filler][: WORDS - 4]
        (folder / "vocab.txt").write_text("\n".join([*words, "[UNK]", "[SEP]", "[CLS]", "[MASK]"]) + "\n")
        special = {"pad": "[PAD]", "unk": "[UNK]", "sep": "[SEP]", "cls": "[CLS]", "mask": "[MASK]"}
        settings = {"tokenizer_class": "BertTokenizer", **{f"{key}_token": value for key, value in special.items()}}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    processor = {
        "image_processor_type": _PROCESSORS.get(name, "ViTImageProcessor"),
        "size": {"shortest_edge": FRAME} if name == "git" else {"height": FRAME, "width": FRAME},
        "resample": 3, "rescale_factor": 1 / 255, "do_rescale": True, "do_resize": True, "do_normalize": True,
        "image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28],
    }  # fmt: skip
    if name == "git":
        processor |= {"do_center_crop": True, "crop_size": {"height": FRAME, "width": FRAME}}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return model
