// The cameras as tabs; a single camera has none.

import { element, matchChildren, setText } from "./elements.js";

export class Tabs {
  #list;
  #view;
  #onChoice;
  #cameras = [];
  chosen = null;

  constructor(list, view, onChoice) {
    this.#list = list;
    this.#view = view;
    this.#onChoice = onChoice;
    list.addEventListener("click", (event) => {
      const node = event.target.closest("button");
      if (node) this.#choose(Number(node.dataset.index));
    });
    list.addEventListener("keydown", (event) => {
      const count = this.#cameras.length;
      const here = this.#cameras.indexOf(this.chosen);
      const to = { ArrowRight: (here + 1) % count, ArrowLeft: (here + count - 1) % count, Home: 0, End: count - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.#choose(to);
      list.children[to].focus();
    });
  }

  // The cameras in the order in which their tabs stand; the first is chosen where none is.
  show(cameras) {
    if (cameras.join("\n") === this.#cameras.join("\n")) return;
    this.#cameras = cameras;
    if (!cameras.includes(this.chosen) && cameras.length) this.#choose(0);
    else this.#draw();
  }

  #choose(index) {
    this.chosen = this.#cameras[index];
    this.#draw();
    this.#onChoice(this.chosen);
  }

  #draw() {
    const several = this.#cameras.length > 1;
    this.#list.hidden = !several;
    const make = () => element("button", { type: "button", role: "tab", "aria-controls": this.#view.id });
    matchChildren(this.#list, this.#cameras, make, (node, camera, index) => {
      const selected = camera === this.chosen;
      node.id = `camera-${index}`;
      node.dataset.index = index;
      setText(node, camera);
      node.setAttribute("aria-selected", String(selected));
      node.tabIndex = selected ? 0 : -1;
      if (selected && several) this.#view.setAttribute("aria-labelledby", node.id);
    });
  }
}
