// A small line chart of the last two minutes, with axes, and with gaps where there were no captions.

import { element, setText, svgElement } from "./elements.js";
import { isSilence } from "./state.js";

export const SPAN_S = 120;
const WIDTH = 240;
const HEIGHT = 60;

export class Chart {
  #svg;
  #path;
  #now = element("strong");
  #top = element("span");
  #middle = element("span");
  #name;
  #format;
  #ceiling;

  // name: of the value; format: value -> text; ceiling: highest value of the axis, null to follow the values.
  constructor(parent, name, format, ceiling = null) {
    this.#name = name;
    this.#format = format;
    this.#ceiling = ceiling;
    this.#svg = svgElement("svg", { role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" });
    for (const y of [1, HEIGHT / 2, HEIGHT - 1]) this.#svg.append(svgElement("line", { x1: 0, x2: WIDTH, y1: y, y2: y }));
    for (const x of [0.5, WIDTH / 2, WIDTH - 0.5]) {
      this.#svg.append(svgElement("line", { x1: x, x2: x, y1: 0, y2: HEIGHT }));
    }
    this.#svg.append((this.#path = svgElement("path")));
    const legend = element("p");
    legend.append(element("span", { text: name }), this.#now);
    const values = element("div", { class: "values", "aria-hidden": "true" });
    values.append(this.#top, this.#middle, element("span", { text: "0" }));
    const times = element("div", { class: "times", "aria-hidden": "true" });
    for (const text of ["2 min ago", "1 min", "now"]) times.append(element("span", { text }));
    const box = element("div", { class: "chart" });
    box.append(legend, values, this.#svg, times);
    parent.append(box);
  }

  // points: [seconds, value or null], oldest first; now: seconds.
  draw(points, now) {
    const values = points.map(([, value]) => value).filter((value) => value !== null);
    const ceiling = this.#ceiling ?? roundedUp(Math.max(0, ...values));
    let path = "";
    let before = null; // time of the point that the line comes from
    points.forEach(([seconds, value], index) => {
      if (value === null) {
        before = null;
        return;
      }
      const x = WIDTH * (1 - (now - seconds) / SPAN_S);
      const y = HEIGHT - (HEIGHT - 2) * Math.min(Math.max(value / ceiling, 0), 1) - 1;
      const goesOn = before !== null && !isSilence(seconds - before, points, index - 1);
      path += `${goesOn ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
      if (!goesOn) path += "h0.1"; // a point with a gap on both sides is visible
      before = seconds;
    });
    this.#path.setAttribute("d", path);
    const last = points.length ? points[points.length - 1][1] : null;
    setText(this.#now, last === null ? "–" : this.#format(last));
    setText(this.#top, this.#format(ceiling));
    setText(this.#middle, this.#format(ceiling / 2));
    const range = values.length
      ? `from ${this.#format(Math.min(...values))} to ${this.#format(Math.max(...values))}`
      : "no values";
    this.#svg.setAttribute("aria-label", `${this.#name} over the last two minutes: ${range}`);
  }
}

// The next of 1, 2, 5, 10, 20, ... that is not below the value.
function roundedUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10);
}
