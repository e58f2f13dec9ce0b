"""Shared parts of the metrics of pretrained networks, whose weights are in local folders that the user provides.

Nothing is downloaded. The folders are those of ``transformers``' ``save_pretrained``, with the tokeniser's files.
"""

from pathlib import Path
from typing import Any

from training.evaluation.metrics.metric import MetricError
from training.vision.torchvision_operators import declare_torchvision_operators

CLIP_S, PAC_S, BERT_S = "clip_s", "pac_s", "bert_s"
"""Names of the metrics, and of their folders of weights."""


def load_network(folder: Path, kind: str) -> tuple[Any, Any]:
    """Load the tokeniser and a network of a class of transformers, in evaluation mode.

    Raises:
        MetricError: transformers is not installed, or the folder is missing or has no such network.
    """
    if not folder.is_dir():
        raise MetricError(f"needs weights at {folder} (docs/evaluation.md)")
    declare_torchvision_operators()
    try:
        import transformers
    except ImportError as error:
        raise MetricError(f"needs transformers ({error}); pip install '.[metrics]'") from None
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = getattr(transformers, kind).from_pretrained(folder, local_files_only=True)
    except Exception as error:  # the library raises almost anything
        reason = str(error).strip().split("\n")[0]
        raise MetricError(f"{folder} has no {kind} that transformers reads ({reason})") from None
    return tokenizer, model.float().eval()
