"""Penn Treebank tokeniser of Stanford CoreNLP with the COCO toolkit's settings; needs Java."""

from collections.abc import Sequence

from pycocoevalcap.tokenizer.ptbtokenizer import PUNCTUATIONS, STANFORD_CORENLP_3_4_1_JAR

from training.evaluation.metrics.java import run_java, toolkit_folder
from training.evaluation.metrics.metric import MetricError

NAME = "Stanford PTB tokeniser 3.4.1, lower case, without punctuation (as the COCO toolkit)"
LIMIT_S, LIMIT_PER_CAPTION_S = 300.0, 0.01


def ptb_tokenize(captions: Sequence[str]) -> list[str]:
    """Tokenise captions to space-joined, lower-cased tokens without punctuation, as the toolkit's ``PTBTokenizer``.

    Raises:
        MetricError: there is no Java, or the tokeniser failed or took too long.
    """
    # The tokeniser answers line by line: characters that end a line within a caption become spaces.
    lines = [" ".join(caption.split()) for caption in captions]
    tokenised = run_java(
        "the PTB tokeniser",
        [
            "-cp", STANFORD_CORENLP_3_4_1_JAR, "edu.stanford.nlp.process.PTBTokenizer",
            "-preserveLines", "-lowerCase", "-encoding", "UTF-8",
        ],
        toolkit_folder("tokenizer"),
        lines,
        LIMIT_S + LIMIT_PER_CAPTION_S * len(lines),
    )  # fmt: skip
    if len(tokenised) != len(lines):
        raise MetricError(f"the PTB tokeniser answered {len(tokenised)} lines to {len(lines)} captions")
    return [" ".join(token for token in line.split() if token not in PUNCTUATIONS) for line in tokenised]
