"""Measure decoding: our graphs, the published style, a reordered cache and other captioners.

    OMP_NUM_THREADS=1 python -m benchmarks.decode [--checkpoint FILE] [--json FILE] [--plot FILE] [--quick]

The model has the size of SMArT's paper (V = 10,201, 50 tokens of 2,048, d_ff = 2,048) whatever was trained: a trained
captioner is widened with words that it never chooses, hidden units with zero weights and masked tokens (wider tokens
are projected beforehand), so that it makes the same captions at the cost of the paper's sizes. All variants have the
same weights and the same inputs and are measured in turns. Without a checkpoint weights and inputs are random. The
full run takes some minutes.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import torch
import typer
from torch import Tensor, nn

from benchmarks.environment import describe_environment, report, require_matplotlib
from benchmarks.latency import sample_frames
from benchmarks.timing import measure
from benchmarks.torch_decoders import PublishedStyle, ReorderedCache, search_to_the_end
from export.captioner_graph import loop_form, static_form
from export.passes.int8 import layers_of, to_int8
from export.storage import share_weights
from export.trace import trace_captioner
from smart_caption_ros import captioning
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.engines import create_engine, page_out
from smart_caption_ros.files import replaced_atomically
from smart_caption_ros.measuring import benchmark as benchmarking
from smart_caption_ros.measuring.agreement import golden_frames
from training.command_line import FAILED, JsonOption, report_error, run_command
from training.data.flickr8k import Flickr8k
from training.decoding.beam_search import Hypotheses
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, DataError
from training.models.captioner import Captioner, Visual
from training.models.object_relation import ObjectRelation, ObjectRelationConfig
from training.models.smart import Smart, SmartConfig
from training.models.up_down import UpDown, UpDownConfig
from training.paths import data_folder
from training.vision.backbone import IMAGE_SIZE

CHECKPOINT = Path("runs/smart-flickr8k/best.safetensors")
VOCABULARY_SIZE, TOKENS, TOKEN_WIDTH, FEED_FORWARD, BEAM_SIZE, MAX_WORDS = 10_201, 50, 2_048, 2_048, 5, 20
ENGINE = "onnxruntime-cpu"
# The bias of words that are never chosen: far below any word's logit, yet not so far that its exponential is subnormal,
# which takes a CPU ten times as long.
_NEVER_CHOSEN = -60.0
FORCED, EARLY_EXIT = "", "_early_exit"

# The captioner alone, without the rest of the pipeline (OpenCV, the vision graph).
_ONE_CAPTION = """
import runpy
from pathlib import Path
import numpy
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
runpy.run_path(sys.argv[4])["page_out"]([Path(sys.argv[1]).with_suffix(".data")])  # as our engine does
tokens = int(sys.argv[2])
session.run(None, {"tokens": numpy.ones((1, tokens, int(sys.argv[3])), numpy.float32),
                   "token_mask": numpy.ones((1, tokens), bool)})
assert "torch" not in sys.modules
"""


@dataclass(frozen=True)
class Size:
    """Extent of the measurements."""

    inputs: int
    """Number of images."""
    rounds: int
    """Number of times that each image is decoded."""
    batches: Mapping[int, int]
    """Number of rounds by batch size."""
    layers: tuple[int, ...]
    """Numbers of layers of the SMArTs in the comparison of Fig. 3."""


FULL = Size(inputs=12, rounds=3, batches={1: 5, 4: 3, 16: 2, 64: 1}, layers=(1, 2, 3, 6))
QUICK = Size(inputs=3, rounds=2, batches={1: 2, 4: 1}, layers=(2, 6))


def decode(
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help=f"best.safetensors of a run (default: {CHECKPOINT}, if it exists, else random weights).",
        ),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Take a minute instead of several: measure less.")] = False,
    json_file: JsonOption = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw a PNG like Fig. 3 of the SMArT paper.")
    ] = None,
) -> int:
    """Measure decoding: our graphs beside the published style, a reordered cache and other captioners.

    All variants have the same weights and inputs, at the sizes of the SMArT paper, and are measured in turns.
    """
    if plot_file:
        try:
            require_matplotlib()
        except ValueError as error:
            report_error(str(error))
            return FAILED
    size = QUICK if quick else FULL
    torch.set_num_threads(threads)
    model, inputs, what = paper_sized(checkpoint or (CHECKPOINT if CHECKPOINT.is_file() else None), size.inputs)
    with tempfile.TemporaryDirectory() as folder:
        result = {
            **describe_environment(seed=0),
            "mode": "quick" if quick else "full",
            "threads": threads,
            "what": what,
            "shape": {
                "vocabulary": VOCABULARY_SIZE, "tokens": TOKENS, "token_width": TOKEN_WIDTH, "beam_size": BEAM_SIZE,
                "max_words": MAX_WORDS, "encoder_layers": 2, "decoder_layers": 2,
            },
            **measure_all(model, inputs, size, threads, Path(folder)),
        }  # fmt: skip
    report(result, json_file)
    if plot_file:
        plot(result, plot_file)
    return 0


def main() -> int:
    return run_command(decode, "python -m benchmarks.decode", (CheckpointError,))


def measure_all(model: Smart, inputs: list[Visual], size: Size, threads: int, folder: Path) -> dict[str, Any]:
    """Measure all sections of the report."""
    files = write_graphs(model, folder, BEAM_SIZE, MAX_WORDS)
    engine = create_engine(ENGINE, threads)

    def runner(path: Path) -> Callable[[Visual], dict[str, np.ndarray]]:
        graph = engine.load(path)
        return lambda visual: graph.run({"tokens": visual.tokens.numpy(), "token_mask": _mask(visual).numpy()})

    ours = {name: runner(path) for name, path in files.items()}
    searches: dict[str, Callable[[Visual], Any]] = {
        "published_style": _searching(PublishedStyle(model)),
        "torch_kv_cache": _searching(ReorderedCache(model)),
        **ours,
    }
    _say("variants, one image")
    variants = measure(searches, inputs, size.rounds)
    slow = variants["published_style"]["cpu_ms_median"]
    _say("agreement")
    sections: dict[str, Any] = {
        "variants": {
            name: {**times, "times_faster": round(slow / times["cpu_ms_median"], 2)} for name, times in variants.items()
        },
        "agreement": agreement(searches, inputs),
    }
    _say("batches")
    sections["batches"] = over_batches(
        {name: searches[name] for name in ("torch_kv_cache", *(n for n in ours if "early" not in n))}, size.batches
    )
    _say("layers and other captioners, as in Fig. 3")
    sections["layers"] = over_batches(shallow_and_deep(size.layers), size.batches)
    _say("image to text, memory, first caption")
    captioner = captioning.Captioner.from_bundle(None, ENGINE, threads)
    whole = benchmarking.measure_start(captioner.bundle.path, ENGINE, threads)
    os.sync()  # the files were written just now; their pages can be given back once they are on the disk
    alone = {
        name: benchmarking.measure_process(
            _ONE_CAPTION, str(files[name]), str(TOKENS), str(TOKEN_WIDTH), page_out.__file__
        )
        for name in files
        if "early" not in name
    }
    sections["image_to_text"] = {
        "model": captioner.model,
        "frames_of": "640x480",
        **benchmarking.measure(captioner, golden_frames(), size.rounds),
    }
    sections["memory_mb"] = {
        "default_bundle_image_to_text": whole.get("rss_mb"),
        **{name: process.get("rss_mb") for name, process in alone.items()},
    }
    sections["first_caption_s"] = {
        "default_bundle_image_to_text": whole["seconds"],
        **{name: process["seconds"] for name, process in alone.items()},
    }
    if torch.cuda.is_available():
        from benchmarks.gpu import measure_gpu

        graph = write_static_graph(model, folder / "static.onnx", BEAM_SIZE, MAX_WORDS, TOKENS)
        sections["gpu"] = measure_gpu(model, inputs[0], BEAM_SIZE, MAX_WORDS, graph, rounds=20)
    return sections


def write_graphs(captioner: Captioner, folder: Path, beam_size: int, max_words: int) -> dict[str, Path]:
    """Write the Loop form in float32 and with every layer in 8 bits, each with and without early exit.

    Returns:
        Files by variant: ``onnx_fp32``, ``onnx_fp32_early_exit``, ``onnx_int8`` and ``onnx_int8_early_exit``. Those
        without early exit always decode ``max_words`` words.
    """
    exact = trace_captioner(captioner, Search(beam_size))
    traced = {"onnx_fp32": exact, "onnx_int8": to_int8(exact, layers_of(exact), "7bit")}
    files = {}
    for precision, exported in traced.items():
        for ending in (FORCED, EARLY_EXIT):
            graph = loop_form(exported, max_words, early_exit=ending == EARLY_EXIT)
            files[precision + ending] = folder / f"{precision}{ending}.onnx"
            # External weights are mapped into memory; those inside the graph would be copied.
            share_weights([graph], folder / f"{precision}{ending}.data")
            onnx.save(graph, files[precision + ending])
    return files


def write_static_graph(captioner: Captioner, path: Path, beam_size: int, max_words: int, tokens: int) -> Path:
    """Write the static form in float32 for one image, as a GPU takes it."""
    onnx.save(static_form(trace_captioner(captioner, Search(beam_size)), max_words, tokens), path)
    return path


def _searching(captioner: Captioner) -> Callable[[Visual], Hypotheses]:
    return lambda visual: search_to_the_end(captioner, visual, BEAM_SIZE, MAX_WORDS)


# --- the model and its inputs --------------------------------------------------------------------------


def random_visual(batch: int) -> Visual:
    """Make random tokens of the paper's size, with boxes."""
    corners = torch.rand(batch, TOKENS, 2, 2).sort(dim=2).values
    mask = torch.ones(batch, TOKENS, dtype=torch.bool)
    return Visual(torch.randn(batch, TOKENS, TOKEN_WIDTH), mask, corners.flatten(2))


def _mask(visual: Visual) -> Tensor:
    return torch.ones(visual.tokens.shape[:2], dtype=torch.bool) if visual.mask is None else visual.mask


def paper_sized(checkpoint: Path | None, count: int) -> tuple[Smart, list[Visual], str]:
    """Make a model of the paper's size, inputs of one image each, and a description of both.

    Raises:
        CheckpointError: the file is missing or malformed, or is not of a SMArT with a backbone.
    """
    if checkpoint is None:
        torch.manual_seed(0)
        model = Smart(SmartConfig(VOCABULARY_SIZE, TOKEN_WIDTH)).eval()
        return model, [random_visual(1) for _ in range(count)], "random weights, random inputs"
    trained = TrainedCaptioner.load(checkpoint)
    if trained.backbone is None:
        raise CheckpointError(f"{checkpoint} was trained on stored features; give one that has a backbone")
    if not isinstance(trained.captioner, Smart):
        raise CheckpointError(f"{checkpoint} is of the family {trained.family}; give one of the family smart")
    trained.set_image_size(IMAGE_SIZE)  # larger frames have more than TOKENS tokens
    images, origin = photographs(count)
    with torch.no_grad():
        tokens = trained.backbone(torch.from_numpy(images))
        model, widened_tokens = widened(trained.captioner, tokens)
    pairs = zip(widened_tokens.tokens.split(1), _mask(widened_tokens).split(1), strict=True)
    inputs = [Visual(tokens, mask) for tokens, mask in pairs]
    return model, inputs, f"{trained.record['name']}, widened to the paper's size, on {len(inputs)} {origin}"


def photographs(count: int) -> tuple[np.ndarray, str]:
    """Read up to ``count`` frames, (n, 224, 224, 3) uint8 BGR, and describe their source."""
    try:
        dataset = Flickr8k(data_folder() / "flickr8k")
        return dataset.read_images(dataset.split("dev")[:count]), "photographs of Flickr8k's dev split"
    except DataError:
        return np.stack(sample_frames(IMAGE_SIZE, IMAGE_SIZE)[:count]), "photographs of scikit-image"


def widened(
    small: Smart, tokens: Tensor, vocabulary_size: int = VOCABULARY_SIZE, token_width: int = TOKEN_WIDTH,
    token_count: int = TOKENS, d_ff: int = FEED_FORWARD,
) -> tuple[Smart, Visual]:  # fmt: skip
    """Enlarge a captioner by words that it never chooses, hidden units with zero weights and masked tokens.

    Tokens that are wider than ``token_width`` are projected here, and the model takes them as they are.

    Args:
        tokens: (B, n, width of ``small``).

    Returns:
        The larger model and its input, with a mask; its captions are those of ``small``.
    """
    if small.config.token_width > token_width:
        narrow = Smart(replace(small.config, token_width=token_width)).eval()
        state = small.state_dict()
        with torch.no_grad():
            tokens = tokens @ state["token_projection.weight"].T
        state["token_projection.weight"] = torch.eye(small.config.d_model)
        narrow.token_projection = nn.Linear(small.config.d_model, small.config.d_model)
        narrow.load_state_dict(state)
        small = narrow
    config = replace(small.config, vocabulary_size=vocabulary_size, token_width=token_width, d_ff=d_ff)
    large = Smart(config).eval()
    # Added words are kept from being chosen by a bias, which stays in float32 beside a product in 8 bits. Their weights
    # are zero: large ones would widen the range that 8 bits have to cover.
    large.word_projection = nn.Linear(config.d_model, vocabulary_size)
    state = large.state_dict()
    for name, value in small.state_dict().items():
        if value.shape == state[name].shape:
            state[name] = value
        else:  # added rows or columns stand behind the old ones
            state[name] = torch.zeros_like(state[name])
            state[name][tuple(slice(0, length) for length in value.shape)] = value
    state["word_projection.bias"] = torch.where(
        torch.arange(vocabulary_size) < small.config.vocabulary_size, 0.0, _NEVER_CHOSEN
    )
    large.load_state_dict(state)
    batch, count, width = tokens.shape
    wide = torch.zeros(batch, token_count, token_width)
    wide[:, :count, :width] = tokens
    return large, Visual(wide, (torch.arange(token_count) < count).expand(batch, -1).clone())


def shallow_and_deep(layers: tuple[int, ...]) -> dict[str, Callable[[Visual], object]]:
    """Make SMArT with several numbers of layers and without memory, and the other captioners of Fig. 3."""
    torch.manual_seed(0)
    smarts: dict[str, Smart] = {
        f"smart_{count}_layer{'s' if count > 1 else ''}": Smart(
            SmartConfig(VOCABULARY_SIZE, TOKEN_WIDTH, encoder_layers=count, decoder_layers=count)
        )
        for count in layers
    }
    smarts["smart_2_layers_no_memory"] = Smart(SmartConfig(VOCABULARY_SIZE, TOKEN_WIDTH, memory_slots=0))
    captioners: dict[str, Captioner] = {name: ReorderedCache(smart.eval()) for name, smart in smarts.items()}
    captioners["object_relation_6_layers"] = ObjectRelation(ObjectRelationConfig(VOCABULARY_SIZE, TOKEN_WIDTH)).eval()
    captioners["up_down"] = UpDown(UpDownConfig(VOCABULARY_SIZE, TOKEN_WIDTH)).eval()
    return {name: _searching(captioner) for name, captioner in captioners.items()}


# --- comparing and reporting ---------------------------------------------------------------------------


def agreement(searches: Mapping[str, Callable[[Visual], Any]], inputs: list[Visual]) -> dict[str, Any]:
    """Count the best captions that are equal to the published style's, and compare their log probabilities."""
    expected = [_best(searches["published_style"](visual)) for visual in inputs]
    found: dict[str, Any] = {
        "captions": len(inputs),
        "mean_words": round(float(np.mean([len(words) for words, _ in expected])), 2),
    }
    for name, search in searches.items():
        same, largest = 0, 0.0
        for visual, (words, log_probabilities) in zip(inputs, expected, strict=True):
            our_words, ours = _best(search(visual))
            if np.array_equal(our_words, words):
                same += 1
                largest = max(largest, float(np.abs(ours - log_probabilities).max()))
        found[name] = {"same_captions": same, "largest_log_probability_difference": float(f"{largest:.1e}")}
    return found


def _best(found: Any) -> tuple[np.ndarray, np.ndarray]:
    """Read the words of the best beam, end token included, and their log probabilities."""
    kinds = ("words", "log_probabilities")
    words, log_probabilities = (
        found[kind] if isinstance(found, dict) else getattr(found, kind).numpy() for kind in kinds
    )
    ended = np.flatnonzero(words[0, 0] == Vocabulary.end_id)
    length = int(ended[0]) + 1 if ended.size else words.shape[2]
    return words[0, 0, :length], log_probabilities[0, 0, :length]


def over_batches(variants: Mapping[str, Callable[[Visual], object]], batches: Mapping[int, int]) -> dict[str, Any]:
    """Measure milliseconds by variant and batch size, on random tokens."""
    torch.manual_seed(0)
    taken: dict[str, Any] = {name: {} for name in variants}
    for batch, rounds in batches.items():
        for name, times in measure(variants, [random_visual(batch)], rounds).items():
            taken[name][str(batch)] = times
    return taken


def plot(result: Mapping[str, Any], path: Path) -> None:
    """Plot time over batch size, as Fig. 3 of the SMArT paper."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 5), layout="constrained")
    for name, by_batch in {**result["layers"], **result["batches"]}.items():
        batches = [int(batch) for batch in by_batch]
        medians, low, high = ([by_batch[str(b)][f"cpu_ms_{key}"] for b in batches] for key in ("median", "p5", "p95"))
        ours = name.startswith("onnx")
        (line,) = axes.plot(batches, medians, "-o" if ours else "--o", label=name.replace("_", " "), markersize=4)
        axes.fill_between(batches, low, high, color=line.get_color(), alpha=0.2)
    axes.set(xscale="log", yscale="log", xlabel="images at once", ylabel="CPU time of decoding, ms")
    axes.set_title(f"{result['threads']} thread, {result['hardware']['processor']}, {result['date']}", fontsize=9)
    axes.set_xticks(batches, [str(batch) for batch in batches])
    axes.minorticks_off()
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    with replaced_atomically(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=150)


def _say(section: str) -> None:
    print(f"measuring: {section}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
