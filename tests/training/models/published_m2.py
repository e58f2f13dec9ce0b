"""Parity cases of M2's published code: its encoder with its meshed decoder or a plain one."""

import numpy as np
import torch

from export.import_checkpoint.m2 import SPECIAL_WORDS, read_m2
from export.import_checkpoint.published import ImportChoices, build
from smart_caption_ros.captioning.vocabulary import Vocabulary


def published_state(case):
    """The state dict of a case by its published names."""
    return {name[3:]: torch.from_numpy(value) for name, value in case.items() if name.startswith("sd/")}


def published_words(case):
    """Words of a case by their published ids: ``w<id>``, and the special words; the first that is not special is
    unknown."""
    _, _, _, _, _, _, count, padding, begin, end, _ = (int(value) for value in case["config"])
    words = [f"w{index}" for index in range(count)]
    for index, word in zip((padding, begin, end), SPECIAL_WORDS[:3], strict=True):
        words[index] = word
    words[next(index for index in range(count) if index not in (padding, begin, end))] = SPECIAL_WORDS[3]
    return words


def load_parity_case(path):
    """Load the model with the published weights, and the case's arrays with our word ids."""
    case = dict(np.load(path))
    words = published_words(case)
    model = read_m2(published_state(case), words, ImportChoices(heads=int(case["config"][4])))
    theirs = [words.index(word) if word in words else None for word in model.vocabulary.words]
    ours = np.argsort(theirs)
    case["tf_logprobs"] = case["tf_logprobs"][..., theirs]
    case["captions"] = ours[case["captions"]]
    for beams in ("beam_tokens", "beam3_tokens"):
        words = ours[case[beams]]
        ended = (words == Vocabulary.end_id).cumsum(-1) - (words == Vocabulary.end_id) > 0
        assert not case[beams][ended].any()  # they write 0 after the end token, which is a word elsewhere
        case[beams] = np.where(ended, Vocabulary.padding_id, words)
    captioner = build(model, published_state(case))
    return captioner, case
