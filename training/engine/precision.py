"""The precision of a run whose experiment leaves it open (``precision: auto``): the faster one on this device.

Instructions for bf16 do not mean that bf16 is faster on a CPU: an Intel with avx512_bf16 and no AMX is twice as fast in
float32. The model's own product is therefore timed there. GPUs with bf16 instructions are always faster with them;
older ones get fp16.
"""

import time
from typing import NamedTuple

import torch
from torch import nn

from training.configs.schema import ExperimentConfig, Precision

ROWS_PER_IMAGE = 64
"""Rows of the timed product for each image of a batch: about its grid cells, or the words of its captions."""
MAX_ROWS = 512
"""Most rows that are timed: with more the products are not faster, and only the measurement takes longer."""
ROUNDS = 3

OVERRIDE = "`precision:` in the experiment file overrides it"


class PrecisionChoice(NamedTuple):
    """The precision of a run."""

    precision: Precision
    """``fp32``, ``bf16`` or ``fp16``."""
    message: str | None = None
    """Sentence for the user; None if there was nothing to choose."""


def has_bf16_instructions(device: torch.device) -> bool:
    """Return whether a device has instructions for products in bf16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def measure_speeds(rows: int, width: int, inner_width: int) -> tuple[float, float]:
    """Time a linear layer, (rows, width) x (width, inner_width), with its gradients on the CPU, as autocast computes
    it, with the present number of threads.

    Returns:
        GFLOPS in float32 and in bf16. Time in which other processes had the processor does not count.
    """
    with torch.random.fork_rng(devices=[]):
        layer, x = nn.Linear(width, inner_width), torch.randn(rows, width)
    x.requires_grad_()
    seconds: dict[bool, list[float]] = {False: [], True: []}
    # The first round is not counted: oneDNN compiles its kernels at their first use.
    for _ in range(1 + ROUNDS):
        for bf16, measured in seconds.items():
            started = time.thread_time()
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                y = layer(x)
            torch.autograd.grad(y, [x, layer.weight], torch.ones_like(y))
            measured.append(time.thread_time() - started)
    operations = 6 * rows * width * inner_width
    fp32, bf16_speed = (operations / min(measured[1:]) / 1e9 for measured in seconds.values())
    return fp32, bf16_speed


def product_of(config: ExperimentConfig, processes: int) -> tuple[int, int, int]:
    """Return rows, width and inner width of the product of an experiment's model that is timed: its feed-forward layer
    on the rows of one process.
    """
    phase = config.phases[0]
    images = max(1, phase.images_per_batch // (phase.accumulate * processes))
    sizes = config.model
    width = sizes.get("d_model", 512)
    return min(MAX_ROWS, ROWS_PER_IMAGE * images), width, sizes.get("d_ff", 4 * width)


def choose_precision(
    config: ExperimentConfig, device: torch.device, processes: int = 1, former: Precision | None = None
) -> PrecisionChoice:
    """Choose the precision of a run.

    A run keeps the precision that it began with, unless its experiment now names another one, or it continues on a
    device without instructions for it.
    ``former``: precision of a resumed run so far; None for a new run.
    """
    native = has_bf16_instructions(device)
    precision: Precision
    if config.precision != "auto":
        precision, reason = config.precision, "as the experiment file says"
    elif not native:
        # GPUs before Ampere, such as V100 and T4, have fast products in fp16 alone.
        precision = "fp16" if device.type == "cuda" else "fp32"
        reason = "because this device has no bf16 instructions"
    elif former:
        return PrecisionChoice(former, f"precision: {former}, with which this run began ({OVERRIDE})")
    elif device.type == "cuda":
        precision, reason = "bf16", ""
    else:
        rows, width, inner_width = product_of(config, processes)
        fp32, bf16 = measure_speeds(rows, width, inner_width)
        precision = "bf16" if bf16 > fp32 else "fp32"
        return PrecisionChoice(
            precision,
            f"precision: {precision}, the faster one here: {bf16:.0f} GFLOPS in bf16 and {fp32:.0f} in fp32 in a "
            f"linear layer of {width} x {inner_width} ({OVERRIDE})",
        )
    if former not in (None, precision):
        return PrecisionChoice(precision, f"precision: {precision} from here on, {reason}; this run began in {former}")
    return PrecisionChoice(precision)
