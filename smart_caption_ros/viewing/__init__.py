"""Draw captions on their frames, lay pictures out on contact sheets, and write PNG and JPEG files."""

from smart_caption_ros.viewing.contact_sheet import ContactSheet, contact_sheet
from smart_caption_ros.viewing.files import PICTURE_SUFFIXES, encode_picture, write_picture
from smart_caption_ros.viewing.overlay import draw_overlay

__all__ = ["PICTURE_SUFFIXES", "ContactSheet", "contact_sheet", "draw_overlay", "encode_picture", "write_picture"]
