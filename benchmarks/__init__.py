"""Benchmarks of speed and quality. Each prints JSON with the versions, the hardware and the seed."""

import smart_caption_ros  # noqa: F401  (before onnxruntime, which it keeps from reporting usage)
from training.missing_packages import report_missing_packages

report_missing_packages("benchmarks")
