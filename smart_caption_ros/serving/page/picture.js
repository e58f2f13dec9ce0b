// The frame and, over it, the boxes of its objects and the region that the model looked at.

import { matchChildren, setText, svgElement } from "./elements.js";

const LABEL_SHARE = 0.035; // of the frame's height

export class Picture {
  #image;
  #svg;
  #objects = svgElement("g");
  #looked = svgElement("rect", { class: "looked", visibility: "hidden" });

  // onPoint: called with the index of the object that the pointer is on, or null.
  constructor(image, svg, onPoint) {
    this.#image = image;
    this.#svg = svg;
    svg.append(this.#objects, this.#looked);
    svg.addEventListener("pointerover", (event) => {
      const group = event.target.closest("g.object");
      onPoint(group ? Number(group.dataset.index) : null);
    });
    svg.addEventListener("pointerleave", () => onPoint(null));
  }

  // Load the picture of a caption before it is shown, so that boxes and picture change together.
  static async load(caption) {
    if (caption.picture === null) return null;
    const image = new Image();
    image.src = caption.picture;
    try {
      await image.decode();
      return image.src;
    } catch {
      return null; // the server keeps only the newest frames
    }
  }

  show(caption, url, colours) {
    const [width, height] = caption.size;
    if (width && height) this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#image.hidden = url === null;
    if (url !== null) this.#image.src = url;
    this.#image.alt = `Frame of ${caption.camera || "the camera"}`;
    const size = Math.max(LABEL_SHARE * height, 1);
    matchChildren(this.#objects, caption.objects, makeObject, (group, object, index) => {
      const [under, rect, label] = group.children;
      const box = object.box ?? [0, 0, 0, 0]; // its corners are no numbers
      const [x1, y1, , y2] = box;
      group.dataset.colour = colours[index];
      for (const outline of [under, rect]) place(outline, box);
      setText(label, object.box ? object.name : "");
      place(label, [x1 + size / 4, y1 > size * 1.2 ? y1 - size / 4 : Math.min(y1 + size, y2)]);
      label.setAttribute("font-size", size);
      label.setAttribute("stroke-width", size / 6);
    });
  }

  // Mark objects by their indices, and the region [x1, y1, x2, y2] or null.
  mark(active, region) {
    this.#svg.classList.toggle("has-active", active.size > 0);
    for (const group of this.#objects.children) {
      group.classList.toggle("active", active.has(Number(group.dataset.index)));
    }
    this.#looked.setAttribute("visibility", region ? "visible" : "hidden");
    if (region) place(this.#looked, region);
  }
}

function makeObject(index) {
  const group = svgElement("g", { class: "object" });
  group.dataset.index = index;
  group.append(svgElement("rect", { class: "under" }), svgElement("rect"), svgElement("text"));
  return group;
}

function place(node, [x1, y1, x2, y2]) {
  node.setAttribute("x", x1);
  node.setAttribute("y", y1);
  if (x2 === undefined) return;
  node.setAttribute("width", Math.max(x2 - x1, 0));
  node.setAttribute("height", Math.max(y2 - y1, 0));
}
