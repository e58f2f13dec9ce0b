"""The PTB tokeniser, METEOR and SPICE: Java programs of the COCO toolkit, none of which can hang an evaluation here.

The toolkit exchanges single lines with its METEOR process and hangs when an answer is missing. Here every program gets
all captions at once. Functions raise :class:`MetricError` where there is no Java, or a program fails or takes too long.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pycocoevalcap.tokenizer import ptbtokenizer

from training.evaluation.metrics.metric import Captions, Metric, MetricError, References, mean_metric

HOW_TO_GET_JAVA = "install a Java runtime, e.g. `apt install default-jre-headless`, or set JAVA_HOME"

_STACK_TRACE = ("\tat ", "\t... ")
"""Beginnings of the lines of a stack trace, below the line that says what failed."""
PTB = "Stanford PTB tokeniser 3.4.1, lower case, without punctuation (as the COCO toolkit)"
PTB_LIMIT_S, PTB_LIMIT_PER_CAPTION_S = 300.0, 0.01
METEOR_LIMIT_S, METEOR_LIMIT_PER_CAPTION_S = 300.0, 0.2
# Parameters of METEOR 1.5 for English: weight of recall, exponent and weight of fragmentation, weight of content words.
ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
STAGE_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])
"""Weights of exact, stem, synonym and paraphrase matches."""
COUNTS = 4 + 4 * len(STAGE_WEIGHTS) + 3
"""Numbers per alignment; see :func:`meteor_from_counts`."""
MODELS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")
SPICE_LIMIT_S, SPICE_LIMIT_PER_CAPTION_S = 900.0, 1.0


def find_java() -> str | None:
    """Find the ``java`` command, in ``JAVA_HOME`` if that is set, else on the ``PATH``; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (command := shutil.which("java", path=str(Path(home) / "bin"))):
        return command
    return shutil.which("java")


def toolkit_folder(part: str) -> Path:
    """Return the folder of the jar files of a part of pycocoevalcap: ``tokenizer``, ``meteor`` or ``spice``."""
    return Path(ptbtokenizer.__file__).parents[1] / part


def run_java(program: str, arguments: Sequence[str], folder: Path, lines: Sequence[str], limit_s: float) -> list[str]:
    """Run a Java program on lines of text.

    All input is written and all output read at once, so that neither side waits for the other.

    Args:
        program: its name in error messages.
        limit_s: seconds after which the program is killed.

    Returns:
        The lines of its standard output.
    """
    java = find_java()
    if java is None:
        raise MetricError(f"no Java here; {HOW_TO_GET_JAVA}")
    command = [java, "-Dfile.encoding=UTF-8", *arguments]
    try:
        done = subprocess.run(
            command,
            input="".join(f"{line}\n" for line in lines).encode(),
            capture_output=True,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},  # else Java does not find folders with letters beyond ASCII
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MetricError(f"{program} was ended after {limit_s:.0f} s without an answer") from None
    except OSError as error:
        raise MetricError(f"{java} cannot be run: {error.strerror}") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        complaints = [line for line in lines if not line.startswith(_STACK_TRACE)]
        raise MetricError(f"{program} failed: {complaints[-1] if complaints else f'status {done.returncode}'}")
    return done.stdout.decode().split("\n")[:-1]


def ptb_tokenize(captions: Sequence[str]) -> list[str]:
    """Tokenise captions to space-joined, lower-cased tokens without punctuation, as the toolkit's ``PTBTokenizer``."""
    # The tokeniser answers line by line: characters that end a line within a caption become spaces.
    lines = [" ".join(caption.split()) for caption in captions]
    tokenised = run_java(
        "the PTB tokeniser",
        [
            "-cp", ptbtokenizer.STANFORD_CORENLP_3_4_1_JAR, "edu.stanford.nlp.process.PTBTokenizer",
            "-preserveLines", "-lowerCase", "-encoding", "UTF-8",
        ],
        toolkit_folder("tokenizer"),
        lines,
        PTB_LIMIT_S + PTB_LIMIT_PER_CAPTION_S * len(lines),
    )  # fmt: skip
    if len(tokenised) != len(lines):
        raise MetricError(f"the PTB tokeniser answered {len(tokenised)} lines to {len(lines)} captions")
    return [" ".join(token for token in line.split() if token not in ptbtokenizer.PUNCTUATIONS) for line in tokenised]


def meteor(models: Sequence[tuple[Captions, References]]) -> list[Metric]:
    """Compute METEOR 1.5 of several models' captions with one process.

    The program answers the counts of each alignment; the score is computed from them by METEOR's formula (Denkowski and
    Lavie 2014), so that resampled corpora need no further run of Java.
    ``models``: for each model and image a caption, space-joined tokens of the PTB tokeniser, and for each image the
    human captions to compare with, likewise.
    """
    questions = [
        " ||| ".join(["SCORE", *map(_clean, references[image]), _clean(caption)])
        for candidates, references in models
        for image, caption in candidates.items()
    ]
    answers = run_java(
        "METEOR",
        # METEOR does not find its paraphrases by itself where the path has a space or a letter beyond ASCII.
        ["-Xmx2G", "-jar", "meteor-1.5.jar", "-", "-", "-stdio", "-l", "en", "-norm", "-a", "data/paraphrase-en.gz"],
        toolkit_folder("meteor"),
        questions,
        METEOR_LIMIT_S + METEOR_LIMIT_PER_CAPTION_S * len(questions),
    )
    if len(answers) != len(questions):
        raise MetricError(f"METEOR answered {len(answers)} lines to {len(questions)} captions")
    try:
        counts = np.array([[float(number) for number in answer.split()] for answer in answers])
    except ValueError:
        raise MetricError("METEOR answered something else than counts") from None
    if counts.shape != (len(questions), COUNTS):
        raise MetricError(f"METEOR answered counts of the shape {counts.shape}")
    # METEOR counts no chunks where all words of caption and reference match in one chunk.
    whole = (counts[:, -2:] == counts[:, :2]).all(axis=1) & (counts[:, -3] == 1)
    counts[whole, -3] = 0
    return [
        Metric("meteor", part, meteor_from_counts, meteor_from_counts(part)) for part in np.split(counts, len(models))
    ]


def meteor_from_counts(counts: np.ndarray) -> np.ndarray:
    """Compute METEOR from alignment counts, (R, 23) -> (R,).
    ``counts``: the columns are the lengths of caption and reference, the function words in each, then for each of the
    four stages the matched content words of caption and reference and the matched function words of both, then the
    chunks (0 for a caption that equals its reference) and the matched words of caption and reference.
    """
    lengths, functions = counts[:, 0:2], counts[:, 2:4]
    stages = counts[:, 4:-3].reshape(len(counts), len(STAGE_WEIGHTS), 4)
    content, function = stages[:, :, 0:2], stages[:, :, 2:4]
    matched = np.einsum("s,rst->rt", STAGE_WEIGHTS, DELTA * content + (1 - DELTA) * function)
    weighted_lengths = DELTA * (lengths - functions) + (1 - DELTA) * functions
    chunks, matched_words = counts[:, -3], counts[:, -2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = (matched / weighted_lengths).T
        mean = 1 / (ALPHA / recall + (1 - ALPHA) / precision)
        fragmentation = chunks / matched_words.mean(axis=1)
    scores = mean * (1 - GAMMA * fragmentation**BETA)
    return np.where(matched_words.sum(axis=1) > 0, np.nan_to_num(scores), 0.0)


def _clean(caption: str) -> str:
    """Remove the protocol's separator and line ends from a caption."""
    return " ".join(caption.replace("|||", " ").split())


def missing_models() -> str | None:
    """Return why SPICE cannot run and how to get its models; None if they are installed."""
    library = toolkit_folder("spice") / "lib"
    if all((library / name).is_file() for name in MODELS):
        return None
    return (
        "its models are not here; `python -m pycocoevalcap.spice.get_stanford_models` downloads them (about 500 MB), "
        "or copy " + " and ".join(MODELS) + f" of stanford-corenlp-full-2015-12-09.zip into {library}; "
        "its jar was written for Java 8"
    )


def spice(models: Sequence[tuple[Captions, References]]) -> list[Metric]:
    """Compute SPICE 1.0 of several models' captions with one process, because parsing the references takes most time.
    ``models``: for each model and image a caption, and for each image the human captions, space-joined tokens.
    """
    if reason := missing_models():
        raise MetricError(reason)
    pairs = [(caption, references[image]) for candidates, references in models for image, caption in candidates.items()]
    questions = [
        {"image_id": number, "test": caption, "refs": list(human)} for number, (caption, human) in enumerate(pairs)
    ]
    with tempfile.TemporaryDirectory(prefix="spice-") as folder:
        asked, answered = Path(folder) / "in.json", Path(folder) / "out.json"
        asked.write_text(json.dumps(questions), encoding="utf-8")
        run_java(
            "SPICE",
            ["-Xmx8G", "-jar", "spice-1.0.jar", str(asked), "-out", str(answered), "-subset", "-silent"],
            toolkit_folder("spice"),
            [],
            SPICE_LIMIT_S + SPICE_LIMIT_PER_CAPTION_S * len(questions),
        )
        try:
            answers = json.loads(answered.read_text(encoding="utf-8"))
            scores = {answer["image_id"]: float(answer["scores"]["All"]["f"]) for answer in answers}
            found = np.array([scores[number] for number in range(len(questions))])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MetricError(f"SPICE left no scores ({type(error).__name__}: {error})") from None
    return [mean_metric("spice", part) for part in np.split(found, len(models))]
