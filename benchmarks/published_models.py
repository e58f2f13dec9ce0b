"""Compare published captioners with the default bundle: time of a caption, memory, sizes, cost of the import.

    python -m benchmarks.published_models [--only NAME ...] [--image-size PIXELS] [--json FILE]

No released weights are needed: models of the published architectures and sizes, with random weights, are saved as
transformers saves them and imported by ``python -m export.import_checkpoint``, in float32 and in int8. All bundles
search with the same beams for the same number of words, which the bias of the end token and the minimum length
enforce; the default bundle captions as it does on a robot. The bundles take turns on every frame. A model takes 8 GB of
memory and some minutes.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.environment import describe_environment, report
from benchmarks.latency import sample_frames
from benchmarks.timing import measure
from export.import_checkpoint.text_decoders import special_ids
from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.captioning.bundle import VISION_GRAPH, Bundle
from smart_caption_ros.measuring.benchmark import measure_start
from training.command_line import JsonOption, run_command
from training.vision.torchvision_operators import declare_torchvision_operators

ENGINE = "onnxruntime-cpu"
BEAMS, WORDS = 5, 20
QUESTION = "Describe it."
"""Prompt of chat models. Its letters are tokens here: about as many as a sentence has in a trained model."""
PRECISIONS = ("float32", "int8")
_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}


class ImportFailedError(Exception):
    """A command ended with an error; the message is its last line."""


@dataclass(frozen=True)
class Published:
    """A published model."""

    format: str
    """Format for ``export.import_checkpoint``."""
    build: Callable[[], Any]
    """Creates the transformers model with random weights."""
    processor: str
    """Class of its image processor."""
    frame: int
    """Width and height of its frames."""
    beams: int = BEAMS
    prompt: str = ""


def _git(**vision: Any) -> Any:
    from transformers import GitConfig, GitForCausalLM

    return GitForCausalLM(GitConfig(vision_config=vision))


def _blip(**vision: Any) -> Any:
    from transformers import BlipConfig, BlipForConditionalGeneration

    return BlipForConditionalGeneration(BlipConfig(text_config={"num_attention_heads": 12}, vision_config=vision))


def _vit_gpt2() -> Any:
    from transformers import GPT2Config, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

    decoder = GPT2Config(pad_token_id=50256)
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(), decoder)
    config.decoder_start_token_id = config.eos_token_id = config.pad_token_id = decoder.eos_token_id
    return VisionEncoderDecoderModel(config=config)


def _smolvlm(width: int, heads: int, layers: int) -> Any:
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration

    text = {
        "hidden_size": width, "intermediate_size": width * 8 // 3, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": heads // 3, "vocab_size": 49280, "rope_theta": 1e5,
        "max_position_embeddings": 8192, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2,
    }  # fmt: skip
    vision = {"hidden_size": 768, "num_attention_heads": 12, "image_size": 512, "patch_size": 16}
    config = Idefics3Config(text_config=text, vision_config=vision, scale_factor=4, image_token_id=4)
    return Idefics3ForConditionalGeneration(config)


def _florence2(width: int, layers: int, heads: int, **vision: Any) -> Any:
    from transformers import Florence2Config, Florence2ForConditionalGeneration

    sizes = {"layers": layers, "attention_heads": heads, "ffn_dim": 4 * width}
    text: dict[str, Any] = {f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in sizes.items()}
    text |= {"model_type": "bart", "d_model": width, "vocab_size": 51328}
    vision["projection_dim"] = width
    return Florence2ForConditionalGeneration(Florence2Config(vision_config=vision, text_config=text))


_LARGE_DAVIT = {"embed_dim": (256, 512, 1024, 2048), "num_heads": (8, 16, 32, 64), "num_groups": (8, 16, 32, 64)}
MODELS: Mapping[str, Published] = {
    "git-base": Published("git", _git, "CLIPImageProcessor", 224),
    "git-large": Published("git", lambda: _git(**_LARGE, patch_size=14), "CLIPImageProcessor", 224),
    "blip-base": Published("blip", _blip, "BlipImageProcessor", 384),
    "blip-large": Published("blip", lambda: _blip(**_LARGE), "BlipImageProcessor", 384),
    "vit-gpt2": Published("vision-encoder-decoder", _vit_gpt2, "ViTImageProcessor", 224),
    "smolvlm-256m": Published("smolvlm", lambda: _smolvlm(576, 9, 30), "Idefics3ImageProcessor", 512, 1, QUESTION),
    "smolvlm-500m": Published("smolvlm", lambda: _smolvlm(960, 15, 32), "Idefics3ImageProcessor", 512, 1, QUESTION),
    "florence2-base": Published(
        "florence2", lambda: _florence2(768, 6, 12), "ViTImageProcessor", 768, prompt="<CAPTION>"
    ),
    "florence2-large": Published(
        "florence2", lambda: _florence2(1024, 12, 16, **_LARGE_DAVIT), "ViTImageProcessor", 768, prompt="<CAPTION>"
    ),
}
DEFAULT = ("git-base", "blip-base", "vit-gpt2")


def published_models(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=f"Of {', '.join(MODELS)} (default: {', '.join(DEFAULT)}).")
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(help="Width and height of the frames of the models (default: the published).")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="Number of times that each frame is captioned.")] = 2,
    json_file: JsonOption = None,
) -> None:
    """Measure published captioners with random weights beside the default bundle: time, memory, sizes."""
    names = only or list(DEFAULT)
    if unknown := [name for name in names if name not in MODELS]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(MODELS)}", param_hint="--only")
    models = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            models[name] = measured(name, Path(folder), image_size, threads, rounds)
    result = {
        **describe_environment(seed=0),
        "threads": threads,
        "beam_size": BEAMS,
        "words": WORDS,
        "frames": "photographs of scikit-image at 640x480",
        "image_size": image_size or "as published",
        "models": models,
    }
    report(result, json_file)


def measured(name: str, folder: Path, image_size: int | None, threads: int, rounds: int) -> dict[str, Any]:
    """Save, import and measure a model; its files are written into ``folder``."""
    model = MODELS[name]
    print(f"{name}: saving random weights", file=sys.stderr, flush=True)
    write_model(model, folder / name)
    bundles: dict[str, Path] = {}
    imports: dict[str, Any] = {}
    for precision in PRECISIONS:
        print(f"{name}: importing, {precision}", file=sys.stderr, flush=True)
        bundles[precision] = folder / precision
        imports[precision] = import_model(model, folder / name, bundles[precision], precision, image_size)
    captioners = {"default": Captioner.from_bundle(engine=ENGINE, threads=threads)}
    captioners |= {
        precision: Captioner.from_bundle(bundle, engine=ENGINE, threads=threads)
        for precision, bundle in bundles.items()
    }
    frames = sample_frames(640, 480)
    print(f"{name}: measuring", file=sys.stderr, flush=True)
    steps = {label: captioner.caption(frames[0]).timing.steps for label, captioner in captioners.items()}
    times = measure({label: captioner.caption for label, captioner in captioners.items()}, frames, rounds)
    default = times["default"]["cpu_ms_median"]
    return {
        "default_ms": default,
        **{
            precision: {
                "cpu_ms": times[precision]["cpu_ms_median"],
                "times_default": round(times[precision]["cpu_ms_median"] / default, 2),
                "steps": steps[precision],
                "peak_rss_mb": measure_start(bundle, ENGINE, threads).get("peak_rss_mb"),
                **sizes(bundle),
                "import": imports[precision],
            }
            for precision, bundle in bundles.items()
        },
    }


def sizes(bundle: Path) -> dict[str, float]:
    """Return the sizes of a bundle's vision graph and of all its files, in 10^6 bytes."""
    files = Bundle.load(bundle).manifest["files"]
    return {
        "vision_mb": round(files[VISION_GRAPH]["bytes"] / 1e6, 1),
        "bundle_mb": round(sum(file["bytes"] for file in files.values()) / 1e6, 1),
    }


def write_model(model: Published, folder: Path) -> None:
    """Save a model with random weights, its words and its image processor, as transformers saves them."""
    import torch

    torch.manual_seed(0)
    declare_torchvision_operators()
    made = model.build()
    count = made.config.get_text_config(decoder=True).vocab_size
    made.config.architectures = [type(made).__name__]
    frame = special_ids(made.config.to_dict())
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.endswith(("output.bias", "predictions.bias", "decoder.bias")) and len(parameter) == count:
                # Logits differ by more than rounding to 8 bits, as in a trained model, and no caption ends early.
                parameter.normal_(std=10.0)
                parameter[frame.end] = -100.0
    made.save_pretrained(folder)
    if model.format == "smolvlm":
        _write_chat(folder, count)
    elif model.format == "vision-encoder-decoder":
        pieces = {f"Ġw{index}": index for index in range(count)}
        pieces = {piece: index for piece, index in pieces.items() if index != frame.end} | {"<|endoftext|>": frame.end}
        (folder / "vocab.json").write_text(json.dumps(pieces))
    elif model.format == "florence2":
        from transformers import BartTokenizer

        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        BartTokenizer(tokenizer_object=_byte_pairs(special, count)).save_pretrained(folder)
    else:
        words = [f"w{index}" for index in range(count)]
        words[1], words[frame.padding], words[frame.begin], words[frame.end] = "[UNK]", "[PAD]", "[CLS]", "[SEP]"
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    size = {"height": model.frame, "width": model.frame}
    processor = {
        "image_processor_type": model.processor, "size": size, "resample": 3, "rescale_factor": 1 / 255,
        "do_rescale": True, "do_resize": True, "do_normalize": True,
        "image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28],
    }  # fmt: skip
    if model.processor == "CLIPImageProcessor":
        processor |= {"size": {"shortest_edge": model.frame}, "do_center_crop": True, "crop_size": size}
    if model.format == "smolvlm":
        processor |= {"size": {"longest_edge": 4 * model.frame}, "max_image_size": {"longest_edge": model.frame}}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    search = {"max_new_tokens": WORDS, "min_new_tokens": WORDS - 1, "num_beams": model.beams, "length_penalty": 0.0}
    (folder / "generation_config.json").write_text(json.dumps(search))


def _byte_pairs(special: Sequence[str], count: int) -> Any:
    """Create a tokeniser as of BART and SmolVLM with ``count`` pieces, which include all bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    pieces += [f"Ġw{index}" for index in range(len(pieces), count)]
    tokenizer = Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _write_chat(folder: Path, count: int) -> None:
    """Save a tokeniser of ``count`` pieces with a chat template."""
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast

    special = [
        "<|endoftext|>", "<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>", "<image>", "<global-img>",
    ]  # fmt: skip
    tokenizer = _byte_pairs(special, count)
    tokenizer.add_special_tokens([AddedToken(word, normalized=False) for word in special])
    template = (
        "<|im_start|>User:{% for line in messages[0]['content'] %}"
        "{{ '<image>' if line['type'] == 'image' else line['text'] }}{% endfor %}<end_of_utterance>\nAssistant:"
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=special[1], eos_token=special[2], pad_token=special[2],
        unk_token=special[0], chat_template=template,
    ).save_pretrained(folder)  # fmt: skip


def import_model(
    model: Published, folder: Path, bundle: Path, precision: str, image_size: int | None = None
) -> dict[str, float]:
    """Run the command of the import; return its duration and its peak memory.

    Raises:
        ImportFailedError: it failed.
    """
    command = [sys.executable, "-m", "export.import_checkpoint", model.format, str(folder), "-o", str(bundle)]
    command += ["--prompt", model.prompt, "--precision", precision, "--check-images", "2"]
    command += [] if image_size is None else ["--image-size", str(image_size)]
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            errors.seek(0)
            raise ImportFailedError(f"{' '.join(command)}: {errors.read().strip().splitlines()[-1]}")
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "peak_rss_mb": round(usage.ru_maxrss * 1024 / 1e6, 1),
    }


def main() -> int:
    errors = (BundleError, EngineError, ImportFailedError)
    return run_command(published_models, "python -m benchmarks.published_models", errors)


if __name__ == "__main__":
    sys.exit(main())
