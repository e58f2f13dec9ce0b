// The view of the caption log: a search, thumbnails of its results by day and camera, and a caption with its frame.
//
// The address describes the whole view, so that a link opens it again: #before?words=cup&camera=front&id=1790000000000

import { element, matchChildren, sentence, setText } from "./elements.js";
import { coloursOf, Links } from "./links.js";
import { Picture } from "./picture.js";

const FIELDS = ["words", "camera", "since", "day", "near", "radius", "min_calibrated_confidence"];
const DOWNLOADED = 1000;

export class Past {
  #root;
  #form = element("form", { role: "search", "aria-label": "Captions of the log" });
  #inputs = {};
  #summary = element("p", { class: "summary", role: "status" });
  #downloads = element("p", { class: "downloads" });
  #days = element("div", { class: "days" });
  #older = element("button", { type: "button", text: "Older captions" });
  #moment;
  #lanes = new Map(); // day -> camera -> list; "" -> the day's section
  #captions = [];
  #parameters = null;
  #shown = null; // the search that is shown, as text
  #before = null;

  // root: the element of the view; it is empty.
  constructor(root) {
    this.#root = root;
    this.#buildForm();
    this.#older.addEventListener("click", () => this.#load());
    this.#moment = new MomentView((id) => this.#goTo({ id }), () => this.#captions);
    root.append(this.#form, this.#summary, this.#downloads, this.#days, this.#older, this.#moment.dialog);
    this.#older.hidden = true;
  }

  // Show the view that the parameters of the address describe.
  async open(parameters) {
    this.#parameters = parameters;
    const search = searchOf(parameters).toString();
    if (search !== this.#shown) {
      this.#shown = search;
      for (const name of FIELDS) this.#inputs[name].value = parameters.get(name) ?? "";
      if (await this.#readOverview()) await this.#load(true);
    }
    if (this.#parameters === parameters) this.#moment.open(parameters.get("id"));
  }

  // Leave the view; when it is opened again, it searches again.
  close() {
    this.#shown = null;
    this.#moment.open(null);
  }

  #buildForm() {
    const field = (name, label, attributes, tag = "input") => {
      const input = (this.#inputs[name] = element(tag, { name, ...attributes }));
      const box = element("label", { text: label });
      box.append(input);
      this.#form.append(box);
    };
    field("words", "Words", { type: "search", placeholder: 'red cup, "red cup", cup*' });
    field("camera", "Camera", {}, "select");
    field("since", "Since", { type: "text", placeholder: "2h, today, 2026-11-22", size: 12 });
    field("day", "Day", { type: "date" });
    field("near", "Near", { type: "text", placeholder: "x,y", size: 8 });
    field("radius", "Within metres", { type: "number", placeholder: "2", min: "0", step: "any" });
    field("min_calibrated_confidence", "Calibrated at least", { type: "number", min: "0", max: "1", step: "any" });
    this.#form.append(element("button", { type: "submit", text: "Search" }));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#shown = null; // the same search again finds what was written meanwhile
      this.#goTo({ ...Object.fromEntries(FIELDS.map((name) => [name, this.#inputs[name].value.trim()])), id: "" });
    });
    this.#inputs.camera.addEventListener("change", () => this.#form.requestSubmit());
    this.#inputs.day.addEventListener("change", () => this.#form.requestSubmit());
    setOptions(this.#inputs.camera, []);
  }

  // Change parameters of the address, which opens the view that they name; an empty one is left out.
  #goTo(changes) {
    const parameters = new URLSearchParams(this.#parameters ?? "");
    for (const [name, value] of Object.entries(changes)) {
      if (value) parameters.set(name, value);
      else parameters.delete(name);
    }
    const address = `#before?${parameters}`;
    if (location.hash === address) this.open(parameters);
    else location.hash = address;
  }

  // Read the cameras and days that the log has; return whether there is a log to search.
  async #readOverview() {
    const overview = await read("log.json");
    setText(this.#summary, sentence(overview.problem));
    this.#form.hidden = this.#downloads.hidden = Boolean(overview.problem);
    if (overview.problem) {
      this.#clear();
      return false;
    }
    const { camera, day, near, radius } = this.#inputs;
    setOptions(camera, overview.cameras, this.#parameters.get("camera") ?? "");
    day.min = localDay(overview.first_ms);
    day.max = localDay(overview.last_ms);
    for (const input of [near, radius]) input.parentElement.hidden = !overview.has_places;
    return true;
  }

  // Load the first page of the search, or the next one.
  async #load(isFirst = false) {
    const search = queryOf(this.#parameters);
    const shown = this.#shown;
    if (!isFirst) search.set("before", this.#before);
    this.#older.disabled = true;
    const answer = await read(`log/captions.json?${search}`);
    this.#older.disabled = false;
    if (shown !== this.#shown) return; // another search was made meanwhile
    if (isFirst) this.#clear();
    if (answer.problem) {
      setText(this.#summary, sentence(answer.problem));
      return;
    }
    this.#before = answer.before;
    this.#captions.push(...answer.captions);
    for (const caption of answer.captions) this.#lane(caption).append(this.#thumbnail(caption));
    this.#older.hidden = answer.before === null;
    this.#say(isFirst ? search : queryOf(this.#parameters));
  }

  #say(search) {
    const count = this.#captions.length;
    const more = this.#before === null ? "" : ", and more";
    setText(this.#summary, count ? `${count} caption${count > 1 ? "s" : ""}${more}` : "Nothing found.");
    const link = element("a", { href: `log/captions.csv?${search}`, download: "", text: "CSV" });
    const hint = this.#before === null ? "" : ` (the newest ${DOWNLOADED})`;
    this.#downloads.replaceChildren(`Download the result${hint} as `, link);
    this.#downloads.hidden = !count;
  }

  #clear() {
    this.#captions = [];
    this.#lanes.clear();
    this.#days.replaceChildren();
    this.#older.hidden = true;
  }

  // The list of a camera's captions of a day.
  #lane({ time_ms, camera }) {
    const day = localDay(time_ms);
    if (!this.#lanes.has(day)) {
      const section = element("section", { class: "day" });
      section.append(element("h2", { text: dayName(time_ms) }));
      this.#days.append(section);
      this.#lanes.set(day, new Map([["", section]]));
    }
    const lanes = this.#lanes.get(day);
    if (!lanes.has(camera)) {
      const lane = element("ul", { class: "lane", "aria-label": `${camera}, ${dayName(time_ms)}` });
      const section = element("section");
      section.append(element("h3", { text: camera }), lane);
      const next = [...lanes.keys()].sort().find((name) => name > camera);
      lanes.get("").insertBefore(section, next ? lanes.get(next).parentElement : null);
      lanes.set(camera, lane);
    }
    return lanes.get(camera);
  }

  #thumbnail(caption) {
    const item = element("li");
    const link = element("a", { href: this.#hrefOf(caption.id), class: "moment" });
    const frame = element("span", { class: "thumbnail" });
    if (caption.picture) frame.append(element("img", { src: caption.picture, alt: "", loading: "lazy" }));
    else frame.append(element("span", { text: "no picture kept" }));
    const when = element("time", { datetime: new Date(caption.time_ms).toISOString(), text: timeOf(caption.time_ms) });
    const text = element("span", { class: "text", dir: "auto" });
    for (const [piece, isMatch] of caption.text) {
      const node = element(isMatch ? "mark" : "span");
      node.textContent = piece; // with its spaces; the log has no control characters
      text.append(node);
    }
    link.append(frame, when, text);
    if (caption.reason) link.append(element("span", { class: "reason", text: `matched ${caption.reason}` }));
    item.append(link);
    return item;
  }

  #hrefOf(id) {
    const parameters = new URLSearchParams(this.#parameters);
    parameters.set("id", id);
    return `#before?${parameters}`;
  }
}

// A caption of the log with its frame and boxes, in a dialog.
class MomentView {
  dialog = element("dialog", { class: "moment-view", "aria-labelledby": "moment-title" });
  #title = element("h2", { id: "moment-title" });
  #body = element("div");
  #reason = element("p", { class: "reason" });
  #facts = element("dl");
  #earlier = element("button", { type: "button", text: "Earlier" });
  #later = element("button", { type: "button", text: "Later" });
  #download = element("a", { download: "", text: "Download with boxes" });
  #picture;
  #links;
  #id = null;
  #captions;
  #onChoice;

  // onChoice: called with the id of another caption, or "" for none; captions: returns those that were found.
  constructor(onChoice, captions) {
    this.#onChoice = onChoice;
    this.#captions = captions;
    const close = element("button", { type: "button", text: "Close" });
    const top = element("div", { class: "top" });
    top.append(this.#title, close);
    const frame = element("div", { class: "picture" });
    const words = element("div", { class: "words", role: "toolbar", "aria-label": "Words of the caption", dir: "auto" });
    const objects = element("ul", { class: "objects", "aria-label": "Objects" });
    const detail = element("p", { class: "detail" });
    this.#picture = new Picture(frame, (index) => this.#links.pointAtObject(index));
    this.#links = new Links(words, objects, detail, this.#picture);
    const actions = element("p", { class: "actions" });
    actions.append(this.#earlier, this.#later, this.#download);
    this.#body.append(frame, words, detail, this.#reason, objects, this.#facts);
    this.dialog.append(top, this.#body, actions);
    close.addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.#id && this.#onChoice(""));
    this.#earlier.addEventListener("click", () => this.#step(1));
    this.#later.addEventListener("click", () => this.#step(-1));
  }

  // Show the caption of this id; null or "" shows none.
  async open(id) {
    if (id === this.#id) return;
    this.#id = id;
    if (!id) {
      if (this.dialog.open) this.dialog.close();
      return;
    }
    const caption = await read(`log/${encodeURIComponent(id)}.json`);
    const image = caption.problem ? null : await Picture.load(caption);
    if (id !== this.#id) return;
    if (!this.dialog.open) this.dialog.showModal();
    this.#body.hidden = Boolean(caption.problem);
    this.#download.hidden = !image;
    if (caption.problem) setText(this.#title, sentence(caption.problem));
    else this.#draw(caption, image);
    const place = this.#place();
    this.#earlier.disabled = place < 0 || place + 1 >= this.#captions().length;
    this.#later.disabled = place <= 0;
  }

  #draw(caption, image) {
    setText(this.#title, `${dayName(caption.time_ms)}, ${timeOf(caption.time_ms)}, ${caption.camera}`);
    const colours = coloursOf(caption);
    this.#picture.clear();
    this.#picture.show(caption, image, colours);
    this.#links.show(caption, colours);
    this.#download.href = `log/${caption.number}/drawn.jpg`;
    const found = this.#captions()[this.#place()];
    setText(this.#reason, found?.reason ? `matched ${found.reason}` : "");
    for (const node of this.dialog.querySelectorAll("g.object, .objects button")) {
      node.classList.toggle("found", Boolean(found?.classes.includes(node.dataset.name)));
    }
    const coverage = caption.coverage?.noun_coverage ?? null;
    const facts = [
      ["Robot", caption.robot],
      ["Place", caption.place],
      ["Status", caption.status === "ok" ? "" : caption.status],
      ["Coverage", coverage === null ? "" : coverage.toFixed(2)],
      ["Confidence", caption.confidence === null ? "" : caption.confidence.toFixed(2)],
      ["Calibrated confidence", caption.calibrated_confidence === null ? "" : caption.calibrated_confidence.toFixed(2)],
      ["Model", caption.model],
    ].filter(([, value]) => value);
    matchChildren(this.#facts, facts.flat(), (index) => element(index % 2 ? "dd" : "dt"), setText);
  }

  #place() {
    return this.#captions().findIndex((caption) => String(caption.id) === this.#id);
  }

  #step(by) {
    const next = this.#captions()[this.#place() + by];
    if (next) this.#onChoice(String(next.id));
  }
}

// The answer as JSON; what went wrong is in `problem`.
async function read(address) {
  try {
    const answer = await fetch(address, { cache: "no-store" });
    return answer.ok ? await answer.json() : { problem: (await answer.text()).trim() };
  } catch {
    return { problem: "The server does not answer." };
  }
}

// The parameters without that of the caption that is open.
function searchOf(parameters) {
  const search = new URLSearchParams();
  for (const name of FIELDS) if (parameters.get(name)) search.set(name, parameters.get(name));
  return search;
}

// The parameters of a request: a day, in this browser's time zone, becomes two times.
function queryOf(parameters) {
  const search = searchOf(parameters);
  const day = new Date(`${search.get("day")}T00:00`);
  search.delete("day");
  if (!Number.isNaN(day.getTime())) {
    search.set("since", day.toISOString());
    day.setDate(day.getDate() + 1);
    search.set("until", new Date(day.getTime() - 1).toISOString());
  }
  return search;
}

function setOptions(select, names, chosen = "") {
  const listed = names.includes(chosen) || !chosen ? names : [...names, chosen];
  select.replaceChildren(
    element("option", { value: "", text: "all" }),
    ...listed.map((name) => element("option", { value: name, text: name })),
  );
  select.value = chosen;
}

function localDay(milliseconds) {
  const date = new Date(milliseconds);
  const two = (number) => String(number).padStart(2, "0");
  return `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

const dayName = (milliseconds) => new Date(milliseconds).toLocaleDateString([], { dateStyle: "full" });
const timeOf = (milliseconds) => new Date(milliseconds).toLocaleTimeString([], { timeStyle: "medium" });
