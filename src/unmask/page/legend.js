// The meaning of the colours and signs of the canvas, and the controls to choose them.

import { element } from "./dom.js";
import { LEVELS, MODES } from "./modes.js";

const SIGNS = [
  ["●", "committed in this step"],
  ["○", "λ = 0 would commit it"],
  ["↺", "taken back"],
  ["⇥", "written by the EOS policy"],
  ["≠", "other token in the other run"],
];

export class Legend {
  // change({ mode, ghosts, numbers }): called when the reader chooses other settings.
  constructor(root, { change = () => {} } = {}) {
    this.look = { mode: MODES[0], ghosts: true, numbers: false };
    this.change = change;
    const options = MODES.map((mode) => element("option", { value: mode.name }, mode.title));
    this.select = element(
      "select",
      { id: "mode", onchange: () => this.setMode(MODES[this.select.selectedIndex]) },
      options,
    );
    this.swatches = element("span", { class: "swatches", "aria-hidden": "true" });
    for (let i = 0; i < LEVELS; i += 1) this.swatches.append(element("i", { "data-level": i }));
    this.ticks = element("span", { class: "ticks" });
    this.signs = element("ul", { class: "signs" });
    root.append(
      element("label", { class: "mode", for: "mode" }, "Colour", this.select),
      element("div", { class: "scale" }, this.swatches, this.ticks),
      this.check("ghosts", "Guesses", "g"),
      this.check("numbers", "Numbers", "n"),
      this.signs,
    );
  }

  check(name, title, key) {
    const box = element("input", {
      type: "checkbox",
      onchange: () => this.set({ [name]: box.checked }),
    });
    box.checked = this.look[name];
    this[name] = box;
    return element("label", { class: "check" }, box, title, element("kbd", {}, key));
  }

  set(more) {
    Object.assign(this.look, more);
    this.ghosts.checked = this.look.ghosts;
    this.numbers.checked = this.look.numbers;
    this.select.value = this.look.mode.name;
    this.change(this.look);
  }

  setMode(mode) {
    this.set({ mode });
  }

  key(name) {
    if (name === "c") this.setMode(MODES[(MODES.indexOf(this.look.mode) + 1) % MODES.length]);
    else if (name === "g") this.set({ ghosts: !this.look.ghosts });
    else if (name === "n") this.set({ numbers: !this.look.numbers });
    else return false;
    return true;
  }

  // Shows the scale, and the signs that occur in the runs.
  show(extent, traces) {
    const { mode } = this.look;
    this.ticks.replaceChildren(...mode.ticks(extent).map((tick) => element("span", {}, tick)));
    this.select.title = mode.hint;
    const some = (test) => traces.some((trace) => trace.steps.some(test));
    const wanted = {
      "●": true,
      "○": some((step) => step.unweighted),
      "↺": some((step) => step.revoked.length),
      "⇥": some((step) => step.filled.size),
      "≠": traces.length > 1,
    };
    const shown = SIGNS.filter(([sign]) => wanted[sign]);
    this.signs.replaceChildren(
      ...shown.map(([sign, text]) =>
        element("li", {}, element("b", { "aria-hidden": "true" }, sign), ` ${text}`),
      ),
    );
  }
}
