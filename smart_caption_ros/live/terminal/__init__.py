"""Live captions on a terminal: a view that follows a feed, and plain lines for pipes."""

from smart_caption_ros.live.terminal.lines import caption_line, print_lines
from smart_caption_ros.live.terminal.watching import watch

__all__ = ["caption_line", "print_lines", "watch"]
