"""Graphs of tiny captioners; tracing takes seconds, so the tests of one process share them."""

import functools

from export.storage import round_to_float16
from export.trace import trace_captioner
from smart_caption_ros.captioning.search import Search
from tests.tiny_model import tiny_captioner
from training.models import FAMILIES

BEAMS = 4
COVERED = ("object_relation", "up_down", "smart", "smolvlm", "transformer")
TRACED = tuple(family for family in FAMILIES if family not in COVERED)
"""Families whose graphs the tests compare with torch one by one. The ensemble's members are the first two others;
export/test_exported_bundle.py compares SMArT's, of which a plain Transformer is the form without memory; and
export/test_generate.py compares a SmolVLM's with transformers."""


@functools.cache
def tiny_traced(family, search=Search(BEAMS)):  # noqa: B008 - frozen
    """A captioner of :func:`tests.tiny_model.tiny_captioner` and its graphs; do not change them.

    Its weights are rounded to what 16 bits hold, as those of an exported captioner are.
    """
    captioner = tiny_captioner(family)
    round_to_float16(captioner)
    return captioner, trace_captioner(captioner, search)
