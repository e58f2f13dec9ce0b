"""Pictures for people: a caption on its frame, and many frames on one sheet."""

from smart_caption_ros.viewing.contact_sheet import contact_sheet
from smart_caption_ros.viewing.overlay import draw_overlay
from smart_caption_ros.viewing.png import write_png

__all__ = ["contact_sheet", "draw_overlay", "write_png"]
