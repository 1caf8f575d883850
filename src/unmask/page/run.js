// The view of one run: its settings, canvas, chosen token, chart and queue.

import { About } from "./about.js";
import { CanvasView } from "./canvas.js";
import { Chart } from "./chart.js";
import { Details } from "./details.js";
import { element } from "./dom.js";
import { Queue } from "./queue.js";

export class RunView {
  // top: element for the settings; act: choose(position), hover(position or null), pick(time).
  constructor(top, root, trace, act, title = "") {
    this.trace = trace;
    this.title = title;
    const column = () => root.appendChild(element("div", { class: "column" }));
    const part = (parent, name, heading) => {
      const label = title ? `${heading}, ${title}` : heading;
      const section = element("section", { class: `part ${name}`, "aria-label": label });
      if (name !== "about")
        section.append(element("h2", {}, title ? `${heading} ${title}` : heading));
      return parent.appendChild(section);
    };
    this.about = new About(part(top, "about", "Run"));
    const [left, right] = [column(), column()];
    this.canvas = new CanvasView(part(left, "canvas", "Canvas"), act);
    this.chart = new Chart(part(left, "chart", "Over time"), act);
    this.details = new Details(part(right, "details", "Token"));
    this.queue = new Queue(part(right, "queue-part", "Queue"), act);
    this.canvas.open(trace);
    this.renew();
  }

  // Call this after the trace has grown or ended.
  renew() {
    this.about.show(this.trace, this.title);
  }

  // If `time` is after the end of this run, it shows the end.
  show(time, look, position) {
    const here = Math.min(time, this.trace.steps.length);
    this.canvas.show(here, look);
    this.details.show(this.trace, here, position);
    this.chart.show(this.trace, here, position);
    this.queue.show(this.trace, here, position);
  }
}
