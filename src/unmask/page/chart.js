// The chart of one position over the steps: confidence, score, instability and commitment.

import { drawing, element } from "./dom.js";
import {
  HEIGHT,
  LANE,
  Scale,
  TOP,
  axes,
  dots,
  guesses,
  instability,
  line,
  moments,
} from "./plot.js";
import { label, number, quoted } from "./words.js";

export class Chart {
  // pick(time): called when the reader clicks on a step.
  constructor(root, { pick = () => {} } = {}) {
    this.root = root;
    this.pick = pick;
    this.shown = null;
    this.key = element("p", { class: "key" });
    this.box = element("div", { class: "plot" });
    this.table = element("div", { class: "scroll", role: "region", tabindex: 0 });
    this.table.setAttribute("aria-label", "The chart as a table");
    this.more = element("details", {}, element("summary", {}, "As a table"), this.table);
    this.more.addEventListener("toggle", () => this.fillTable());
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
    this.fillTable();
  }

  draw() {
    const width = this.box.clientWidth;
    if (!this.shown || !width) return;
    const { trace, position, count } = this.shown;
    if (!this.points.length) {
      const never = `Position ${position} was never a candidate.`;
      this.key.replaceChildren(
        position == null ? "Choose a token to see it over the steps." : never,
      );
      this.box.replaceChildren();
      return;
    }
    this.scale = new Scale(width, count, this.points);
    const picture = [
      ...axes(this.scale),
      ...instability(this.scale, this.points),
      line(this.scale, this.points, "confidence"),
      line(this.scale, this.points, "utility"),
      ...dots(this.scale, this.points),
      ...moments(this.scale, trace.events[position]),
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

  // The numbers as a table, made when the reader opens it.
  fillTable() {
    if (!this.more.open || !this.shown) return;
    const head = ["step", "guess", "confidence", "D", "score", "rank"];
    const cells = (names, tag) =>
      names.map((name) => element(tag, { scope: tag === "th" ? "col" : null }, name));
    const rows = this.points.map((point) => {
      const { trace } = this.shown;
      const guess = label(trace, point.token);
      const numbers = [
        guess,
        number(point.confidence),
        number(point.instability),
        number(point.value),
        `${point.rank + 1}`,
      ];
      return element(
        "tr",
        {},
        element("th", { scope: "row" }, `${point.number}`),
        cells(numbers, "td"),
      );
    });
    const table = element(
      "table",
      {},
      element("thead", {}, element("tr", {}, cells(head, "th"))),
      element("tbody", {}, rows),
    );
    this.table.replaceChildren(table);
  }
}

// The numbers of a position in every step in which it was a candidate.
function pointsOf(trace, position) {
  const points = [];
  for (const step of trace.steps) {
    const place = step.place(position);
    if (place < 0) continue;
    const value = step.value(place);
    points.push({
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
  return points;
}

function keys(points, scale) {
  const score =
    points.length && !points[0].logarithmic && points[0].value <= 0 ? "exp(score)" : "score";
  const entry = (name, text) =>
    element("span", { class: `entry ${name}` }, element("i", { "aria-hidden": "true" }), text);
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
