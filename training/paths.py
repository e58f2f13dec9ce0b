"""Where the data sets are."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def data_folder() -> Path:
    """``SMART_CAPTION_DATA``, else ``../shared/data`` beside the checkout."""
    return Path(os.environ.get("SMART_CAPTION_DATA", CHECKOUT.parent / "shared" / "data"))
