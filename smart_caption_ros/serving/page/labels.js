// Places labels over a picture so that none covers another or leaves the picture; a label without a place is hidden.

const GAP = 2;
const LEADERS = [14, 30, 50]; // distances of a label from its box, if there is no place at the box

// labels: [{box: [x1, y1, x2, y2], width, height}] in pixels of the screen, the most important first.
// Returns for each [x, y], its top left corner, or null.
export function placeLabels(labels, width, height) {
  const smallBoxes = labels.filter(isSmall);
  const taken = [];
  return labels.map((label) => {
    const places = candidates(label, width, height).filter(
      ([x, y]) => x >= 0 && y >= 0 && x + label.width <= width && y + label.height <= height,
    );
    const isFree = (place) => !taken.some((other) => overlap(rectangle(place, label), other));
    const hidesNone = (place) =>
      !smallBoxes.some((other) => other !== label && overlap(rectangle(place, label), other.box));
    const free = places.filter(isFree);
    const place = free.find(hidesNone) ?? free[0] ?? null;
    if (place) taken.push(rectangle(place, label));
    return place;
  });
}

// The line from a label to its box, [x1, y1, x2, y2]; null if they touch.
export function leaderOf(label, [x, y]) {
  const [x1, y1, x2, y2] = label.box;
  const nearest = (low, high, value) => Math.min(Math.max(value, low), high);
  const [centreX, centreY] = [(x1 + x2) / 2, (y1 + y2) / 2];
  const from = [nearest(x, x + label.width, centreX), nearest(y, y + label.height, centreY)];
  const to = [nearest(x1, x2, from[0]), nearest(y1, y2, from[1])];
  return Math.hypot(from[0] - to[0], from[1] - to[1]) > 2 * GAP + 1 ? [...from, ...to] : null;
}

function candidates(label, areaWidth, areaHeight) {
  const { width, height } = label;
  const [x1, y1, x2, y2] = label.box;
  const inside = (value, size, area) => Math.max(Math.min(value, area - size), 0);
  const left = inside(x1, width, areaWidth);
  const right = inside(x2 - width, width, areaWidth);
  const [above, below] = [y1 - height - GAP, y2 + GAP];
  const places = [[left, above], [right, above], [left, below], [right, below]];
  if (!isSmall(label)) {
    for (const y of [inside(y1, height, areaHeight) + GAP, inside(y2 - height, height, areaHeight) - GAP]) {
      places.push([left + GAP, y], [right - GAP, y]);
    }
  }
  const [centreX, centreY] = [(x1 + x2 - width) / 2, (y1 + y2 - height) / 2];
  for (const by of LEADERS) {
    const [west, east, north, south] = [x1 - width - by, x2 + by, y1 - height - by, y2 + by];
    places.push([centreX, north], [east, north], [west, north], [east, centreY], [west, centreY]);
    places.push([centreX, south], [east, south], [west, south]);
  }
  return places;
}

const isSmall = ({ box: [x1, y1, x2, y2], width, height }) => x2 - x1 < width + 8 || y2 - y1 < 2 * height;
const rectangle = ([x, y], { width, height }) => [x - GAP, y - GAP, x + width + GAP, y + height + GAP];
const overlap = (one, other) => one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
