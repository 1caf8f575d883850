// The player: the current step, and the controls that change it.

import { element, icon, setAttribute } from "./dom.js";

const SPEEDS = [0.5, 1, 2, 4, 8, 16, 30]; // steps per second

export class Player {
  // change(time, playing): called when the step changes, or playing starts or stops.
  constructor(root, { change = () => {} } = {}) {
    this.change = change;
    this.time = 0;
    this.count = 0;
    this.timer = null;
    this.speed = 2;
    const button = (name, title, act) =>
      element(
        "button",
        { type: "button", title, "aria-label": title, "data-act": name, onclick: act },
        icon(name),
      );
    this.play_button = button("play", "Play (space)", () => this.toggle());
    this.slider = element("input", {
      type: "range",
      min: 0,
      max: 0,
      value: 0,
      step: 1,
      "aria-label": "Step",
      oninput: () => this.go(this.slider.valueAsNumber),
    });
    this.label = element("output", { class: "at" });
    const speeds = SPEEDS.map((speed) =>
      element("option", { value: speed, selected: speed === this.speed }, `${speed}/s`),
    );
    this.rate = element(
      "select",
      {
        "aria-label": "Speed, steps per second",
        onchange: () => this.setSpeed(Number(this.rate.value)),
      },
      speeds,
    );
    const buttons = element(
      "div",
      { class: "buttons", role: "group", "aria-label": "Playback" },
      button("first", "First (Home)", () => this.go(0)),
      button("back", "Back (←)", () => this.go(this.time - 1)),
      this.play_button,
      button("next", "Forward (→)", () => this.go(this.time + 1)),
      button("last", "Last (End)", () => this.go(this.count)),
      this.rate,
    );
    this.slide = element("div", { class: "slide" }, this.slider);
    root.append(buttons, element("div", { class: "track" }, this.slide, this.label));
    this.render();
  }

  get playing() {
    return this.timer !== null;
  }

  // Opens a run with `count` steps at step `time`.
  open(count, time = 0) {
    this.pause();
    this.count = count;
    this.time = Math.min(time, count);
    this.render();
    this.change(this.time, false);
  }

  // Sets a new number of steps. A reader at the end stays at the end.
  extend(count) {
    const following = this.time === this.count && !this.playing;
    this.count = count;
    if (following) this.move(count);
    else this.render();
  }

  go(time) {
    this.pause();
    this.move(time);
  }

  move(time) {
    this.time = Math.max(0, Math.min(this.count, time));
    this.render();
    this.change(this.time, this.playing);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.playing || !this.count) return;
    if (this.time === this.count) this.move(0);
    this.timer = setTimeout(() => this.tick(), 1000 / this.speed);
    this.render();
    this.change(this.time, true);
  }

  pause() {
    if (!this.playing) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.render();
    this.change(this.time, false);
  }

  tick() {
    if (this.time + 1 >= this.count) {
      this.timer = null;
      this.move(this.count);
      return;
    }
    this.timer = setTimeout(() => this.tick(), 1000 / this.speed);
    this.move(this.time + 1);
  }

  // Shows a mark above the slider at a step, or none.
  mark(time, text = "") {
    setAttribute(this.slide, "data-mark", time == null ? null : text);
    this.slide.style.setProperty("--mark", this.count ? (time ?? 0) / this.count : 0);
  }

  setSpeed(speed) {
    this.speed = speed;
    this.rate.value = String(speed);
  }

  render() {
    this.slider.max = String(this.count);
    this.slider.value = String(this.time);
    const text = this.time ? `step ${this.time} of ${this.count}` : `start, ${this.count} steps`;
    this.slider.setAttribute("aria-valuetext", text);
    this.label.textContent = `${this.time} / ${this.count}`;
    const name = this.playing ? "pause" : "play";
    if (this.play_button.dataset.act === name) return;
    this.play_button.dataset.act = name;
    const title = this.playing ? "Pause (space)" : "Play (space)";
    this.play_button.title = title;
    this.play_button.setAttribute("aria-label", title);
    this.play_button.replaceChildren(icon(name));
  }

  // Handles a key; returns whether it is a key of the player.
  key(name) {
    if (name === " ") this.toggle();
    else if (name === "ArrowLeft") this.go(this.time - 1);
    else if (name === "ArrowRight") this.go(this.time + 1);
    else if (name === "Home") this.go(0);
    else if (name === "End") this.go(this.count);
    else return false;
    return true;
  }
}
