"""The caption node as a process that ends without a reason at its thirtieth caption."""

import itertools
import os
import sys

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.nodes.caption_command import main

CAPTION, CALLS = Captioner.caption, itertools.count(1)


def dying_caption(self, *arguments, **options):
    """Caption an image, or end the process."""
    if next(CALLS) == 30:
        os._exit(3)
    return CAPTION(self, *arguments, **options)


if __name__ == "__main__":
    Captioner.caption = dying_caption
    sys.exit(main())
