"""Folders of published captioners as transformers saves them, tiny: random weights, words and an image processor."""

import json

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import BartTokenizer, PreTrainedTokenizerFast

from export.import_checkpoint.transformers_models import TASKS
from tests.published_captioners import CHAT_WORDS, FRAME, WORDS, published

FLORENCE2_GENERATION = {
    "num_beams": 3, "no_repeat_ngram_size": 3, "early_stopping": True, "forced_bos_token_id": 0,
    "forced_eos_token_id": 2, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
"""Of Florence-2-base's generation_config.json."""
NOUNS = ("dog", "cat", "book", "cup", "man", "table")
FORMATS = {"git": "git", "blip": "blip", "vit-gpt2": "vision-encoder-decoder", "vit-bert": "vision-encoder-decoder"}
"""Format of the importer by the name of the model."""
_PROCESSORS = {"git": "CLIPImageProcessor", "blip": "BlipImageProcessor", "florence2": "CLIPImageProcessor"}

CHAT_TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{ message['role'] | capitalize }}:"
    "{% for line in message['content'] %}{{ '<image>' if line['type'] == 'image' else line['text'] }}{% endfor %}"
    "<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)


def write_chat(folder):
    """Write a tiny SmolVLM with all files that an import reads."""
    model = published("smolvlm-chat")
    model.save_pretrained(folder)
    special = ["<|endoftext|>", "<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>", "<image>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*special, "<global-img>", *letters, "Ġa", *(f"Ġ{noun}" for noun in NOUNS)]
    pieces = [*words, *(f"Ġw{index}" for index in range(CHAT_WORDS - len(words)))]
    tokenizer = Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, [("Ġ", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(word, normalized=False) for word in (*special, "<global-img>")])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=special[1], eos_token=special[2], pad_token=special[2],
        unk_token=special[0], chat_template=CHAT_TEMPLATE,
    ).save_pretrained(folder)  # fmt: skip
    processor = {
        "image_processor_type": "Idefics3ImageProcessor", "size": {"longest_edge": 4 * FRAME}, "resample": 1,
        "max_image_size": {"longest_edge": FRAME}, "do_image_splitting": True, "do_pad": True, "do_resize": True,
        "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "do_convert_rgb": True,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return model


def write_published(folder, name, **saving):
    """Write a model of :mod:`tests.published_captioners` with all files that an import reads; ``saving``: options of
    ``save_pretrained``.
    """
    if name == "smolvlm-chat":
        return write_chat(folder)
    model = published(name)
    model.save_pretrained(folder, **saving)
    filler = [f"w{index}" for index in range(WORDS)]
    if name == "florence2":
        letters = sorted({letter for question, _ in TASKS.values() for letter in question.replace(" ", "Ġ")})
        words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters, *(f"Ġ{noun}" for noun in NOUNS), ",", "'s"]
        rows = model.config.text_config.vocab_size
        pieces = {word: index for index, word in enumerate([*[*words, *filler][: rows - 1], "<image>"])}
        tokenizer = Tokenizer(models.BPE(pieces, []))
        tokenizer.pre_tokenizer, tokenizer.decoder = (
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            decoders.ByteLevel(),
        )
        BartTokenizer(tokenizer_object=tokenizer).save_pretrained(folder)
    elif name == "vit-gpt2":
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
    if name == "florence2":
        processor["do_center_crop"] = False
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return model
