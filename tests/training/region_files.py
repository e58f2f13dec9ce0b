"""Bottom-up features in each published format."""

import base64

import numpy as np

WIDTH = 16


def regions(count, width=WIDTH, seed=0):
    random = np.random.default_rng(seed)
    boxes = random.uniform(0, 100, (count, 4)).astype(np.float32)
    return {"features": random.normal(size=(count, width)).astype(np.float32), "boxes": boxes}


SIZE = (640, 480)
"""Width and height of every image, pixels."""


def fractions(boxes):
    """Boxes in pixels of an image of ``SIZE`` as fractions of it."""
    return boxes / np.array(SIZE * 2, np.float32)


def write_hdf5(folder, images, size=SIZE):
    import h5py

    path = folder / "features.hdf5"
    with h5py.File(path, "w") as file:
        for image, arrays in images.items():
            for kind, values in arrays.items():
                file[f"{image}_{kind}"] = values
            for side, pixels in zip(("image_w", "image_h"), size or (), strict=False):
                file[f"{image}_{side}"] = pixels
    return path


def write_tsv(folder, images, size=SIZE):
    path = folder / "features.tsv"
    lines = []
    for image, arrays in images.items():
        encoded = [base64.b64encode(arrays[kind].tobytes()).decode() for kind in ("boxes", "features")]
        lines.append("\t".join([image, *map(str, size), str(len(arrays["boxes"])), *encoded]))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_npz(folder, images, size=SIZE):
    path = folder / "features"
    path.mkdir()
    for image, arrays in images.items():
        sides = {side: np.array(pixels) for side, pixels in zip(("image_w", "image_h"), size or (), strict=False)}
        np.savez(path / f"{image}.npz", **arrays, **sides)
    return path
