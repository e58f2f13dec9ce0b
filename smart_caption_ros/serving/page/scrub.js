// A slider over the last two minutes of a camera: the captions and frames that the server keeps, one a second.

import { element, setText } from "./elements.js";

const SPAN_S = 120;
const FRESH_S = 2; // time after which the list of kept captions is read again

export class Scrub {
  #slider = element("input", { type: "range", min: -SPAN_S, max: 0, step: 1, value: 0, id: "time-before-now", "aria-label": "Time before now" });
  #label = element("output", { text: "now" });
  #now = element("button", { type: "button", text: "Now" });
  #download = element("a", { id: "download-frame", download: "", text: "Download with boxes" });
  #onMoment;
  #camera = null;
  #moments = null; // of the camera: [{number, at}], oldest first; null while the slider is at now
  #number = null;
  #readAt = 0;

  // root: gets the slider; onMoment: called with the caption of the chosen time, or null for now.
  constructor(root, onMoment) {
    this.#onMoment = onMoment;
    this.#now.disabled = true;
    root.append(this.#slider, this.#label, this.#now, this.#download);
    this.#slider.addEventListener("input", () => this.#move());
    this.#now.addEventListener("click", () => this.release());
  }

  // The caption that is shown, for the download; another camera begins at now.
  show(caption) {
    if (caption.camera !== this.#camera) {
      this.#camera = caption.camera;
      this.release();
    }
    this.#download.hidden = caption.picture === null;
    this.#download.href = `frames/${caption.number}/drawn.jpg`;
  }

  // Go back to now.
  release() {
    const wasHeld = this.#moments !== null;
    this.#moments = this.#number = null;
    this.#slider.value = 0;
    this.#say("now");
    if (wasHeld) this.#onMoment(null);
  }

  async #move() {
    const ago = -Number(this.#slider.value);
    if (ago === 0) {
      this.release();
      return;
    }
    if (this.#moments === null || seconds() > this.#readAt + FRESH_S) await this.#readMoments();
    const moments = this.#moments;
    if (!moments?.length) {
      if (moments) this.#say("nothing is kept");
      return;
    }
    const at = seconds() - ago;
    const chosen = moments.reduce((best, moment) => (distance(moment, at) < distance(best, at) ? moment : best));
    this.#say(`${Math.round(seconds() - chosen.at)} s ago`);
    if (chosen.number === this.#number) return;
    this.#number = chosen.number;
    const answer = await fetch(`frames/${chosen.number}.json`, { cache: "no-store" }).catch(() => null);
    if (chosen.number !== this.#number) return;
    if (answer?.ok) this.#onMoment(await answer.json());
    else this.#say("not kept any more");
  }

  async #readMoments() {
    const camera = this.#camera;
    const answer = await fetch(`history.json?camera=${encodeURIComponent(camera)}`, { cache: "no-store" }).catch(() => null);
    const { moments } = answer?.ok ? await answer.json() : { moments: [] };
    const now = (this.#readAt = seconds());
    if (camera === this.#camera) this.#moments = moments.map(({ number, age_s }) => ({ number, at: now - age_s }));
  }

  #say(text) {
    setText(this.#label, text);
    this.#slider.setAttribute("aria-valuetext", text);
    this.#now.disabled = text === "now";
  }
}

const seconds = () => performance.now() / 1000;
const distance = (moment, at) => Math.abs(moment.at - at);
