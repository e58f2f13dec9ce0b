// A small line chart of the last two minutes.

import { element, setText, svgElement } from "./elements.js";

export const SPAN_S = 120;
const WIDTH = 240;
const HEIGHT = 60;

export class Chart {
  #svg;
  #path;
  #now;
  #top;
  #name;
  #format;
  #ceiling;

  // name: of the value; format: value -> text; ceiling: highest value of the axis, null to follow the values.
  constructor(parent, name, format, ceiling = null) {
    this.#name = name;
    this.#format = format;
    this.#ceiling = ceiling;
    this.#svg = svgElement("svg", { role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" });
    this.#svg.append(svgElement("line", { x1: 0, x2: WIDTH, y1: 1, y2: 1 }), (this.#path = svgElement("path")));
    const legend = element("p");
    this.#now = element("strong");
    this.#top = element("span");
    legend.append(element("span", { text: name }), this.#top, this.#now);
    const box = element("div", { class: "chart" });
    box.append(legend, this.#svg);
    parent.append(box);
  }

  // points: [seconds, value or null], oldest first; now: seconds.
  draw(points, now) {
    const values = points.map(([, value]) => value).filter((value) => value !== null);
    const ceiling = this.#ceiling ?? roundedUp(Math.max(0, ...values));
    let path = "";
    let drawing = false;
    for (const [seconds, value] of points) {
      if (value === null) {
        drawing = false;
        continue;
      }
      const x = WIDTH * (1 - (now - seconds) / SPAN_S);
      const y = HEIGHT - (HEIGHT - 3) * Math.min(value / ceiling, 1) - 1;
      path += `${drawing ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
      if (!drawing) path += "h0.1"; // a point with a gap on both sides is visible
      drawing = true;
    }
    this.#path.setAttribute("d", path);
    const last = points.length ? points[points.length - 1][1] : null;
    setText(this.#now, last === null ? "–" : this.#format(last));
    setText(this.#top, values.length ? `top line ${this.#format(ceiling)}` : "");
    const range = values.length
      ? `from ${this.#format(Math.min(...values))} to ${this.#format(Math.max(...values))}`
      : "no values";
    this.#svg.setAttribute("aria-label", `${this.#name} over the last two minutes: ${range}`);
  }
}

// The next of 1, 2, 5, 10, 20, ... that is not below the value.
function roundedUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= value);
}
