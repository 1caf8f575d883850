// Viewer: shows one or two runs at the same step, with a player and a legend.

import { Comparison } from "./compare.js";
import { brief } from "./details.js";
import { element } from "./dom.js";
import { Legend } from "./legend.js";
import { extent } from "./modes.js";
import { Player } from "./player.js";
import { RunView } from "./run.js";
import { stepSentence } from "./states.js";

export class Viewer {
  // root: element for the runs; bar: element for the controls; voice: an aria-live element.
  constructor(root, bar, voice) {
    this.root = root;
    this.voice = voice;
    this.traces = [];
    this.views = [];
    this.chosen = null; // { run, position }
    this.hovered = null;
    this.verdict = element("div", { class: "verdict" });
    this.abouts = element("div", { class: "abouts" });
    this.top = element("section", { class: "legend", "aria-label": "Colours and signs" });
    this.runs = element("div", { class: "runs" });
    this.strip = element("p", { class: "strip", "aria-hidden": "true" });
    bar.append(this.strip);
    root.append(this.abouts, this.verdict, this.top, this.runs);
    this.legend = new Legend(this.top, { change: () => this.renew() });
    this.player = new Player(bar, { change: () => this.request() });
  }

  // Shows one or two traces, which may still grow, at step `time`.
  open(traces, time = 0) {
    this.traces = traces;
    this.chosen = this.hovered = null;
    this.abouts.replaceChildren();
    this.runs.replaceChildren();
    this.abouts.dataset.count = String(traces.length);
    this.runs.dataset.count = String(traces.length);
    const titles = traces.length > 1 ? ["A", "B"] : [""];
    this.views = traces.map((trace, run) => {
      const box = element("article", {
        class: `run run-${run}`,
        "aria-label": titles[run] ? `Run ${titles[run]}` : "Run",
      });
      this.runs.append(box);
      const act = {
        choose: (position) => this.choose({ run, position }),
        hover: (position) => this.hover(position == null ? null : { run, position }),
        pick: (time_) => this.player.go(time_),
      };
      return new RunView(this.abouts, box, trace, act, titles[run]);
    });
    for (const view of this.views) view.canvas.choose(null);
    this.player.open(this.count, time);
    this.grown();
    this.render();
  }

  get count() {
    return Math.max(0, ...this.traces.map((trace) => trace.steps.length));
  }

  // Call this after steps were appended to the traces.
  grown() {
    this.comparison = this.traces.length > 1 ? new Comparison(...this.traces) : null;
    this.extent = extent(this.traces);
    this.legend.show(this.extent, this.traces);
    for (const view of this.views) view.renew();
    this.judge();
    this.player.extend(this.count);
    this.player.mark(this.comparison?.difference, "first difference");
    this.request();
  }

  judge() {
    if (!this.comparison) return this.verdict.replaceChildren();
    const { difference, summary, caveats } = this.comparison;
    const jump = element("button", {
      type: "button",
      class: "quiet",
      "data-act": "difference",
      onclick: () => this.jump(),
    });
    jump.textContent = `Go to step ${difference} (d)`;
    const lines = caveats.map((line) => element("p", { class: "note" }, line));
    return this.verdict.replaceChildren(
      element("p", {}, `${summary} `, difference === null ? null : jump),
      ...lines,
    );
  }

  jump() {
    if (this.comparison?.difference) this.player.go(this.comparison.difference);
  }

  renew() {
    this.legend.show(this.extent, this.traces);
    this.request();
  }

  choose(chosen, focus = false) {
    this.chosen = chosen;
    this.hovered = null;
    for (const [run, view] of this.views.entries()) {
      view.canvas.choose(this.seen(run), focus && run === chosen.run);
    }
    this.request();
  }

  hover(hovered) {
    this.hovered = hovered;
    this.request();
  }

  // The position whose numbers a run shows, or null.
  seen(run) {
    const at = this.hovered ?? this.chosen;
    if (!at) return null;
    return this.comparison ? this.comparison.across(at.position, at.run, run) : at.position;
  }

  // Moves to the next or previous token of the run that was chosen last.
  walk(by) {
    const run = this.chosen?.run ?? 0;
    const trace = this.traces[run];
    const from = this.chosen ? this.chosen.position + by : trace.start;
    const position = Math.max(0, Math.min(trace.canvas.length - 1, from));
    this.choose({ run, position }, true);
  }

  key(name) {
    if (!this.traces.length) return false;
    if (name === "ArrowUp") this.walk(-1);
    else if (name === "ArrowDown") this.walk(1);
    else if (name === "d" && this.comparison) this.jump();
    else return this.player.key(name) || this.legend.key(name);
    return true;
  }

  // Draws once before the next frame, even after many changes.
  request() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => this.render());
  }

  render() {
    cancelAnimationFrame(this.waiting);
    this.waiting = 0;
    if (!this.views.length) return;
    const { time, playing } = this.player;
    const { difference, differing } = this.comparison ?? {};
    this.runs.dataset.at = difference != null && time === difference ? "difference" : "";
    for (const [run, view] of this.views.entries()) {
      view.show(
        time,
        { ...this.legend.look, extent: this.extent, differs: differing?.[run] },
        this.seen(run),
      );
    }
    const at = this.hovered ?? this.chosen;
    this.strip.textContent = at
      ? brief(this.traces[at.run], Math.min(time, this.traces[at.run].steps.length), at.position)
      : "";
    if (!playing) this.speak(time);
  }

  speak(time) {
    const names = ["Run A: ", "Run B: "];
    const both = this.traces.length > 1;
    const lines = this.traces.map((trace, run) => (both ? names[run] : "") + stepSentence(trace, time));
    if (both && time === this.comparison.difference) lines.unshift("First difference.");
    const text = lines.join(" ");
    if (this.voice.textContent !== text) this.voice.textContent = text;
  }
}
