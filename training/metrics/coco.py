"""BLEU-1..4, ROUGE-L and CIDEr by pycocoevalcap, on captions that are tokenised already.

Both sides are tokenised by the training tokeniser (lower case, no punctuation), so no Java is needed and a run
can be scored after every epoch.
"""

import contextlib
import io

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge


def score_captions(candidates: dict[str, str], references: dict[str, list[str]]) -> dict[str, float]:
    """Corpus scores.

    Args:
        candidates: a caption of space-joined tokens for each image.
        references: the human captions of the same images, likewise.

    Returns:
        ``bleu_1`` .. ``bleu_4``, ``rouge_l`` in [0, 1] and ``cider``.

    Raises:
        ValueError: the two do not name the same images.
    """
    if candidates.keys() != references.keys():
        raise ValueError("candidates and references must name the same images")
    generated = {image: [caption] for image, caption in candidates.items()}
    with contextlib.redirect_stdout(io.StringIO()):  # the toolkit prints its ratio
        bleu, _ = Bleu(4).compute_score(references, generated)
        rouge, _ = Rouge().compute_score(references, generated)
        cider, _ = Cider().compute_score(references, generated)
    bleus = {f"bleu_{n}": float(value) for n, value in enumerate(bleu, 1)}
    return {**bleus, "rouge_l": float(rouge), "cider": float(cider)}
