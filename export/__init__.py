"""Export of trained captioners as bundles: ONNX graphs, their precision and storage, comparison with torch.

A workstation's tool, run from the checkout: ``python -m export CHECKPOINT BUNDLE``.
"""

import smart_caption_ros  # noqa: F401  (before onnxruntime, which it keeps from reporting usage)
from training.missing_packages import report_missing_packages

report_missing_packages("training")
