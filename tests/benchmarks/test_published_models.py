"""The benchmark of published models saves models that the importer reads."""

import sys

import pytest

from benchmarks import published_models
from benchmarks.published_models import BEAMS, WORDS, Published, write_model
from export.import_checkpoint.transformers_models import SearchChoices, read_transformers_model
from tests.published_captioners import FRAME, TINY


@pytest.mark.parametrize(
    ("name", "form", "processor"),
    [
        ("git", "git", "CLIPImageProcessor"),
        ("blip", "blip", "BlipImageProcessor"),
        ("vit-gpt2", "vision-encoder-decoder", "ViTImageProcessor"),
    ],
)
def test_every_caption_has_the_same_beams_and_number_of_words(name, form, processor, tmp_path):
    write_model(Published(form, TINY[name], processor, FRAME), tmp_path)
    trained = read_transformers_model(form, str(tmp_path), None, SearchChoices(prompt=""))
    assert (trained.search.beam_size, trained.search.min_words, trained.search.max_words) == (BEAMS, WORDS, WORDS)


def test_an_unknown_model_is_a_usage_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["published_models", "--only", "florence"])
    assert published_models.main() == 2
    assert "'florence' is none of git-base" in capsys.readouterr().err
