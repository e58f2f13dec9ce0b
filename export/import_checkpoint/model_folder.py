"""Find the folder in which transformers saved a model, and read its configuration and weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from export.import_checkpoint.published import ImportCheckpointError, read_state_dict
from training.data.json_files import read_json_object

CONFIG, GENERATION = "config.json", "generation_config.json"
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def find_model_folder(name: str) -> Path:
    """Return the folder of a model: ``name`` itself, or the model of that id in the local Hugging Face hub cache.

    Raises:
        ImportCheckpointError: there is no such folder, and no such model in the cache; nothing is downloaded.
    """
    if Path(name).is_dir():
        return Path(name)
    if Path(name).exists():
        raise ImportCheckpointError(f"{name} is a file; give the folder that holds it and {CONFIG}")
    from transformers.utils import cached_file  # imported here: it takes a while

    try:
        return Path(str(cached_file(name, CONFIG, local_files_only=True))).parent
    except Exception:  # the library raises errors of several kinds for ids that it refuses and does not have
        raise ImportCheckpointError(
            f"{name} is no folder, and no model of the local cache of the Hugging Face hub: fetch it on a computer "
            f"with internet by `hf download {name} --local-dir FOLDER`, copy FOLDER here and give it"
        ) from None


def read_config(folder: Path) -> dict[str, Any]:
    """Read config.json.

    Raises:
        ImportCheckpointError: it is missing.
        DataError: it is not JSON, or not an object.
    """
    if not (folder / CONFIG).is_file():
        raise ImportCheckpointError(f"{folder} has no {CONFIG}; give the folder that transformers saved the model to")
    return read_settings(folder, CONFIG)


def read_settings(folder: Path, name: str) -> dict[str, Any]:
    """Read a JSON file of a model's folder; empty where it is missing.

    Raises:
        DataError: it is not JSON, or not an object.
    """
    return read_json_object(folder / name) if (folder / name).is_file() else {}


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read the tensors of a model, in one file or in several (shards); nothing in a file is executed.

    Raises:
        ImportCheckpointError: there are none, a shard is missing, or a file is malformed.
        DataError: the index of the shards is not JSON, or not an object.
    """
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return _read_file(folder / name)
        index = folder / f"{name}.index.json"
        if index.is_file():
            return _read_shards(index)
    raise ImportCheckpointError(f"{folder} has no weights: {' or '.join(_WEIGHTS)}, or an index of shards")


def _read_shards(index: Path) -> dict[str, Tensor]:
    places = read_json_object(index).get("weight_map")
    if not isinstance(places, Mapping) or not all(isinstance(name, str) for name in places.values()):
        raise ImportCheckpointError(f"{index} has no weight_map; copy it again")
    state: dict[str, Tensor] = {}
    names = sorted(set(places.values()))
    for name in names:
        if name != Path(name).name or not (index.parent / name).is_file():
            raise ImportCheckpointError(
                f"{index.parent / name} is missing, one of the {len(names)} files of the weights; copy it there"
            )
        state |= _read_file(index.parent / name)
    if lacking := next((tensor for tensor in places if tensor not in state), None):
        raise ImportCheckpointError(f"{index.parent / places[lacking]} lacks {lacking}, which the index says it has")
    return state


def _read_file(path: Path) -> dict[str, Tensor]:
    if path.suffix != ".safetensors":
        return read_state_dict(path)
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ImportCheckpointError(f"{path} is no safetensors file ({error}); copy it again") from None
