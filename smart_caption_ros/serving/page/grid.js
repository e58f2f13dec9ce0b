// All cameras at once: a tile each, with its frame, the boxes of what the caption names, its state, age and caption.

import { byId, element, sentence, setText } from "./elements.js";
import { coloursOf, writeWords } from "./links.js";
import { Picture } from "./picture.js";
import { ago, seconds, stateOf } from "./state.js";

const PERIOD_S = 0.5; // between two frames of a tile

export class Grid {
  #list = byId("grid");
  #tiles = new Map();

  // Show a tile for each camera, in the order of their names.
  show(cameras, hrefOf) {
    for (const [name, tile] of this.#tiles) {
      if (cameras.get(name) === tile.known) continue;
      tile.item.remove();
      this.#tiles.delete(name);
    }
    const names = [...cameras.keys()].sort();
    names.forEach((name, index) => {
      if (!this.#tiles.has(name)) this.#tiles.set(name, new Tile(name, cameras.get(name)));
      const tile = this.#tiles.get(name);
      tile.link.href = hrefOf(name);
      if (this.#list.children[index] !== tile.item) this.#list.insertBefore(tile.item, this.#list.children[index] ?? null);
    });
    const columns = names.length <= 1 ? 1 : names.length <= 4 ? 2 : names.length <= 9 ? 3 : 4;
    this.#list.style.setProperty("--columns", columns);
    this.#list.style.setProperty("--rows", Math.ceil(names.length / columns));
  }

  offer(name) {
    this.#tiles.get(name)?.offer();
  }

  tick({ now, isConnected, isPaused }) {
    for (const tile of this.#tiles.values()) {
      if (!isPaused) tile.offer();
      tile.tick(now, isConnected);
    }
  }
}

class Tile {
  known;
  item = element("li", { class: "tile" });
  link;
  #picture;
  #label = element("span", { class: "label" });
  #age = element("span", { class: "age" });
  #words = element("p", { class: "caption", dir: "auto" });
  #note = element("p", { class: "note" });
  #isLoading = false;
  #shown = null;
  #dueS = 0;

  constructor(name, known) {
    this.known = known;
    const frame = element("div", { class: "picture" });
    this.#picture = new Picture(frame);
    this.link = element("a", { text: name });
    const top = element("h2");
    top.append(element("span", { class: "dot", "aria-hidden": "true" }), this.link);
    const state = element("p", { class: "standing" });
    state.append(this.#label, " ", this.#age);
    const head = element("div", { class: "head" });
    head.append(top, state);
    this.item.append(frame, head, this.#words, this.#note);
  }

  // Show the newest caption with its frame, at most once every PERIOD_S seconds.
  async offer() {
    const { caption } = this.known;
    if (this.#isLoading || !caption || caption === this.#shown || seconds() < this.#dueS) return;
    this.#isLoading = true;
    this.#dueS = seconds() + PERIOD_S;
    const image = await Picture.load(caption);
    this.#isLoading = false;
    if (image === null && caption.picture !== null && this.known.caption !== caption) return; // the server dropped its frame
    this.#shown = caption;
    const colours = coloursOf(caption);
    this.#picture.show(caption, image, colours);
    writeWords(this.#words, caption, colours, () => element("span"));
    this.tick(seconds(), true);
  }

  tick(now, isConnected) {
    const { state, label } = stateOf(this.known, now, isConnected);
    this.item.dataset.state = state;
    setText(this.#label, label);
    setText(this.#age, this.#shown ? ago(now - this.#shown.at) : "");
    setText(this.#note, sentence(this.known.status?.note || (this.#shown?.status_message ?? "")));
  }
}
