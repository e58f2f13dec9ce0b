"""Frame sources: images from files, folders, sequences, videos, bags and cameras, behind one interface.

`open_source(spec)` takes an image file, a folder of images, sequences in ACVR's layout, a video file, a ROS 2 bag (its
folder, or a .mcap or .db3 file), the index or device of a camera ("0", "/dev/v4l/by-id/..."), an rtsp:// address,
"sample:household" (the sequences in this package) or "sample:photographs".
"""

from pathlib import Path

from smart_caption_ros.sources.bag import Bag
from smart_caption_ros.sources.image_folder import ImageFolder, SamplePhotographs
from smart_caption_ros.sources.sequences import Sequences
from smart_caption_ros.sources.source import Frame, FrameSource, SourceError
from smart_caption_ros.sources.video import Video
from smart_caption_ros.sources.webcam import RtspStream, Webcam

__all__ = ["Frame", "FrameSource", "SourceError", "open_source"]

# The first class that accepts a spec opens it. A new source needs a module and an entry here.
_SOURCES: tuple[type[FrameSource], ...] = (Sequences, SamplePhotographs, RtspStream, Webcam, Bag, ImageFolder, Video)


def open_source(spec: str | Path, *, topic: str | None = None) -> FrameSource:
    """Open the source that `spec` names.

    Args:
        spec: see the module's description. A number is a camera: write "./0" for a folder called 0.
        topic: the image topic of a bag; not needed for a bag with one image topic.

    Raises:
        SourceError: the spec names no source, or one that cannot be opened.
    """
    text = str(spec)
    for kind in _SOURCES:
        if kind.accepts(text):
            break
    else:
        raise SourceError(f"there is no file or folder {text}" if text else "no image source was named")
    if kind is Bag:
        return Bag(text, topic=topic or None)
    if topic:
        raise SourceError(f"a topic was given ({topic}), but {text} is not a ROS 2 bag")
    return kind(text)
