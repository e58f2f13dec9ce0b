// The words and the objects of a caption as buttons; pointing at one, or focusing it, marks what belongs to it.

import { element, matchChildren, setText, visible } from "./elements.js";
import { looksForObjects, nounAt, probabilityOf, wordsOf } from "./record.js";

const COLOURS = 6;
const UNSURE = 0.3; // a less probable word is grey
const STILL_MS = 15_000; // after this time, a pointer that does not move marks nothing
const RELEASE_MS = 400; // the caption is held for this time, while the pointer moves to the next word

// The colour of each object: one for each class that the caption names, in the order of the nouns.
export function coloursOf(caption) {
  const indices = caption.nouns.map((noun) => noun.object_index).filter((index) => index !== null);
  const named = indices.map((index) => caption.objects[index].class_name);
  const order = [...new Set(named)];
  return caption.objects.map(({ class_name: name }) => (order.includes(name) ? order.indexOf(name) % COLOURS : "none"));
}

// The words as elements of a tag, nouns with the colour of their object.
export function writeWords(parent, caption, colours, make) {
  const nodes = wordsOf(caption).map((word, index) => {
    const noun = caption.nouns[nounAt(caption, index)];
    const probability = probabilityOf(word);
    const node = make(index);
    setText(node, word.text);
    node.dataset.colour = noun && noun.object_index !== null ? colours[noun.object_index] : "none";
    node.classList.toggle("noun", noun !== undefined);
    node.classList.toggle("unsupported", noun !== undefined && noun.object_index === null);
    node.classList.toggle("unsure", probability !== null && probability < UNSURE);
    return node;
  });
  parent.replaceChildren(...nodes.flatMap((node, index) => (index ? [" ", node] : [node])));
  return nodes;
}

export class Links {
  #words;
  #objects;
  #detail;
  #hint;
  #picture;
  #onRelease;
  #caption = null;
  #groups = []; // the objects by class: {name, objects: indices, best first}
  #pointed = null; // {kind: "word", "object" or "group", index}
  #focused = null;
  #pinned = null;
  #still = null;
  #releasing = null;

  // onRelease: called when nothing is marked any more.
  constructor(words, objects, detail, picture, onRelease = () => {}) {
    this.#words = words;
    this.#objects = objects;
    this.#detail = detail;
    this.#hint = detail.textContent;
    this.#picture = picture;
    this.#onRelease = onRelease;
    for (const [list, kind] of [[words, "word"], [objects, "group"]]) this.#listen(list, kind);
    words.addEventListener("keydown", (event) => this.#move(event));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#set(() => (this.#pinned = null));
    });
  }

  // Whether something is marked, or was a moment ago, so that the caption has to stay.
  get holds() {
    return this.#current !== null || this.#releasing !== null;
  }

  show(caption, colours) {
    this.release();
    this.#caption = caption;
    const stop = Math.min(this.#tabStop(), wordsOf(caption).length - 1);
    writeWords(this.#words, caption, colours, (index) => {
      const label = visible(this.#describe(index));
      return button({ "data-index": index, "aria-label": label, tabindex: index === stop ? 0 : -1 });
    });
    this.#showObjects(caption, colours);
    this.#mark();
  }

  pointAtObject(index) {
    this.#point(index === null ? null : { kind: "object", index });
  }

  // Remove all marks, because another caption follows.
  release() {
    clearTimeout(this.#releasing);
    this.#pointed = this.#focused = this.#pinned = this.#releasing = null;
  }

  get #current() {
    return this.#pointed ?? this.#focused ?? this.#pinned;
  }

  #showObjects(caption, colours) {
    const groups = new Map();
    caption.objects.forEach(({ class_name: name }, index) => groups.set(name, [...(groups.get(name) ?? []), index]));
    const score = (index) => caption.objects[index].score ?? 0;
    const isNamed = (name) => colours[groups.get(name)[0]] !== "none";
    this.#groups = [...groups.keys()]
      .sort((one, other) => isNamed(other) - isNamed(one) || one.localeCompare(other))
      .map((name) => ({ name, objects: groups.get(name).sort((one, other) => score(other) - score(one)) }));
    const make = () => {
      const item = element("li");
      item.append(button({}));
      for (const part of ["bdi", "span", "small"]) item.firstElementChild.append(element(part), " ");
      return item;
    };
    matchChildren(this.#objects, this.#groups, make, (item, { name, objects }, index) => {
      const node = item.firstElementChild;
      node.dataset.index = index;
      node.dataset.colour = colours[objects[0]];
      node.dataset.name = name;
      node.title = visible(name);
      const scores = objects.map((each) => caption.objects[each].score);
      const [text, count, note] = node.children;
      setText(text, name);
      setText(count, objects.length > 1 ? `× ${objects.length}` : "");
      setText(note, [range(scores), isNamed(name) ? "" : "not named"].filter(Boolean).join(", "));
    });
  }

  #listen(list, kind) {
    const found = (event) => {
      const node = event.target.closest("button");
      return node ? { kind, index: Number(node.dataset.index) } : null;
    };
    let [x, y] = [0, 0];
    list.addEventListener("pointermove", (event) => {
      if (event.screenX === x && event.screenY === y) return; // the page moved under the pointer
      [x, y] = [event.screenX, event.screenY];
      this.#point(found(event));
    });
    list.addEventListener("pointerleave", () => this.#point(null));
    list.addEventListener("focusin", (event) => {
      if (event.target.matches(":focus-visible")) this.#set(() => (this.#focused = found(event)));
    });
    list.addEventListener("focusout", () => this.#set(() => (this.#focused = null)));
    list.addEventListener("click", (event) => {
      const it = found(event);
      if (it) this.#set(() => (this.#pinned = same(it, this.#pinned) ? null : it));
    });
  }

  #point(at) {
    clearTimeout(this.#still);
    if (at) this.#still = setTimeout(() => this.#point(null), STILL_MS);
    if (same(at, this.#pointed) || at === this.#pointed) return;
    this.#set(() => (this.#pointed = at));
  }

  #set(change) {
    const before = this.#current;
    change();
    if (this.#current === before) return;
    clearTimeout(this.#releasing);
    this.#releasing = this.#current
      ? null
      : setTimeout(() => {
          this.#releasing = null;
          this.#onRelease();
        }, RELEASE_MS);
    this.#mark();
  }

  // Arrow keys move between the words, one of which is a tab stop; from right to left, the left arrow moves on.
  #move(event) {
    const nodes = [...this.#words.querySelectorAll("button")];
    const here = nodes.indexOf(event.target);
    const on = getComputedStyle(this.#words).direction === "rtl" ? -1 : 1;
    const to = { ArrowRight: here + on, ArrowLeft: here - on, Home: 0, End: nodes.length - 1 }[event.key];
    if (here < 0 || nodes[to] === undefined) return;
    event.preventDefault();
    nodes[here].tabIndex = -1;
    nodes[to].tabIndex = 0;
    nodes[to].focus();
  }

  #tabStop() {
    return Math.max([...this.#words.querySelectorAll("button")].findIndex((node) => node.tabIndex === 0), 0);
  }

  #mark() {
    const caption = this.#caption;
    if (caption === null) return;
    const current = this.#current;
    const words = new Set();
    const objects = new Set();
    let region = null;
    if (current?.kind === "word" && wordsOf(caption)[current.index]) {
      words.add(current.index);
      region = wordsOf(caption)[current.index].box_xyxy;
      for (const index of caption.named_objects[nounAt(caption, current.index)] ?? []) objects.add(index);
    } else if (current) {
      const marked = current.kind === "group" ? (this.#groups[current.index]?.objects ?? []) : [current.index];
      for (const index of marked) objects.add(index);
      const isNaming = (noun) => caption.named_objects[noun]?.some((index) => objects.has(index));
      wordsOf(caption).forEach((_, index) => isNaming(nounAt(caption, index)) && words.add(index));
    }
    this.#picture.mark(objects, region);
    const groups = new Set();
    this.#groups.forEach((group, index) => group.objects.some((it) => objects.has(it)) && groups.add(index));
    for (const [list, active, kind] of [[this.#words, words, "word"], [this.#objects, groups, "group"]]) {
      for (const node of list.querySelectorAll("button")) {
        const index = Number(node.dataset.index);
        node.classList.toggle("active", active.has(index));
        node.setAttribute("aria-pressed", String(same(this.#pinned, { kind, index })));
      }
    }
    setText(this.#detail, current?.kind === "word" && words.size ? this.#describe(current.index) : this.#hint);
  }

  #describe(index) {
    const word = wordsOf(this.#caption)[index];
    const probability = probabilityOf(word);
    const at = nounAt(this.#caption, index);
    const noun = this.#caption.nouns[at];
    const parts = [word.text];
    if (noun && noun.object_index !== null) {
      const { class_name: name } = this.#caption.objects[noun.object_index];
      const named = this.#caption.named_objects[at];
      const scores = range(named.map((object) => this.#caption.objects[object].score));
      const count = named.length;
      parts.push(`names ${count > 1 ? `${count} objects` : "the object"} ${name} ${scores}`.trim());
    } else if (noun) {
      parts.push(looksForObjects(this.#caption) ? "no object supports it" : "no objects were looked for");
    }
    if (probability !== null) parts.push(`probability ${percent(probability)}`);
    return parts.join(", ");
  }
}

function button(attributes) {
  return element("button", { type: "button", "aria-pressed": "false", ...attributes });
}

// "90 %", "90–52 %", "" without numbers.
function range(scores) {
  const known = scores.filter((score) => score !== null).map((score) => Math.round(100 * score));
  if (!known.length) return "";
  const [high, low] = [Math.max(...known), Math.min(...known)];
  return high === low ? `${high} %` : `${high}–${low} %`;
}

const same = (one, other) => one !== null && other !== null && one.kind === other.kind && one.index === other.index;
const percent = (share) => `${Math.round(100 * share)} %`;
