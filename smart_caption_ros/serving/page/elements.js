// Creates and fills elements of the page. Text from outside is set as textContent alone, after visible().

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function element(tag, { text, ...attributes } = {}) {
  return filled(document.createElement(tag), text, attributes);
}

export function svgElement(tag, { text, ...attributes } = {}) {
  return filled(document.createElementNS(SVG, tag), text, attributes);
}

// Give `parent` one child for each item. Existing children are reused, so that keyboard focus stays where it is.
export function matchChildren(parent, items, make, update) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, index) => {
    if (index === parent.children.length) parent.append(make(index));
    update(parent.children[index], item, index);
  });
}

// Set the text of a node only if it differs, so that a screen reader and the layout see no change.
export function setText(node, text) {
  const shown = visible(text);
  if (node.textContent !== shown) node.textContent = shown;
}

// Set a text in which the pieces between backticks are commands, which are shown as code.
export function setCommands(node, text) {
  const shown = visible(text);
  if (node.textContent === shown.replaceAll("`", "")) return;
  const pieces = shown.split("`");
  node.replaceChildren(...pieces.map((piece, index) => (index % 2 ? literal("code", piece) : piece)));
}

// Return a text on one line, with escapes for control characters and marks that reverse the direction.
export function visible(text) {
  return text
    .trim()
    .replace(/\s+/gu, " ")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}]/gu, (character) => {
      const code = character.codePointAt(0).toString(16);
      return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
    });
}

// A text with a capital letter and a full stop.
export const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}`.replace(/\.?$/u, ".") : "");

// A value that the browser keeps; storage may be switched off.
export function stored(key, value) {
  try {
    if (value !== undefined) localStorage.setItem(`smart-caption ${key}`, value);
    return localStorage.getItem(`smart-caption ${key}`);
  } catch {
    return value ?? null;
  }
}

function literal(tag, text) {
  const node = document.createElement(tag);
  node.textContent = text;
  return node;
}

function filled(node, text, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = visible(text);
  return node;
}
