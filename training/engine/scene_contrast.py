"""Make a captioner contrastive: find kinds of scenes, and learn what the captioner says in each of them.

The captioner itself stays as it is (:mod:`training.models.contrastive`). Its language model of scenes learns the mean
of the captioner's predictions over the photographs of a scene: for a photograph and the captioner's captions of other
photographs of the scene, it learns the probabilities that the captioner gives to each next word.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from torch import Tensor
from tqdm import tqdm

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.data.photograph_inputs import visual_of_images
from training.data.scene_photographs import ScenePhotograph
from training.decoding.beam_search import SearchSettings, beam_search
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, DataError
from training.models.captioner import PADDING_ID, Captioner, Visual
from training.models.contrastive import Contrastive, ContrastiveConfig
from training.models.families import SINGLE_FAMILIES
from training.models.members import member_config

CONTRASTIVE, CONTRAST = "contrastive", "contrast"
"""The family, and the key of the record: settings and numbers of photographs."""
_AT_A_TIME, _IMAGES_PER_BATCH, _CAPTIONS_OF_AN_IMAGE = 20, 32, 6
_LEARNING_RATE = 3e-3
_CLUSTERING_ROUNDS = 20


@dataclass(frozen=True)
class ContrastSettings:
    """Settings of :func:`make_contrastive`; a dev split should choose the strength.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    strength: float = 0.2
    """Share of the difference of the log probabilities that is added, in scenes inside buildings."""
    scenes: int = 12
    """Kinds of scenes inside buildings."""
    other_scenes: int = 24
    """Kinds of other scenes, which have no contrast."""
    opening_words: int = 4
    """Words at the beginning of a caption that are not contrasted."""
    epochs: int = 6
    """Epochs of the language model."""
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("strength", "opening_words"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, not {getattr(self, name)}")
        for name in ("scenes", "other_scenes", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


def make_contrastive(
    trained: TrainedCaptioner, photographs: Sequence[ScenePhotograph], settings: ContrastSettings, max_words: int
) -> TrainedCaptioner:
    """Contrast a captioner with what it says in other frames of the same kind of scene.

    Args:
        trained: a captioner of frames, of a single family; it is not changed.
        photographs: inside buildings and elsewhere, none of them measured.
        settings: of the contrast.
        max_words: longest caption, end token included.

    Raises:
        CheckpointError: the captioner takes no frames, or is an ensemble or contrastive already.
        DataError: there is no photograph inside or none elsewhere, or one cannot be read.
    """
    if trained.backbone is None:
        raise CheckpointError("contrast needs a captioner of frames; this one takes stored features")
    if trained.family not in SINGLE_FAMILIES:
        raise CheckpointError(f"contrast needs a single captioner, not one of the family {trained.family}")
    inside = [photograph for photograph in photographs if photograph.inside]
    elsewhere = [photograph for photograph in photographs if not photograph.inside]
    if not inside or not elsewhere:
        raise DataError("contrast needs photographs inside buildings and elsewhere")
    with tempfile.TemporaryDirectory() as folder:
        # Two gigabytes for 4,000 photographs of 9 x 9 tokens.
        tokens = _tokens(trained, inside, Path(folder) / "tokens.npy")
        means = np.stack([frame.mean(axis=0, dtype=np.float32) for frame in tokens])
        other_means = np.stack([frame.mean(axis=0, dtype=np.float32) for frame in _frames(trained, elsewhere)])
        inside_centres = _centres(means, settings.scenes, settings.seed)
        centres = np.concatenate([inside_centres, _centres(other_means, settings.other_scenes, settings.seed)])
        contrastive = _construct(trained.captioner, trained.family, centres, settings.opening_words)
        scenes = contrastive.scene_of(Visual(torch.from_numpy(means)[:, None])).numpy()
        beams = _captions(trained, tokens, max_words)
        members = {scene: np.flatnonzero(scenes == scene) for scene in range(len(inside_centres))}
        members = {scene: places for scene, places in members.items() if len(places)}
        _learn(contrastive, tokens, beams, members, settings)
        with torch.no_grad():
            contrastive.scene_strengths.zero_()
            contrastive.scene_strengths[list(members)] = settings.strength
    record = {key: value for key, value in trained.record.items() if key != "dev"}
    record[CONTRAST] = {**asdict(settings), "photographs": [len(inside), len(elsewhere)]}
    return replace(trained, family=CONTRASTIVE, captioner=contrastive.eval(), record=record)


def without_contrast(trained: TrainedCaptioner) -> TrainedCaptioner:
    """Return the captioner inside a contrastive one, to go on training it; any other captioner as it is."""
    if not isinstance(trained.captioner, Contrastive):
        return trained
    record = {key: value for key, value in trained.record.items() if key not in ("dev", CONTRAST)}
    family = trained.captioner.config.member["family"]
    return replace(trained, family=family, captioner=trained.captioner.captioner, record=record)


def _frames(trained: TrainedCaptioner, photographs: Sequence[ScenePhotograph]) -> Iterator[NDArray[np.float32]]:
    """Compute the visual tokens of each photograph, (N, token_width) float32."""
    assert trained.backbone is not None
    size = trained.backbone.image_size
    with tqdm(desc="visual tokens", total=len(photographs), unit="photograph", mininterval=1) as bar:
        for first in range(0, len(photographs), _AT_A_TIME):
            batch = photographs[first : first + _AT_A_TIME]
            frames = torch.from_numpy(np.stack([photograph.read(size) for photograph in batch]))
            with torch.inference_mode():
                yield from visual_of_images(trained.backbone, frames).tokens.float().numpy()
            bar.update(len(batch))


def _tokens(trained: TrainedCaptioner, photographs: Sequence[ScenePhotograph], path: Path) -> NDArray[np.float16]:
    """Compute the visual tokens of all photographs into a mapped file, (P, N, token_width)."""
    mapped = None
    for place, tokens in enumerate(_frames(trained, photographs)):
        if mapped is None:
            mapped = np.lib.format.open_memmap(path, "w+", np.float16, (len(photographs), *tokens.shape))
        mapped[place] = tokens
    assert mapped is not None
    return mapped


def _visual(tokens: NDArray[np.float16]) -> Visual:
    return Visual(torch.from_numpy(tokens.astype(np.float32)))


def _centres(means: NDArray[np.float32], count: int, seed: int) -> NDArray[np.float32]:
    """Cluster photographs by the directions of their mean tokens, (P, width); the centres, (at most count, width)."""
    directions = _directions(means)
    count = min(count, len(directions))
    _, labels = kmeans2(directions, count, _CLUSTERING_ROUNDS, minit="++", seed=seed)
    # A cluster may have lost all its photographs; its place is kept, so that the number of scenes is that asked for.
    return np.stack([
        directions[labels == label].mean(axis=0) if (labels == label).any() else directions[label]
        for label in range(count)
    ])  # fmt: skip


def _directions(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to unit length."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-6))


def _construct(captioner: Captioner, family: str, centres: NDArray[np.float32], opening_words: int) -> Contrastive:
    """Put a captioner of a family into a contrastive one whose language model has learnt nothing yet."""
    shared, member = captioner.config, member_config(family, captioner)
    sizes = {"scenes": len(centres), "opening_words": opening_words}
    contrastive = Contrastive(ContrastiveConfig(shared.vocabulary_size, shared.token_width, member, **sizes))
    contrastive.captioner.load_state_dict(captioner.state_dict())
    with torch.no_grad():
        contrastive.scene_centres.copy_(torch.from_numpy(_directions(centres)))
    return contrastive.eval()


def _captions(trained: TrainedCaptioner, tokens: NDArray[np.float16], max_words: int) -> Tensor:
    """Search for the captions of photographs, (P, beams, max_words) int64, padded."""
    settings = SearchSettings(max_words=max_words, stop="all", attention=False, repeats=trained.repeats)
    found = []
    for first in tqdm(range(0, len(tokens), _AT_A_TIME), "captions", unit="batch", mininterval=1):
        with torch.inference_mode():
            found.append(beam_search(trained.captioner, _visual(tokens[first : first + _AT_A_TIME]), settings).words)
    return torch.cat(found)


def _learn(
    contrastive: Contrastive,
    tokens: NDArray[np.float16],
    beams: Tensor,
    members: dict[int, NDArray[np.int64]],
    settings: ContrastSettings,
) -> None:
    """Teach the language model.

    Args:
        contrastive: its language model learns.
        tokens: (P, N, token_width), of the photographs.
        beams: (P, k, T) int64, their captions.
        members: the photographs of each scene.
        settings: epochs and seed.
    """
    torch.manual_seed(settings.seed)
    random = np.random.default_rng(settings.seed)
    scene_of = {place: scene for scene, places in members.items() for place in places}
    places = np.array(sorted(scene_of))
    batches = -(-len(places) // _IMAGES_PER_BATCH)
    model = contrastive.language_model
    optimizer = torch.optim.Adam(model.parameters(), lr=_LEARNING_RATE)
    steps = settings.epochs * batches
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _LEARNING_RATE, total_steps=steps + 1)
    before = contrastive.config.context_words - 1
    with tqdm(desc="language model", total=steps, unit="step", mininterval=1) as bar:
        for _ in range(settings.epochs):
            for batch in np.array_split(random.permutation(places), batches):
                scenes = torch.tensor([scene_of[place] for place in batch])
                captions = torch.stack([_drawn(beams, members[scene_of[place]], random) for place in batch])
                words = torch.cat([torch.full_like(captions[..., :1], Vocabulary.begin_id), captions[..., :-1]], dim=2)
                real = captions != PADDING_ID
                with torch.no_grad():
                    encoded = contrastive.captioner.encode(_visual(tokens[batch]))
                    wanted = contrastive.captioner.decode_captions(words, encoded)[real].float().softmax(dim=-1)
                context = torch.nn.functional.pad(words, (before, 0), value=PADDING_ID)
                logits = model(context, model.scenes(scenes))[real]
                loss = torch.nn.functional.cross_entropy(logits, wanted)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
                bar.update()


def _drawn(beams: Tensor, places: NDArray[np.int64], random: np.random.Generator) -> Tensor:
    """Draw captions of photographs, (_CAPTIONS_OF_AN_IMAGE, T)."""
    drawn = random.choice(places, _CAPTIONS_OF_AN_IMAGE)
    return beams[torch.from_numpy(drawn), torch.from_numpy(random.integers(beams.shape[1], size=len(drawn)))]
