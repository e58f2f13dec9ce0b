"""Graphs of tiny captioners; tracing takes seconds, so the tests of one process share them."""

import functools

from export.storage import round_to_float16
from export.trace import trace_captioner
from smart_caption_ros.captioning.search import Search
from tests.tiny_model import tiny_captioner
from training.models import FAMILIES

BEAMS = 4
TRACED = tuple(family for family in FAMILIES if family not in ("blip", "florence2", "smolvlm", "transformer"))
"""Families whose graphs the tests compare with torch: export/test_generate.py compares bundles of published captioners
with transformers, and a plain Transformer is SMArT without memory."""


@functools.cache
def tiny_traced(family, search=Search(BEAMS)):  # noqa: B008 - frozen
    """A captioner of :func:`tests.tiny_model.tiny_captioner` and its graphs; do not change them.

    Its weights are rounded to what 16 bits hold, as those of an exported captioner are.
    """
    captioner = tiny_captioner(family)
    round_to_float16(captioner)
    return captioner, trace_captioner(captioner, search)
