"""Pictures for people: a caption on its frame, and many frames on one sheet."""

from smart_caption_ros.viewing.contact_sheet import ContactSheet, contact_sheet
from smart_caption_ros.viewing.files import PICTURE_SUFFIXES, write_picture, write_png
from smart_caption_ros.viewing.overlay import draw_overlay

__all__ = ["PICTURE_SUFFIXES", "ContactSheet", "contact_sheet", "draw_overlay", "write_picture", "write_png"]
