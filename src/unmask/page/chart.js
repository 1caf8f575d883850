// One position over time: its confidence, its score, its instability, and when it was committed.

import { drawing, element } from "./dom.js";
import { label, number, quoted } from "./words.js";

const TOP = 18;
const LEFT = 34;
const HEIGHT = 150; // of the plot itself
const LANE = 22; // of the guesses below it

export class Chart {
  // pick(time): the reader wants to see that step.
  constructor(root, { pick = () => {} } = {}) {
    this.root = root;
    this.pick = pick;
    this.shown = null;
    this.key = element("p", { class: "key" });
    this.box = element("div", { class: "plot" });
    this.table = element("div", { class: "scroll", role: "region", tabindex: 0 });
    this.table.setAttribute("aria-label", "The chart as a table");
    this.more = element("details", {}, element("summary", {}, "As a table"), this.table);
    this.more.addEventListener("toggle", () => this.tell());
    root.append(this.key, this.box, this.more);
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.box.addEventListener("click", (event) => this.clicked(event));
  }

  show(trace, time, position) {
    const { shown } = this;
    const same = shown?.trace === trace && shown.position === position;
    if (same && shown.count === trace.steps.length) {
      shown.time = time;
      this.moveCursor();
      return;
    }
    this.shown = { trace, time, position, count: trace.steps.length };
    this.points = position == null ? [] : pointsOf(trace, position);
    this.draw();
    this.tell();
  }

  draw() {
    const width = this.box.clientWidth;
    if (!this.shown || !width) return;
    const { trace, position, count } = this.shown;
    if (!this.points.length) {
      const never = `Position ${position} was never a candidate.`;
      this.key.replaceChildren(position == null ? "Choose a token to see it over the steps." : never);
      this.box.replaceChildren();
      return;
    }
    this.scale = new Scale(width, count, this.points);
    const picture = [
      ...axes(this.scale), ...instability(this.scale, this.points),
      line(this.scale, this.points, "confidence"), line(this.scale, this.points, "utility"),
      ...dots(this.scale, this.points), ...moments(this.scale, trace.events[position]),
      ...guesses(this.scale, this.points, trace),
    ];
    this.cursor = drawing("g", { class: "cursor" });
    const height = TOP + HEIGHT + LANE + 30;
    const summary = summaryOf(trace, position, this.points);
    const settings = { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" };
    const svg = drawing("svg", { ...settings, "aria-label": summary }, picture, this.cursor);
    this.box.replaceChildren(svg);
    this.key.replaceChildren(...keys(this.points, this.scale));
    this.moveCursor();
  }

  moveCursor() {
    if (!this.cursor?.isConnected) return;
    const x = this.scale.x(Math.max(1, this.shown.time));
    const base = TOP + HEIGHT;
    const rule = drawing("line", { x1: x, x2: x, y1: TOP - 4, y2: base });
    const tip = drawing("path", { d: `M${x - 5} ${TOP - 10}h10l-5 7z` });
    this.cursor.replaceChildren(...(this.shown.time > 0 ? [rule, tip] : []));
  }

  clicked(event) {
    if (!this.points?.length) return;
    const { left } = this.box.getBoundingClientRect();
    this.pick(this.scale.step(event.clientX - left));
  }

  // The same numbers in rows, made only when they are wanted.
  tell() {
    if (!this.more.open || !this.shown) return;
    const head = ["step", "guess", "confidence", "D", "score", "rank"];
    const cells = (names, tag) => names.map((name) => element(tag, { scope: tag === "th" ? "col" : null }, name));
    const rows = this.points.map((point) => {
      const { trace } = this.shown;
      const guess = label(trace, point.token);
      const found = [guess, number(point.confidence), number(point.instability), number(point.value), `${point.rank + 1}`];
      return element("tr", {}, element("th", { scope: "row" }, `${point.number}`), cells(found, "td"));
    });
    const table = element("table", {}, element("thead", {}, element("tr", {}, cells(head, "th"))), element("tbody", {}, rows));
    this.table.replaceChildren(table);
  }
}

// What a position was in every step that had it as a candidate.
function pointsOf(trace, position) {
  const found = [];
  for (const step of trace.steps) {
    const place = step.place(position);
    if (place < 0) continue;
    const value = step.value(place);
    found.push({
      number: step.number,
      token: step.token(place),
      confidence: step.confidence(place),
      instability: step.instability(place),
      value,
      utility: step.logarithmic || value > 0 ? value : Math.exp(value), // -H and such: exp(-H)
      logarithmic: step.logarithmic,
      rank: step.rank(place),
    });
  }
  return found;
}

class Scale {
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

function axes(scale) {
  const found = [];
  const { width, right, most } = scale;
  for (const share of [0, 0.5, 1]) {
    const y = scale.y(share);
    found.push(drawing("line", { class: "grid", x1: LEFT, x2: width - right, y1: y, y2: y }));
    found.push(drawing("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, `${share}`));
    const told = String(Number((share * most).toPrecision(2)));
    found.push(drawing("text", { class: "faint", x: width - right + 6, y: y + 4 }, told));
  }
  const bottom = TOP + HEIGHT + LANE + 24;
  found.push(drawing("text", { class: "faint", x: 0, y: bottom }, "step"));
  const room = Math.max(1, Math.floor((width - LEFT - right) / 44));
  const every = stride(scale.count, room);
  for (let step = every === 1 ? 1 : every; step <= scale.count; step += every) {
    found.push(drawing("text", { x: scale.x(step), y: bottom, "text-anchor": "middle" }, `${step}`));
  }
  return found;
}

function stride(count, room) {
  for (let size = 1; ; size *= 10) {
    for (const k of [1, 2, 5]) if (count / (k * size) <= room) return k * size;
  }
}

// An area for each run of steps with a history.
function instability(scale, points) {
  return stretches(points, (point) => !Number.isNaN(point.instability)).map((run) => {
    const at = (point) => `${scale.x(point.number).toFixed(1)} ${scale.y(point.instability / scale.most).toFixed(1)}`;
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

function line(scale, points, name) {
  const d = stretches(points, () => true)
    .map((run) => `M${run.map((p) => `${scale.x(p.number).toFixed(1)} ${scale.y(p[name]).toFixed(1)}`).join("L")}`)
    .join("");
  return drawing("path", { class: `line ${name}`, d });
}

// Dots while there is room for them, so that single steps can be told apart.
function dots(scale, points) {
  if (scale.count > (scale.width - LEFT) / 10) return [];
  return points.map((p) => drawing("circle", { class: "dot", cx: scale.x(p.number), cy: scale.y(p.confidence), r: 2.5 }));
}

// Runs of consecutive steps whose points are wanted.
function stretches(points, wanted) {
  const found = [];
  let before = null;
  for (const point of points) {
    if (wanted(point)) {
      if (before === null || point.number !== before + 1) found.push([]);
      found[found.length - 1].push(point);
      before = point.number;
    } else before = null;
  }
  return found;
}

const SIGNS = { committed: "●", filled: "⇥", revoked: "↺" };

function moments(scale, events) {
  return events.map(({ number: step, kind }) => {
    const x = scale.x(step);
    const rule = drawing("line", { x1: x, x2: x, y1: TOP, y2: TOP + HEIGHT });
    const sign = drawing("text", { x, y: TOP + HEIGHT - 6, "text-anchor": "middle" }, SIGNS[kind]);
    return drawing("g", { class: `moment ${kind}` }, rule, sign);
  });
}

// Below the plot: which token was the best guess, and when it changed.
function guesses(scale, points, trace) {
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
    const box = { class: `guess ${index % 2 ? "odd" : "even"}`, x: begin, y, width: size, height: LANE - 4, rx: 2 };
    const full = label(trace, run.token);
    const room = Math.floor((size - 6) / 7.2);
    const told = full.length <= room ? full : room >= 3 ? `${full.slice(0, room - 1)}…` : "";
    const text = drawing("text", { class: "said", x: begin + size / 2, y: y + 13, "text-anchor": "middle" }, told);
    return [drawing("rect", box, drawing("title", {}, full)), ...(told ? [text] : [])];
  });
}

function keys(points, scale) {
  const score = points.length && !points[0].logarithmic && points[0].value <= 0 ? "exp(score)" : "score";
  const entry = (name, text) => element("span", { class: `entry ${name}` }, element("i", { "aria-hidden": "true" }), text);
  return [
    entry("confidence", "confidence"),
    entry("utility", score),
    entry("moved", `D, right axis to ${scale.most} nats`),
    element("span", { class: "entry" }, element("b", { "aria-hidden": "true" }, "●"), " committed"),
  ];
}

function summaryOf(trace, position, points) {
  if (!points.length) return `Position ${position} was never a candidate.`;
  const [first, last] = [points[0], points[points.length - 1]];
  const moved = points.map((p) => p.instability).filter((x) => !Number.isNaN(x));
  const changes = points.filter((p, i) => i && p.token !== points[i - 1].token).length;
  const events = trace.events[position].map((e) => `${e.kind} in step ${e.number}`).join(", ");
  return (
    `Position ${position} over ${points.length} steps: confidence ${number(first.confidence)} in step ` +
    `${first.number}, ${number(last.confidence)} in step ${last.number}; score ${number(first.value)} to ` +
    `${number(last.value)}; largest instability ${moved.length ? number(Math.max(...moved)) : "unknown"}; ` +
    `the best guess changed ${changes} times and ended as ${quoted(trace, last.token)}; ${events || "never committed"}.`
  );
}
