// All that is shown of one run: what it was, its canvas, the chosen token, the queue.

import { About } from "./about.js";
import { CanvasView } from "./canvas.js";
import { Chart } from "./chart.js";
import { Details } from "./details.js";
import { element } from "./dom.js";
import { Queue } from "./queue.js";

export class RunView {
  // top: where it says what the run was; act: choose(position), hover(position or null), pick(time).
  constructor(top, root, trace, act, title = "") {
    this.trace = trace;
    this.title = title;
    const column = () => root.appendChild(element("div", { class: "column" }));
    const part = (parent, name, heading) => {
      const called = title ? `${heading}, ${title}` : heading;
      const section = element("section", { class: `part ${name}`, "aria-label": called });
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

  // The trace has grown or ended.
  renew() {
    this.about.show(this.trace, this.title);
  }

  // time may lie behind the end of this run: then it stays at its end.
  show(time, look, position) {
    const here = Math.min(time, this.trace.steps.length);
    this.canvas.show(here, look);
    this.details.show(this.trace, here, position);
    this.chart.show(this.trace, here, position);
    this.queue.show(this.trace, here, position);
  }
}
