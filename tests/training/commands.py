"""Commands of training within the process of the tests, which has loaded PyTorch already."""

import contextlib
import io
import subprocess
import sys

import pytest
import torch


def run_here(main, *arguments, data=None):
    """Run a command's ``main`` with its arguments and the data sets' folder, if any; threads are set back."""
    out, err, threads = io.StringIO(), io.StringIO(), torch.get_num_threads()
    given = ["command", *map(str, arguments)]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", given)
        if data is not None:
            patch.setenv("SMART_CAPTION_DATA", str(data))
        try:
            status = main()
        finally:
            torch.set_num_threads(threads)
    return subprocess.CompletedProcess(given, status, out.getvalue(), err.getvalue())
