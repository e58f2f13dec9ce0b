"""Meshes of household objects: validity, size and colour."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.household import materials, objects
from simulation.household.ground_truth import LABELLED_CLASSES
from simulation.household.mesh import ObjectMesh

MODULES = [
    importlib.import_module(f"{objects.__name__}.{module.name}")
    for module in pkgutil.iter_modules(objects.__path__)
    if module.name != "fixtures"
]
BUILDERS = {
    f"{module.__name__.rsplit('.', 1)[-1]}.{name}": function
    for module in MODULES
    for name, function in vars(module).items()
    if inspect.isfunction(function)
    and not name.startswith("_")
    and function.__module__ == module.__name__
    and list(inspect.signature(function).parameters)[:1] == ["rng"]
    and all(p.default is not p.empty for p in list(inspect.signature(function).parameters.values())[1:])
}

# Bounds of the longest side in metres.
LONGEST_SIDES = {
    "bottle": (0.05, 0.35),
    "cup": (0.06, 0.16),
    "wine glass": (0.06, 0.25),
    "banana": (0.03, 0.3),
    "laptop": (0.18, 0.5),
    "chair": (0.35, 1.05),
    "couch": (0.7, 2.7),
    "bed": (0.8, 2.4),
    "refrigerator": (0.5, 2.0),
    "person": (0.25, 1.95),
    "dining table": (0.7, 1.9),
    "toilet": (0.3, 1.0),
    "cell phone": (0.005, 0.2),
    "book": (0.01, 0.4),
}


@pytest.mark.parametrize("builder", BUILDERS.values(), ids=BUILDERS.keys())
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1))
def test_object_is_a_valid_mesh_of_a_plausible_size(builder, seed: int) -> None:
    mesh: ObjectMesh = builder(np.random.default_rng(seed))
    for part in mesh.parts:
        assert np.isfinite(part.vertices).all()
        used = {index for face in part.faces for index in face}
        assert min(used) >= 0
        assert max(used) < len(part.vertices)
        assert all(len(face) == len(set(face)) >= 3 for face in part.faces)
        assert all(0 <= channel <= 1 for channel in part.material.rgb)
    smallest, largest = LONGEST_SIDES.get(mesh.class_name, (0.0, 3.0))
    assert mesh.size.max() <= largest
    assert mesh.size.max() >= smallest


@pytest.mark.parametrize("builder", list(BUILDERS.values())[::4], ids=list(BUILDERS)[::4])
def test_object_follows_from_its_seed_and_varies_with_it(builder) -> None:
    first, again, other = (builder(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first.part_bounds, again.part_bounds)
    assert [part.material for part in first.parts] == [part.material for part in again.parts]
    assert not np.array_equal(first.bounds, other.bounds) or first.parts[0].material != other.parts[0].material


def test_every_class_of_acvr_can_be_built() -> None:
    assert {builder(np.random.default_rng(0)).class_name for builder in BUILDERS.values()} >= set(LABELLED_CLASSES)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_colour_has_the_name_that_captions_give_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name, rgb = materials.random_colour(rng, *materials.COLOURS)
    distances = {word: np.linalg.norm(np.subtract(rgb, other)) for word, other in materials.COLOURS.items()}
    nearest = sorted(distances, key=distances.__getitem__)
    # White, silver, gray and beige are neighbours of one another; the other colours are not.
    assert name in nearest[: 3 if name in ("white", "silver", "gray", "beige") else 2]
