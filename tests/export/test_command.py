"""``python -m export`` as a user runs it."""

import sys

import onnx
import pytest
from torch.nn import LayerNorm

from export import graphs, source
from export.__main__ import main
from smart_caption_ros.captioning import Bundle, Captioner
from tests.export.command import export
from tests.frames import synthetic_images
from training.engine.trained_captioner import TrainedCaptioner
from training.models.eight_bits import set_eight_bits


def test_a_bundle_is_written_and_checked_against_torch(exported_bundle):
    bundle = Bundle.load(exported_bundle)
    assert bundle.manifest["precision"] == {"stored": "float16", "computed": "float32"}
    assert bundle.manifest["architecture"]["memory_slots"] == 5
    assert bundle.captioner_inputs == ("tokens", "token_mask", "word_bias", "word_groups", "every_beam")
    assert bundle.static_graph is not None
    assert not list(exported_bundle.parent.glob("*.unfinished"))


@pytest.mark.long
def test_a_float16_bundle_says_so_and_may_do_without_the_static_form(tiny_checkpoint, tmp_path):
    done = export(
        tiny_checkpoint, tmp_path / "bundle", "--precision", "float16", "--no-static", "--max-words", 4,
        "--check-images", 2,
    )  # fmt: skip
    assert done.status == 0, done.err
    bundle = Bundle.load(tmp_path / "bundle")
    assert bundle.manifest["precision"] == {"stored": "float16", "computed": "float16"}
    assert bundle.static_graph is None
    assert bundle.search.max_words == 4


@pytest.mark.long
def test_a_bundle_for_larger_frames_says_so_and_captions_frames_of_any_size(tiny_checkpoint, tmp_path):
    done = export(tiny_checkpoint, tmp_path / "bundle", "--image-size", 96, "--check-images", 4)
    assert done.status == 0, done.err
    assert "4 of 4 captions" in done.out
    assert "static and Loop form: 4 of 4 captions" in done.out
    bundle = Bundle.load(tmp_path / "bundle")
    assert bundle.grid == (3, 3)
    assert [bundle.manifest["preprocessing"][side] for side in ("width", "height")] == [96, 96]
    assert bundle.manifest["architecture"]["backbone"].endswith(", 3x3 grid")
    captioner = Captioner.from_bundle(tmp_path / "bundle", engine="onnxruntime-cpu")
    assert captioner.caption(synthetic_images(1, 300)[0]).words


@pytest.mark.long
def test_a_captioner_that_was_trained_in_8_bits_has_all_layers_so(tiny_checkpoint, tmp_path):
    trained = TrainedCaptioner.load(tiny_checkpoint)
    # One word is far more probable than the others: near ties between random words may fall either way.
    words = trained.captioner.get_parameter("word_projection.weight").data
    last_norm = [layer for layer in trained.captioner.modules() if isinstance(layer, LayerNorm)][-1]
    last_norm.bias.data = 20 * words[10] / words[10].norm()
    set_eight_bits(trained.captioner, True)
    trained.save(tmp_path / "best.safetensors")
    options = ("--precision", "int8", "--beam-size", 2, "--check-images", 4)
    done = export(tmp_path / "best.safetensors", tmp_path / "bundle", *options)
    assert done.status == 0, done.err
    assert "4 of 4 captions" in done.out
    assert "static and Loop form: 4 of 4 captions" in done.out
    bundle = Bundle.load(tmp_path / "bundle")
    assert bundle.search.beam_size == 2
    precision = bundle.manifest["precision"]["int8"]
    assert (precision["weights"], precision["trained"]) == ("7bit", True)
    assert precision["layers"] == len(precision["int8_layers"]) > 10
    static = onnx.load(str(bundle.static_graph)).graph  # computes in float32 with the same stored weights
    assert not any(node.op_type == "MatMulInteger" for node in static.node)
    assert sum(node.op_type == "DequantizeLinear" for node in static.node) == precision["layers"]


@pytest.fixture
def refuse(monkeypatch, capsys):
    """Run the command in this process, where nothing may be traced, and return its one sentence."""

    def refused(*arguments, status=1):
        monkeypatch.setattr(sys, "argv", ["export", *map(str, arguments)])
        monkeypatch.setenv("SMART_CAPTION_DATA", "/nowhere")
        monkeypatch.setattr(graphs, "trace_captioner", traced)
        monkeypatch.setattr(source, "export_vision", traced)
        assert main() == status
        return capsys.readouterr().err

    def traced(*arguments, **options):
        raise AssertionError("the options were not checked before tracing")

    return refused


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--max-words", 99), "--max-words must lie between 2 and 54, the longest that this model can say"),
        (("--max-words", 1), "--max-words must lie between 2 and 54"),
        (("--image-size", 100), "--image-size: the size of frames must be a positive multiple of 32, not 100"),
        (("--vision-from", "nowhere"), "this captioner has a backbone of its own; leave --vision-from out"),
    ],
)
def test_what_cannot_be_exported_is_refused_in_one_sentence_before_tracing(
    refuse, tiny_checkpoint, tmp_path, options, reason
):
    said = refuse(tiny_checkpoint, tmp_path / "bundle", *options)
    assert said.startswith(f"error: {reason}")
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        ("--beam-size", 11),
        ("--beam-size", 0),
        ("--detector-score", 2),
        ("--max-words", 9, "--vision-only"),
        ("--precision", "int4"),
        ("--loud",),
    ],
)
def test_an_option_that_does_not_exist_is_a_usage_error(refuse, tmp_path, options):
    assert str(options[0]) in refuse("best.safetensors", tmp_path / "bundle", *options, status=2)


def test_an_existing_folder_is_not_written_over_unasked(refuse, tiny_checkpoint, bundle_copy):
    before = (bundle_copy / "manifest.json").read_bytes()
    assert "--replace" in refuse(tiny_checkpoint, bundle_copy)
    assert (bundle_copy / "manifest.json").read_bytes() == before


def test_a_folder_that_is_no_bundle_is_never_replaced(refuse, tiny_checkpoint, tmp_path):
    (tmp_path / "precious").write_text("thesis")
    assert "not a bundle" in refuse(tiny_checkpoint, tmp_path, "--replace")
    assert (tmp_path / "precious").read_text() == "thesis"


def test_a_file_that_is_no_checkpoint_is_refused_in_one_sentence(refuse, tmp_path):
    (tmp_path / "best.safetensors").write_bytes(b"no tensors here")
    assert "not a readable checkpoint" in refuse(tmp_path / "best.safetensors", tmp_path / "bundle")
