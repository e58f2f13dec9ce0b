// Connects the parts of the page: the events of the server arrive here, and the address says what is shown.
// #now: all cameras, or the only one; #now?camera=front: one of them; with wall=1 without anything around it;
// #before?...: the caption log, see past.js.

import { SPAN_S } from "./chart.js";
import { CameraView } from "./camera_view.js";
import { Connection } from "./connection.js";
import { byId, element, matchChildren, setText } from "./elements.js";
import { Grid } from "./grid.js";
import { Past } from "./past.js";
import { dated, onThisClock, seconds, setServerClock, stateOf } from "./state.js";
import { startTheme } from "./theme.js";

// What is known of each camera: newest caption, points of the charts (time, coverage, delay), captions that this page
// missed, and its status. A caption has `at`, when the server received it on this page's clock, and `time`, in words.
const cameras = new Map();
let route = { view: "now", camera: null, isWall: false };
let waitingFor = "";
let camerasNote = "";
let isPaused = false;

startTheme(byId("theme"));
const view = new CameraView(() => show());
const grid = new Grid();
const past = new Past(byId("past"));
const connection = new Connection(byId("connection"), {
  hello(hello) {
    setServerClock(hello.now_s);
    for (const [name, points] of Object.entries(hello.history)) {
      known(name).points = points.map(([at, ...values]) => [onThisClock(at), ...values]);
    }
    setText(byId("source"), hello.description);
    arrange();
  },
  caption(caption) {
    const isNew = !cameras.has(caption.camera);
    const { points } = Object.assign(known(caption.camera), { caption: dated(caption) });
    // The newest caption is also in the history of `hello`, whose times are rounded.
    if (!points.length || caption.at > points[points.length - 1][0] + 0.005) {
      points.push([caption.at, caption.coverage?.noun_coverage ?? null, caption.age_ms]);
    }
    while (points.length && points[0][0] < seconds() - SPAN_S) points.shift();
    if (isNew) arrange();
    else show(caption.camera);
  },
  status(status) {
    for (const [name, camera] of Object.entries(status.cameras)) known(name).status = camera;
    for (const [name, { caption }] of cameras) {
      // A camera without captions is unknown to the server, or was dropped for another one.
      if ((!caption || status.note) && !(name in status.cameras)) cameras.delete(name);
    }
    waitingFor = status.waiting_for;
    camerasNote = status.note;
    arrange();
  },
  missed(missed) {
    for (const [name, count] of Object.entries(missed)) if (cameras.has(name)) known(name).missed = count;
  },
});

byId("pause").addEventListener("click", () => {
  setPaused(!isPaused);
  show();
  tick();
});
byId("wall").addEventListener("click", () => {
  location.hash = hashOf({ ...route, isWall: true });
  document.documentElement.requestFullscreen?.().catch(() => {}); // if refused, the wall fills the window
});
byId("leave-wall").addEventListener("click", leaveWall);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented) leaveWall();
});
document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement) leaveWall();
});
document.addEventListener("visibilitychange", () => show());
addEventListener("hashchange", readAddress);
readAddress();
setInterval(tick, 1000);
connection.start();

function known(name) {
  if (!cameras.has(name)) cameras.set(name, { caption: null, points: [], missed: 0, status: null });
  return cameras.get(name);
}

function readAddress() {
  const [name, query] = location.hash.slice(1).split("?");
  const parameters = new URLSearchParams(query);
  const isPast = name === "before";
  route = { view: isPast ? "before" : "now", camera: parameters.get("camera"), isWall: parameters.has("wall") && !isPast };
  setPaused(false); // a pause holds for the view in which it was made
  for (const [link, isCurrent] of [["to-now", !isPast], ["to-before", isPast]]) {
    if (isCurrent) byId(link).setAttribute("aria-current", "page");
    else byId(link).removeAttribute("aria-current");
  }
  byId("now").hidden = isPast;
  byId("past").hidden = !isPast;
  document.body.classList.toggle("is-past", isPast);
  document.body.classList.toggle("is-wall", route.isWall);
  if (isPast) past.open(parameters);
  else past.close();
  arrange();
}

function hashOf({ camera, isWall }) {
  const parameters = new URLSearchParams();
  if (camera !== null) parameters.set("camera", camera);
  if (isWall) parameters.set("wall", "1");
  return `#now${parameters.size ? "?" : ""}${parameters}`;
}

function leaveWall() {
  if (!route.isWall) return;
  if (document.fullscreenElement) document.exitFullscreen();
  location.hash = hashOf({ ...route, isWall: false });
}

// The camera whose view is open; null for the grid.
function chosen() {
  if (route.camera !== null) return route.camera;
  return cameras.size > 1 ? null : ([...cameras.keys()][0] ?? "");
}

// Show the view that the address and the cameras require.
function arrange() {
  const name = chosen();
  const isGrid = name === null;
  byId("grid").hidden = !isGrid;
  byId("view").hidden = isGrid;
  document.body.classList.toggle("is-grid", isGrid);
  if (isGrid) grid.show(cameras, (camera) => hashOf({ camera, isWall: route.isWall }));
  else view.choose(cameras.get(name) ?? null);
  drawCameras(name);
  show();
  tick();
}

// Links to all cameras, below the picture of one of them.
function drawCameras(name) {
  const names = [null, ...[...cameras.keys()].sort()];
  byId("cameras").hidden = name === null || names.length < 3;
  const make = () => {
    const link = element("a");
    link.append(element("span", { class: "dot", "aria-hidden": "true" }), element("bdi"));
    return link;
  };
  matchChildren(byId("cameras"), names, make, (link, camera) => {
    link.href = hashOf({ camera, isWall: route.isWall });
    link.title = camera ?? "";
    if (camera === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    setText(link.lastElementChild, camera ?? "All cameras");
    link.dataset.state = camera === null ? "" : stateOf(known(camera), seconds(), connection.isLive).state;
  });
}

function show(camera) {
  if (document.hidden || route.view !== "now") return;
  if (!byId("view").hidden) view.offer(isPaused);
  else if (camera !== undefined && !isPaused) grid.offer(camera);
}

function setPaused(paused) {
  isPaused = paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
}

// Update what changes with time.
function tick() {
  document.title = `${title()} – smart-caption`;
  if (document.hidden || route.view !== "now") return;
  const isMissing = route.camera !== null && cameras.size > 0;
  view.waitingFor = isMissing ? `captions of the camera ${route.camera}` : waitingFor;
  const standing = { now: seconds(), isConnected: connection.isLive, isPaused, note: camerasNote };
  if (byId("view").hidden) grid.tick(standing);
  else view.tick(standing);
  if (!byId("cameras").hidden) drawCameras(chosen());
  setText(byId("grid-note"), byId("view").hidden ? camerasNote : "");
}

// The title: the camera and its state; of several cameras, those that are not live.
function title() {
  if (route.view === "before") return "Before";
  if (!connection.isLive) return "Not connected";
  const name = chosen();
  const labels = [...(name === null ? cameras : [[name, cameras.get(name)]])].map(([camera, it]) => {
    const { state, label } = it ? stateOf(it, seconds(), true) : { state: "waiting", label: "Waiting" };
    return { state, text: camera ? `${camera}: ${label}` : label };
  });
  const others = labels.filter(({ state }) => state !== "live");
  if (name === null && !others.length) return `${labels.length} cameras: Live`;
  return (name === null ? others : labels).map(({ text }) => text).join(", ");
}
