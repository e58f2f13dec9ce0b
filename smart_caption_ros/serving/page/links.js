// The words of a caption and its objects as buttons; pointing at one, or focusing it, marks what belongs to it.

import { element, matchChildren, setText, visible } from "./elements.js";

const COLOURS = 6;
const UNSURE = 0.3; // a less probable word is grey

// The colour of each object: one for each class that the caption names, in the order of the nouns.
export function coloursOf(caption) {
  const named = caption.nouns.filter((noun) => noun.object !== null).map((noun) => caption.objects[noun.object].name);
  const order = [...new Set(named)];
  return caption.objects.map(({ name }) => (order.includes(name) ? order.indexOf(name) % COLOURS : "none"));
}

export class Links {
  #words;
  #objects;
  #detail;
  #hint;
  #picture;
  #caption = null;
  #pointed = null; // {kind: "word" or "object", index}
  #focused = null;
  #pinned = null;

  constructor(words, objects, detail, picture) {
    this.#words = words;
    this.#objects = objects;
    this.#detail = detail;
    this.#hint = detail.textContent;
    this.#picture = picture;
    for (const [list, kind] of [[words, "word"], [objects, "object"]]) this.#listen(list, kind);
    words.addEventListener("keydown", (event) => this.#move(event));
  }

  show(caption, colours) {
    this.#caption = caption;
    const nounOf = caption.words.map((_, index) => caption.nouns.find((noun) => isIn(noun, index)));
    matchChildren(this.#words, caption.words, () => button("word"), (node, word, index) => {
      const noun = nounOf[index];
      setText(node, word.text);
      node.dataset.index = index;
      node.dataset.colour = noun && noun.object !== null ? colours[noun.object] : "none";
      node.classList.toggle("noun", noun !== undefined);
      node.classList.toggle("unsupported", noun !== undefined && noun.object === null);
      node.classList.toggle("unsure", word.probability !== null && word.probability < UNSURE);
      node.setAttribute("aria-label", visible(this.#describe(index)));
    });
    const stop = Math.min(this.#tabStop(), caption.words.length - 1);
    this.#words.querySelectorAll("button").forEach((node, index) => (node.tabIndex = index === stop ? 0 : -1));
    matchChildren(this.#objects, caption.objects, () => listed(button("object")), (item, object, index) => {
      const node = item.firstElementChild;
      node.dataset.index = index;
      node.dataset.colour = colours[index];
      const named = caption.nouns.some((noun) => noun.object === index);
      setText(node, `${object.name} ${percent(object.score)}${named ? "" : ", not named"}`);
    });
    this.#mark();
  }

  pointAtObject(index) {
    this.#pointed = index === null ? null : { kind: "object", index };
    this.#mark();
  }

  #listen(list, kind) {
    const found = (event) => {
      const node = event.target.closest("button");
      return node ? { kind, index: Number(node.dataset.index) } : null;
    };
    const set = (change) => (event) => {
      change(found(event));
      this.#mark();
    };
    list.addEventListener("pointerover", set((it) => (this.#pointed = it)));
    list.addEventListener("pointerleave", set(() => (this.#pointed = null)));
    list.addEventListener("focusin", set((it) => (this.#focused = it)));
    list.addEventListener("focusout", set(() => (this.#focused = null)));
    list.addEventListener("click", set((it) => it && (this.#pinned = same(it, this.#pinned) ? null : it)));
  }

  // Arrow keys move within the words, of which one is a stop of the Tab key.
  #move(event) {
    const nodes = [...this.#words.querySelectorAll("button")];
    const here = nodes.indexOf(event.target);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: nodes.length - 1 }[event.key];
    if (event.key === "Escape" && this.#pinned) {
      this.#pinned = null;
      this.#mark();
    }
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
    const current = this.#pointed ?? this.#focused ?? this.#pinned;
    const words = new Set();
    const objects = new Set();
    let region = null;
    if (current?.kind === "word" && caption.words[current.index]) {
      words.add(current.index);
      region = caption.words[current.index].box;
      const noun = caption.nouns.find((each) => isIn(each, current.index));
      if (noun && noun.object !== null) objects.add(noun.object);
    } else if (current?.kind === "object" && caption.objects[current.index]) {
      objects.add(current.index);
      const naming = caption.nouns.filter((each) => each.object === current.index);
      caption.words.forEach((_, index) => naming.some((noun) => isIn(noun, index)) && words.add(index));
    }
    this.#picture.mark(objects, region);
    for (const [list, active, kind] of [[this.#words, words, "word"], [this.#objects, objects, "object"]]) {
      for (const node of list.querySelectorAll("button")) {
        const index = Number(node.dataset.index);
        node.classList.toggle("active", active.has(index));
        node.setAttribute("aria-pressed", String(same(this.#pinned, { kind, index })));
      }
    }
    setText(this.#detail, current?.kind === "word" && words.size ? this.#describe(current.index) : this.#hint);
  }

  #describe(index) {
    const word = this.#caption.words[index];
    const noun = this.#caption.nouns.find((each) => isIn(each, index));
    const parts = [word.text];
    if (noun) {
      const object = noun.object === null ? null : this.#caption.objects[noun.object];
      parts.push(object ? `names the object ${object.name} ${percent(object.score)}` : "no object supports it");
    }
    if (word.probability !== null) parts.push(`probability ${percent(word.probability)}`);
    return parts.join(", ");
  }
}

function button(kind) {
  return element("button", { type: "button", class: kind, "aria-pressed": "false", tabindex: kind === "word" ? -1 : 0 });
}

function listed(node) {
  const item = element("li");
  item.append(node);
  return item;
}

const isIn = (noun, index) => index >= noun.first && index < noun.first + noun.count;
const same = (one, other) => one !== null && other !== null && one.kind === other.kind && one.index === other.index;
const percent = (share) => `${Math.round(100 * share)} %`;
