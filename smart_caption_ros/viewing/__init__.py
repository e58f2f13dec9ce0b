"""Pictures for people: a caption on its frame, and many frames on one sheet."""

from .contact_sheet import contact_sheet
from .overlay import draw_overlay

__all__ = ["contact_sheet", "draw_overlay"]
