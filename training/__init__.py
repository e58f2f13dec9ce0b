"""A workstation's tools: models, data, objectives, metrics, and the commands that train and evaluate.

Run from the checkout (``python -m training.train CONFIG``) in an environment with ``.[training]``.
This package may import :mod:`smart_caption_ros`; never the other way round.
"""

import smart_caption_ros  # noqa: F401  (before onnxruntime, which it keeps from reporting usage)
from training.missing_packages import report_missing_packages

report_missing_packages("training")
