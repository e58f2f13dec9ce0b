"""The feed of the captions that running nodes publish; see :mod:`smart_caption_ros.live`."""

from smart_caption_ros.nodes.live.caption_feed import FeedImages, RosCaptionFeed

__all__ = ["FeedImages", "RosCaptionFeed"]
