// A frame and, over it, the boxes of its objects, their labels, and where the model looked.

import { element, matchChildren, setText, svgElement } from "./elements.js";
import { leaderOf, placeLabels } from "./labels.js";

let pictures = 0;

export class Picture {
  #area = element("div", { class: "area" });
  #image = element("img", { class: "frame", alt: "", hidden: "" });
  #svg = svgElement("svg", { class: "boxes", viewBox: "0 0 4 3", "aria-hidden": "true" });
  #boxes = svgElement("g");
  #leaders = svgElement("g");
  #shade; // all of the picture but where the model looked
  #spot;
  #labels = element("div", { class: "labels", "aria-hidden": "true" });
  #message = element("p", { class: "message" });
  #caption = null;
  #colours = [];
  #active = new Set();
  #size = [4, 3];
  #named = new Set();

  // root: gets the picture; onPoint: called with the index of the object that the pointer is on, or null; without it,
  // the picture has no labels and no unnamed objects.
  constructor(root, onPoint = null) {
    this.#shade = this.#makeShade();
    this.#svg.append(this.#shade, this.#boxes, this.#leaders);
    this.#area.append(this.#image, this.#svg, this.#labels, this.#message);
    root.append(this.#area);
    if (!onPoint) {
      this.#labels.remove();
      return;
    }
    let [x, y] = [0, 0];
    this.#svg.addEventListener("pointermove", (event) => {
      if (event.screenX === x && event.screenY === y) return; // the page moved under the pointer
      [x, y] = [event.screenX, event.screenY];
      const group = event.target.closest("g.object");
      onPoint(group ? Number(group.dataset.index) : null);
    });
    this.#svg.addEventListener("pointerleave", () => onPoint(null));
    new ResizeObserver(() => this.#layOut()).observe(this.#area);
  }

  // Load the frame of a caption before it is shown, so that boxes and frame change together; null if it has none.
  static async load(caption) {
    if (caption.picture === null) return null;
    const image = element("img", { class: "frame", src: caption.picture });
    try {
      await image.decode();
      return image;
    } catch {
      return null; // the server keeps only some frames
    }
  }

  // image: the loaded frame of the caption; without it, the previous frame stays, without boxes.
  show(caption, image, colours) {
    this.#caption = caption;
    this.#colours = colours;
    this.#named = new Set(caption.named_objects.flat());
    if (image) {
      image.alt = `Frame of ${caption.camera || "the camera"}`;
      this.#image.replaceWith(image);
      this.#image = image;
      const [width, height] = caption.image_size;
      this.#size = width && height ? [width, height] : [image.naturalWidth, image.naturalHeight];
      this.#svg.setAttribute("viewBox", `0 0 ${this.#size[0]} ${this.#size[1]}`);
      this.#area.style.setProperty("--ratio", this.#size[0] / this.#size[1]);
    }
    this.#area.classList.toggle("without-frame", !image);
    setText(this.#message, image ? "" : "No picture of this caption is kept");
    const order = caption.objects.map((_, index) => index).filter((index) => image && caption.objects[index].box_xyxy);
    order.sort((one, other) => areaOf(caption.objects[other].box_xyxy) - areaOf(caption.objects[one].box_xyxy)); // small ones on top
    matchChildren(this.#boxes, order, makeBox, (group, index) => {
      const object = caption.objects[index];
      group.dataset.index = index;
      group.dataset.colour = colours[index];
      group.dataset.name = object.class_name;
      group.classList.toggle("named", this.#named.has(index));
      for (const outline of group.children) place(outline, object.box_xyxy);
    });
    this.mark(new Set(), null);
  }

  // Hide the frame, which must not stay when another camera is shown.
  clear() {
    this.#image.hidden = true;
    this.#boxes.replaceChildren();
    this.#caption = null;
    this.#layOut();
  }

  // Mark objects by their indices, and the region [x1, y1, x2, y2] where the model looked, or null.
  mark(active, region) {
    this.#active = active;
    this.#svg.classList.toggle("has-active", active.size > 0);
    for (const group of this.#boxes.children) {
      group.classList.toggle("active", active.has(Number(group.dataset.index)));
    }
    const isSeen = region !== null && !this.#area.classList.contains("without-frame");
    this.#shade.setAttribute("visibility", isSeen ? "visible" : "hidden");
    if (isSeen) {
      const [x1, y1, x2, y2] = region;
      const around = { cx: (x1 + x2) / 2, cy: (y1 + y2) / 2, rx: 0.9 * (x2 - x1), ry: 0.9 * (y2 - y1) };
      for (const [name, value] of Object.entries(around)) this.#spot.setAttribute(name, value);
    }
    this.#layOut();
  }

  #layOut() {
    if (!this.#labels.isConnected) return;
    const { clientWidth, clientHeight } = this.#area;
    const [scaleX, scaleY] = [clientWidth / this.#size[0], clientHeight / this.#size[1]];
    const shown = [...this.#boxes.children]
      .map((group) => Number(group.dataset.index))
      .filter((index) => this.#active.has(index) || this.#named.has(index))
      .sort((one, other) => this.#rank(one) - this.#rank(other) || one - other);
    matchChildren(this.#labels, shown, () => element("span"), (label, index) => {
      label.dataset.colour = this.#colours[index];
      setText(label, this.#caption.objects[index].class_name);
    });
    const labels = shown.map((index, position) => {
      const [x1, y1, x2, y2] = this.#caption.objects[index].box_xyxy;
      const { offsetWidth, offsetHeight } = this.#labels.children[position];
      const box = [x1 * scaleX, y1 * scaleY, x2 * scaleX, y2 * scaleY];
      return { box, width: offsetWidth, height: offsetHeight, colour: this.#colours[index] };
    });
    const places = placeLabels(labels, clientWidth, clientHeight);
    places.forEach((found, position) => {
      const { style } = this.#labels.children[position];
      style.visibility = found ? "visible" : "hidden";
      if (found) [style.left, style.top] = [`${found[0]}px`, `${found[1]}px`];
    });
    const lines = labels.flatMap((label, position) => {
      const line = places[position] && leaderOf(label, places[position]);
      return line ? [{ line, colour: label.colour }] : [];
    });
    matchChildren(this.#leaders, lines, () => svgElement("line"), (node, { line: [x1, y1, x2, y2], colour }) => {
      node.dataset.colour = colour;
      const ends = { x1: x1 / scaleX, y1: y1 / scaleY, x2: x2 / scaleX, y2: y2 / scaleY };
      for (const [name, value] of Object.entries(ends)) node.setAttribute(name, value);
    });
  }

  #rank(index) {
    return this.#active.has(index) ? 0 : 1;
  }

  // A shade with a soft elliptic hole, which cannot be mistaken for a box.
  #makeShade() {
    const id = `looked-${++pictures}`;
    const gradient = svgElement("radialGradient", { id: `${id}-edge` });
    gradient.append(
      svgElement("stop", { offset: "55%", "stop-color": "#000" }),
      svgElement("stop", { offset: "100%", "stop-color": "#fff" }),
    );
    this.#spot = svgElement("ellipse", { fill: `url(#${id}-edge)` });
    const all = { width: "100%", height: "100%" };
    const mask = svgElement("mask", { id, maskUnits: "userSpaceOnUse", x: 0, y: 0, ...all });
    mask.append(svgElement("rect", { ...all, fill: "#fff" }), this.#spot);
    const shade = svgElement("g", { class: "looked", visibility: "hidden" });
    shade.append(gradient, mask, svgElement("rect", { ...all, mask: `url(#${id})` }));
    return shade;
  }
}

function makeBox() {
  const group = svgElement("g", { class: "object" });
  group.append(svgElement("rect", { class: "under" }), svgElement("rect"));
  return group;
}

function place(node, [x1, y1, x2, y2]) {
  node.setAttribute("x", x1);
  node.setAttribute("y", y1);
  node.setAttribute("width", Math.max(x2 - x1, 0));
  node.setAttribute("height", Math.max(y2 - y1, 0));
}

const areaOf = ([x1, y1, x2, y2]) => (x2 - x1) * (y2 - y1);
