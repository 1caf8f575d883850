// Draws a chart as SVG: scales, lines, areas and marks.

import { drawing } from "./dom.js";
import { label } from "./words.js";

export const TOP = 18;
const LEFT = 34;
export const HEIGHT = 150; // of the plot
export const LANE = 22; // height of the guesses below the plot

export class Scale {
  constructor(width, count, points) {
    const moved = points.map((point) => point.instability).filter(Number.isFinite);
    this.most = nice(Math.max(0.01, ...moved));
    this.width = width;
    this.count = Math.max(2, count);
    this.right = 40;
  }

  x(step) {
    return LEFT + ((step - 1) / (this.count - 1)) * (this.width - LEFT - this.right);
  }

  y(share) {
    return TOP + (1 - Math.min(1, Math.max(0, share))) * HEIGHT;
  }

  step(x) {
    const share = (x - LEFT) / (this.width - LEFT - this.right);
    return Math.min(this.count, Math.max(1, Math.round(1 + share * (this.count - 1))));
  }
}

function nice(x) {
  const size = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 5, 10].map((k) => k * size).find((candidate) => candidate >= x);
}

export function axes(scale) {
  const nodes = [];
  const { width, right, most } = scale;
  for (const share of [0, 0.5, 1]) {
    const y = scale.y(share);
    nodes.push(drawing("line", { class: "grid", x1: LEFT, x2: width - right, y1: y, y2: y }));
    nodes.push(drawing("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, `${share}`));
    const moved = String(Number((share * most).toPrecision(2)));
    nodes.push(drawing("text", { class: "faint", x: width - right + 6, y: y + 4 }, moved));
  }
  const bottom = TOP + HEIGHT + LANE + 24;
  nodes.push(drawing("text", { class: "faint", x: 0, y: bottom }, "step"));
  const room = Math.max(1, Math.floor((width - LEFT - right) / 44));
  const every = stride(scale.count, room);
  for (let step = every === 1 ? 1 : every; step <= scale.count; step += every) {
    nodes.push(
      drawing("text", { x: scale.x(step), y: bottom, "text-anchor": "middle" }, `${step}`),
    );
  }
  return nodes;
}

function stride(count, room) {
  for (let size = 1; ; size *= 10) {
    for (const k of [1, 2, 5]) if (count / (k * size) <= room) return k * size;
  }
}

// An area for each run of steps with a known D.
export function instability(scale, points) {
  return stretches(points, (point) => !Number.isNaN(point.instability)).map((run) => {
    const at = (point) =>
      `${scale.x(point.number).toFixed(1)} ${scale.y(point.instability / scale.most).toFixed(1)}`;
    const [first, last] = [scale.x(run[0].number), scale.x(run[run.length - 1].number)];
    const floor = scale.y(0);
    if (run.length === 1) {
      const y = scale.y(run[0].instability / scale.most);
      return drawing("rect", { class: "moved", x: first - 2, width: 4, y, height: floor - y });
    }
    const d = `M${first} ${floor}L${run.map(at).join("L")}L${last} ${floor}z`;
    return drawing("path", { class: "moved", d });
  });
}

export function line(scale, points, name) {
  const d = stretches(points, () => true)
    .map(
      (run) =>
        `M${run.map((p) => `${scale.x(p.number).toFixed(1)} ${scale.y(p[name]).toFixed(1)}`).join("L")}`,
    )
    .join("");
  return drawing("path", { class: `line ${name}`, d });
}

// A dot for each step, if there is room.
export function dots(scale, points) {
  if (scale.count > (scale.width - LEFT) / 10) return [];
  return points.map((p) =>
    drawing("circle", { class: "dot", cx: scale.x(p.number), cy: scale.y(p.confidence), r: 2.5 }),
  );
}

// The wanted points, grouped by consecutive steps.
function stretches(points, wanted) {
  const runs = [];
  let before = null;
  for (const point of points) {
    if (wanted(point)) {
      if (before === null || point.number !== before + 1) runs.push([]);
      runs[runs.length - 1].push(point);
      before = point.number;
    } else before = null;
  }
  return runs;
}

const SIGNS = { committed: "●", filled: "⇥", revoked: "↺" };

export function moments(scale, events) {
  return events.map(({ number: step, kind }) => {
    const x = scale.x(step);
    const rule = drawing("line", { x1: x, x2: x, y1: TOP, y2: TOP + HEIGHT });
    const sign = drawing("text", { x, y: TOP + HEIGHT - 6, "text-anchor": "middle" }, SIGNS[kind]);
    return drawing("g", { class: `moment ${kind}` }, rule, sign);
  });
}

// Below the plot: the best guess in each step.
export function guesses(scale, points, trace) {
  const y = TOP + HEIGHT + 8;
  const half = (scale.width - LEFT - scale.right) / (scale.count - 1) / 2;
  const runs = [];
  for (const point of points) {
    const last = runs[runs.length - 1];
    if (last && last.token === point.token && last.to === point.number - 1) last.to = point.number;
    else runs.push({ token: point.token, from: point.number, to: point.number });
  }
  return runs.flatMap((run, index) => {
    const begin = Math.max(LEFT - 4, scale.x(run.from) - half);
    const end = Math.min(scale.width - scale.right + 4, scale.x(run.to) + half);
    const size = Math.max(1, end - begin - (end - begin > 4 ? 1.5 : 0));
    const box = {
      class: `guess ${index % 2 ? "odd" : "even"}`,
      x: begin,
      y,
      width: size,
      height: LANE - 4,
      rx: 2,
    };
    const full = label(trace, run.token);
    const room = Math.floor((size - 6) / 7.2);
    const short = full.length <= room ? full : room >= 3 ? `${full.slice(0, room - 1)}…` : "";
    const text = drawing(
      "text",
      { class: "said", x: begin + size / 2, y: y + 13, "text-anchor": "middle" },
      short,
    );
    return [drawing("rect", box, drawing("title", {}, full)), ...(short ? [text] : [])];
  });
}
