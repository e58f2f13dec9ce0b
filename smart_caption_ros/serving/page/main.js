// Puts the page together: events come in, the newest caption of the chosen camera is shown.

import { Announcer } from "./announcer.js";
import { Chart, SPAN_S } from "./chart.js";
import { Connection } from "./connection.js";
import { byId, element, matchChildren, setText } from "./elements.js";
import { coloursOf, Links } from "./links.js";
import { Past } from "./past.js";
import { Picture } from "./picture.js";
import { Scrub } from "./scrub.js";
import { Tabs } from "./tabs.js";
import { startTheme } from "./theme.js";

const SILENT_AFTER_S = 5;

// What is known of each camera: newest caption, when it arrived, points of the charts, captions that did not arrive.
const cameras = new Map();
let waitingFor = "";
let camerasNote = "";
let paused = false;
let loading = false;
let shown = null;
let held = null; // the caption of the last two minutes that the slider is at; null for the newest

startTheme(byId("theme"));
const announcer = new Announcer(byId("announcement"), byId("announce"));
const picture = new Picture(byId("frame"), byId("boxes"), (index) => links.pointAtObject(index));
const links = new Links(byId("words"), byId("objects"), byId("detail"), picture);
const tabs = new Tabs(byId("cameras"), byId("view"), showNewest);
const scrub = new Scrub(byId("scrub"), (caption) => {
  held = caption;
  showNewest();
});
const past = new Past(byId("past"));
const coverageChart = new Chart(byId("charts"), "Coverage", (value) => value.toFixed(2), 1);
const ageChart = new Chart(byId("charts"), "Age", milliseconds);

const connection = new Connection(byId("connection"), {
  hello(hello) {
    const offset = seconds() - hello.now_s;
    for (const [name, points] of Object.entries(hello.history)) {
      const known = camera(name);
      known.points = points.map(([at, ...values]) => [at + offset, ...values]);
      known.at = points.length ? known.points[points.length - 1][0] : 0;
      known.isInHistory = true; // its newest caption comes next
    }
    setText(byId("source"), hello.description);
    showTabs();
    drawSlowly();
  },
  caption(caption) {
    const known = camera(caption.camera);
    known.caption = caption;
    if (!known.isInHistory) {
      known.at = seconds();
      known.points.push([known.at, caption.coverage.value, caption.age_ms]);
    }
    known.isInHistory = false;
    while (known.points.length && known.points[0][0] < seconds() - SPAN_S) known.points.shift();
    showTabs();
    if (caption.camera === tabs.chosen) showNewest();
  },
  status(status) {
    for (const [name, each] of Object.entries(status.cameras)) camera(name).status = each;
    for (const [name, known] of cameras) {
      // It had this name by mistake, or gave way to another one.
      if ((!known.caption || status.note) && !(name in status.cameras)) cameras.delete(name);
    }
    waitingFor = status.waiting_for;
    camerasNote = status.note;
    showTabs();
    drawSlowly();
  },
  missed(missed) {
    for (const [name, count] of Object.entries(missed)) camera(name).missed = count;
  },
});

byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (!paused) showNewest();
});
document.addEventListener("visibilitychange", showNewest);
addEventListener("hashchange", route);
route();
setInterval(drawSlowly, 1000);
connection.start();
drawSlowly();

// The address says what is shown: the newest captions, or the log.
function route() {
  const [view, query] = location.hash.slice(1).split("?");
  const isPast = view === "before";
  byId("view").hidden = isPast;
  byId("past").hidden = !isPast;
  showTabs();
  for (const [link, isCurrent] of [["to-now", !isPast], ["to-before", isPast]]) {
    if (isCurrent) byId(link).setAttribute("aria-current", "page");
    else byId(link).removeAttribute("aria-current");
  }
  if (isPast) past.open(new URLSearchParams(query));
  else past.close();
  showNewest();
}

function camera(name) {
  if (!cameras.has(name)) cameras.set(name, { caption: null, at: 0, points: [], missed: 0, status: null, isInHistory: false });
  return cameras.get(name);
}

function showTabs() {
  tabs.show([...cameras.keys()].sort());
  if (!byId("past").hidden) byId("cameras").hidden = true;
  else byId("cameras").hidden = cameras.size < 2;
}

// Show the newest caption; while its picture loads, newer ones wait and all but the last are left out.
async function showNewest() {
  const known = cameras.get(tabs.chosen);
  const caption = held?.camera === tabs.chosen ? held : known?.caption;
  if (loading || paused || document.hidden || byId("view").hidden || !caption || caption === shown) return;
  loading = true;
  const url = await Picture.load(caption);
  loading = false;
  if (!paused && caption.camera === tabs.chosen) {
    shown = caption;
    draw(caption, url);
  }
  showNewest();
}

function draw(caption, url) {
  const colours = coloursOf(caption);
  picture.show(caption, url, colours);
  links.show(caption, colours);
  scrub.show(caption);
  announcer.offer(caption.text);
  drawAlternatives(caption.alternatives);
  drawSlowly();
}

function drawAlternatives(alternatives) {
  const make = () => {
    const item = element("li");
    item.append(element("span"), " ", element("bdi"));
    return item;
  };
  matchChildren(byId("alternatives"), alternatives, make, (item, alternative) => {
    setText(item.children[0], alternative.score === null ? "–" : alternative.score.toFixed(2));
    setText(item.children[1], alternative.text);
  });
}

// What changes with time, too: measures, charts and the notice.
function drawSlowly() {
  const known = cameras.get(tabs.chosen);
  drawNotice(known);
  if (!known || document.hidden) return;
  const points = known.points;
  coverageChart.draw(points.map(([at, coverage]) => [at, coverage]), seconds());
  ageChart.draw(points.map(([at, , age]) => [at, age]), seconds());
  if (shown?.camera === tabs.chosen) drawMeasures(shown, known);
}

function drawMeasures(caption, known) {
  const { coverage } = caption;
  const measures = [
    ["Coverage", coverage.value === null ? coverage.reason || "not measured" : coverage.value.toFixed(2)],
    ["Nouns supported", coverage.noun_support === null ? "–" : coverage.noun_support.toFixed(2)],
    ["Not named", coverage.missed_classes.join(", ") || "–"],
    ["Confidence", caption.confidence === null ? "–" : caption.confidence.toFixed(2)],
    ["Age", caption.age_ms === null ? "–" : milliseconds(caption.age_ms)],
    ["Time to caption", caption.total_ms === null ? "–" : milliseconds(caption.total_ms)],
    ["Captions a second", known.status ? known.status.rate_hz.toFixed(1) : "–"],
    ["Frames dropped", known.status ? String(known.status.dropped) : "–"],
    ["Captions missed here", String(known.missed)],
    ["Model", caption.model || "–"],
  ];
  matchChildren(byId("measures"), measures.flat(), (index) => element(index % 2 ? "dd" : "dt"), setText);
}

function drawNotice(known) {
  let text = "";
  const silent = known?.caption ? Math.floor(seconds() - known.at) : 0;
  if (byId("connection").dataset.state !== "live") text = "";
  else if (!known?.caption) text = waitingFor ? `Waiting for ${waitingFor}` : "Waiting for the first caption";
  else if (silent >= SILENT_AFTER_S) text = `No new caption for ${rounded(silent)}. ${known.status?.note ?? ""}`;
  else text = shown?.message || known.status?.note || "";
  if (camerasNote) text = text ? `${text} ${camerasNote}` : camerasNote;
  byId("notice").hidden = !text;
  setText(byId("notice"), text);
}

// Rounded, so that a screen reader is not told every second.
function rounded(silent) {
  if (silent < 60) return `${silent - (silent % SILENT_AFTER_S)} seconds`;
  return silent < 120 ? "a minute" : `${Math.floor(silent / 60)} minutes`;
}

function milliseconds(value) {
  return value < 10000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(0)} s`;
}

function seconds() {
  return performance.now() / 1000;
}
