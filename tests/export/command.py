"""``python -m export`` within the process of the tests, which traces the same weights once."""

import contextlib
import copy
import hashlib
import io
import sys
from typing import NamedTuple

import pytest

from export import graphs, pipeline, source
from export.__main__ import main
from export.trace import trace_captioner
from export.vision import export_vision


class Done(NamedTuple):
    """What the command did."""

    status: int
    out: str
    err: str


def remembered(function):
    """Call ``function(module, ...)`` once for the same weights and options; its results are copies."""
    results = {}

    def call(module, *arguments, **options):
        # The size of a backbone's frames is neither in its weights nor in its description.
        digest = hashlib.sha256(f"{module} {getattr(module, 'spec', None)}".encode())
        for name, tensor in module.state_dict().items():
            digest.update(name.encode() + tensor.numpy().tobytes())
        key = (digest.digest(), arguments, tuple(options.items()))
        if key not in results:
            results[key] = function(module, *arguments, **options)
        return copy.deepcopy(results[key])

    return call


TRACE, VISION = remembered(trace_captioner), remembered(export_vision)


def export(*arguments):
    """Run the command without data sets."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["export", *map(str, arguments)])
        patch.setenv("SMART_CAPTION_DATA", "/nowhere")
        patch.setattr(graphs, "trace_captioner", TRACE)
        patch.setattr(source, "export_vision", VISION)
        patch.setattr(pipeline, "export_vision", VISION)
        status = main()
    return Done(status, out.getvalue(), err.getvalue())
