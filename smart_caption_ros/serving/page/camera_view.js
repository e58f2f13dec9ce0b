// The view of one camera: its frame and caption, and its measures, objects and hypotheses.

import { Announcer } from "./announcer.js";
import { Chart } from "./chart.js";
import { byId, element, matchChildren, sentence, setCommands, setText, visible } from "./elements.js";
import { coloursOf, Links } from "./links.js";
import { Picture } from "./picture.js";
import { isCaptioned } from "./record.js";
import { Scrub } from "./scrub.js";
import { ago, dated, milliseconds, stateOf } from "./state.js";

export class CameraView {
  #root = byId("view");
  #picture = new Picture(byId("picture"), (index) => this.#links.pointAtObject(index));
  #links;
  #scrub;
  #announcer = new Announcer(byId("announcement"), byId("announce"));
  #coverage = new Chart(byId("charts"), "Coverage", (value) => value.toFixed(2), 1);
  #delay = new Chart(byId("charts"), "Camera to caption", milliseconds);
  #onChange;
  #known = null;
  #shown = null;
  #past = null; // the caption of the last two minutes that the slider is at
  #isLoading = false;
  waitingFor = ""; // what the feed waits for, or ""

  // onChange: called when another caption may be shown, because nothing holds the shown one or its frame was loaded.
  constructor(onChange) {
    this.#onChange = onChange;
    this.#links = new Links(byId("words"), byId("objects"), byId("detail"), this.#picture, onChange);
    this.#scrub = new Scrub(byId("scrub"), (caption) => {
      this.#past = caption && dated(caption);
      this.#links.release();
      onChange();
    });
  }

  // Show another camera, from `cameras` of the state; null for none yet.
  choose(known) {
    if (known === this.#known) return;
    this.#known = known;
    this.#shown = this.#past = null;
    this.#links.release();
    this.#picture.clear();
    this.#scrub.release();
  }

  // Show the newest caption, or that of the slider; while a frame loads, newer captions wait and the last one is shown.
  // A pause keeps the shown caption; the slider still moves.
  async offer(isPaused) {
    const known = this.#known;
    const caption = this.#past ?? ((isPaused && this.#shown) || known?.caption);
    if (this.#isLoading || !caption || caption === this.#shown || this.#links.holds) return;
    this.#isLoading = true;
    const image = await Picture.load(caption);
    this.#isLoading = false;
    const isOutrun = image === null && caption.picture !== null && known.caption !== caption && !this.#past;
    if (known === this.#known && !isOutrun && !this.#links.holds) this.#draw(caption, image);
    this.#onChange();
  }

  #draw(caption, image) {
    this.#shown = caption;
    const colours = coloursOf(caption);
    this.#picture.show(caption, image, colours);
    this.#links.show(caption, colours);
    this.#scrub.show(caption);
    this.#announcer.offer(caption.text);
    drawHypotheses(caption);
    this.#drawMeasures(caption);
  }

  // Update what changes with time.
  tick({ now, isConnected, isPaused, note }) {
    const known = this.#known;
    const caption = this.#shown;
    const { state, label } = known ? stateOf(known, now, isConnected) : { state: "waiting", label: "Waiting" };
    this.#root.dataset.state = state;
    this.#root.classList.toggle("empty", !known?.caption);
    setCommands(byId("empty"), this.waitingFor ? `Waiting for ${this.waitingFor}` : "Waiting for the first caption");
    setText(byId("state-label"), this.#past ? "Earlier" : label);
    const heldFor = isPaused ? "paused" : this.#links.holds ? "held while a word or an object is marked" : "";
    setText(byId("state-age"), caption ? [ago(now - caption.at), heldFor].filter(Boolean).join(", ") : "");
    this.#drawNotice(state, caption, note);
    if (!known) return;
    const points = known.points;
    this.#coverage.draw(points.map(([at, coverage]) => [at, coverage]), now);
    this.#delay.draw(points.map(([at, , delay]) => [at, delay]), now);
    if (caption) this.#drawMeasures(caption);
  }

  #drawMeasures(caption) {
    const { status, missed } = this.#known;
    const captioned = isCaptioned(caption);
    const figure = (value, format = (it) => it.toFixed(2)) => (value === null ? "–" : format(value));
    const measures = [
      ["Coverage", figure(caption.coverage?.noun_coverage ?? null)],
      ["Nouns supported", figure(caption.coverage?.noun_support ?? null)],
      ["Confidence", figure(captioned ? caption.confidence : null)],
      ["Calibrated confidence", figure(caption.calibrated_confidence)],
      ["Camera to caption", figure(caption.age_ms, milliseconds)],
      ["Time to caption", figure(captioned ? caption.timing_ms.total : null, milliseconds)],
      ["Captions a second", status ? figure(status.rate_hz, (it) => it.toFixed(1)) : "–"],
      ["Frames dropped", status ? String(status.dropped) : "–"],
      ["Captions missed here", String(missed)],
      ["Model", caption.model || "–"],
    ];
    matchChildren(byId("measures"), measures.flat(), (index) => element(index % 2 ? "dd" : "dt"), (node, text) => {
      setText(node, text);
      node.title = visible(text);
    });
    setText(byId("reason"), caption.coverage_message);
  }

  // Update the notice with every change, but let it be read out only if more than its figures changed.
  #drawNotice(state, caption, note) {
    const parts = [];
    const known = this.#known;
    if (known?.caption && (state === "silent" || state === "gone")) parts.push(`No caption since ${known.caption.time}.`);
    if (known?.status?.note) parts.push(sentence(known.status.note));
    else if (caption?.status_message) parts.push(sentence(caption.status_message));
    if (note) parts.push(note);
    const text = state === "unknown" ? "" : parts.join(" ");
    setText(byId("notice"), text);
    const told = byId("notice-announced");
    if (meaning(told.textContent) !== meaning(visible(text))) setText(told, text);
  }
}

// List the final hypotheses of beam search, the most probable first; the caption is one of them.
function drawHypotheses(caption) {
  const found = [{ text: caption.text, score: caption.score, isChosen: true }, ...caption.alternatives];
  found.sort((one, other) => (other.score ?? -Infinity) - (one.score ?? -Infinity));
  const make = () => {
    const item = element("li");
    item.append(element("span"), " ", element("bdi"), " ", element("small"));
    return item;
  };
  matchChildren(byId("alternatives"), caption.text ? found : [], make, (item, { text, score, isChosen }) => {
    item.classList.toggle("chosen", isChosen === true);
    const [number, words, note] = item.children;
    setText(number, score === null ? "–" : score.toFixed(2));
    setText(words, text);
    setText(note, isChosen ? "the caption" : "");
  });
}

const meaning = (text) => text.replace(/[\d.,:]+/gu, "");
