// What the page reads from a caption record, whose keys docs/command_line.md lists.

// The words; without a list of words, those between the spaces of the text.
export const wordsOf = ({ words, text }) =>
  words.length ? words : text.split(/\s+/u).filter(Boolean).map((word) => ({ text: word, log_probability: null, box_xyxy: null }));

export const probabilityOf = (word) => (word.log_probability === null ? null : Math.exp(Math.min(word.log_probability, 0)));

// The index of the noun that a word belongs to; -1 for none.
export const nounAt = (caption, word) =>
  caption.nouns.findIndex(({ noun, word_index: first }) => word >= first && word < first + noun.trim().split(/\s+/u).length);

export const looksForObjects = ({ coverage_reason: reason }) => ["none", "no objects", "no nouns"].includes(reason);

export const isCaptioned = ({ status }) => status !== "error" && status !== "stale";
