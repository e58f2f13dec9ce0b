"""Contents of imaginary rooms, as the teacher networks would find them, and known words."""

from recipes.image_content import FoundObject, ImageContent, SegmentedArea
from recipes.rooms.evidence import collect_evidence
from training.data.tokenizer import tokenize

KNOWN = frozenset(
    tokenize(
        """there is are a an the sink under window walls white blue chair two four table lamp book on next to bed in of
        front room bedroom kitchen with couch trash can this large rug picture wall door nightstand pillow it has"""
    )
)


def objects(*found: tuple[str, float, tuple[float, float, float, float]], colour: str = "") -> tuple[FoundObject, ...]:
    return tuple(FoundObject(name, score, box, colour) for name, score, box in found)


def areas(**shares: float) -> tuple[SegmentedArea, ...]:
    return tuple(SegmentedArea(name, share, "white") for name, share in shares.items())


LEFT, RIGHT = (0.0, 0.0, 0.3, 0.5), (0.6, 0.0, 0.9, 0.5)
BEDROOM = collect_evidence(
    "bedroom", ImageContent(objects(("bed", 0.9, LEFT), ("chair", 0.8, RIGHT)), areas(wall=0.3, windowpane=0.1))
)
