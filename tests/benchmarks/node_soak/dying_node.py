"""The caption node as a process that ends without a reason at its thirtieth caption."""

import itertools
import os
import sys
from typing import Any

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.nodes.caption_command import main

CAPTION, CALLS = Captioner.caption, itertools.count(1)


def dying_caption(self: Captioner, *arguments: Any, **options: Any) -> Any:
    """Caption an image, or end the process."""
    if next(CALLS) == 30:
        os._exit(3)
    return CAPTION(self, *arguments, **options)


if __name__ == "__main__":
    Captioner.caption = dying_caption  # type: ignore[method-assign]
    sys.exit(main())
