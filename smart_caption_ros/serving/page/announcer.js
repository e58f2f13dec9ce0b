// Lets a screen reader read the newest caption if it has changed, at most once every INTERVAL_S seconds.

import { setText, stored } from "./elements.js";

const INTERVAL_S = 5;

export class Announcer {
  #region;
  #button;
  #said = "";
  #saidAt = -Infinity;
  #timer = null;

  constructor(region, button) {
    this.#region = region;
    this.#button = button;
    this.#set(stored("announce") !== "off");
    button.addEventListener("click", () => {
      this.#set(!this.#on);
      stored("announce", this.#on ? "on" : "off");
    });
  }

  get #on() {
    return this.#button.getAttribute("aria-pressed") === "true";
  }

  offer(text) {
    clearTimeout(this.#timer);
    if (!this.#on || !text || text === this.#said) return;
    const wait = this.#saidAt + 1000 * INTERVAL_S - performance.now();
    if (wait <= 0) this.#say(text);
    else this.#timer = setTimeout(() => this.#say(text), wait);
  }

  #say(text) {
    this.#said = text;
    this.#saidAt = performance.now();
    setText(this.#region, text);
  }

  #set(on) {
    clearTimeout(this.#timer);
    this.#button.setAttribute("aria-pressed", String(on));
    if (!on) this.#region.textContent = this.#said = "";
  }
}
