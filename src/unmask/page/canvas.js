// The canvas: a chip for every position, for pointer, touch and keyboard.

import { element, setAttribute } from "./dom.js";
import { level } from "./modes.js";
import { sentence, stateAt } from "./states.js";
import { number, quoted, shown } from "./words.js";

export class CanvasView {
  // choose(position): called on click or focus; hover(position or null): called by the pointer.
  constructor(root, { choose = () => {}, hover = () => {} } = {}) {
    this.chips = [];
    this.chosen = null;
    this.list = element("div", { class: "chips", role: "listbox", "aria-label": "Canvas" });
    root.append(this.list);
    const at = (event) => positionOf(event.target.closest(".chip"));
    this.list.addEventListener("pointerover", (event) => {
      if (event.pointerType !== "touch") hover(at(event));
    });
    this.list.addEventListener("pointerleave", () => hover(null));
    this.list.addEventListener("click", (event) => at(event) != null && choose(at(event)));
    this.list.addEventListener("focusin", (event) => at(event) != null && choose(at(event)));
  }

  open(trace) {
    this.trace = trace;
    this.list.replaceChildren();
    this.chips = Array.from(trace.canvas, (_, position) => new Chip(position));
    for (const chip of this.chips) this.list.append(chip.gap, chip.node, chip.after);
  }

  // look: mode, extent, ghosts, numbers, and `differs`, a set of positions.
  show(time, look) {
    const { trace } = this;
    const step = time > 0 ? trace.steps[time - 1] : null;
    const plain = new Set(step?.unweighted ?? []);
    for (const chip of this.chips) {
      const state = stateAt(trace, chip.position, time);
      chip.show(trace, state, look, {
        plain: plain.has(chip.position),
        differs: look.differs?.has(chip.position) ?? false,
        time,
      });
    }
  }

  // Selects a chip, the only one that Tab reaches; with `focus` it gets the focus.
  choose(position, focus = false) {
    const old = this.chips[this.chosen ?? this.trace.start];
    if (old) old.choose(false, true);
    this.chosen = this.chips[position] ? position : null;
    const chip = this.chips[this.chosen ?? this.trace.start];
    if (!chip) return;
    chip.choose(this.chosen != null, false);
    if (focus) chip.node.focus({ preventScroll: false });
  }
}

function positionOf(chip) {
  return chip ? Number(chip.dataset.position) : null;
}

class Chip {
  constructor(position) {
    this.position = position;
    this.gap = document.createTextNode("");
    this.after = element("span", { class: "after", role: "presentation" });
    this.word = element("span", { class: "word" });
    this.node = element(
      "span",
      {
        class: "chip",
        role: "option",
        "data-position": position,
        tabindex: -1,
        "aria-selected": false,
      },
      this.word,
    );
    this.seen = "";
  }

  choose(selected, reachable) {
    setAttribute(this.node, "aria-selected", String(selected));
    this.node.tabIndex = reachable ? -1 : 0;
  }

  show(trace, state, look, more) {
    const guess = state.kind === "waiting" ? state.step.token(state.place) : null;
    const value = look.mode.of(state);
    const text = Number.isNaN(value) ? "" : look.mode.format(value);
    const part = Number.isNaN(value) ? -1 : look.mode.fraction(value, look.extent);
    const marks = marksOf(state, more, trace);
    const key = [
      state.kind,
      state.token,
      state.now,
      guess,
      look.ghosts,
      text,
      part,
      marks,
      look.numbers,
      more.time === 0,
      state.step?.number,
    ].join(" ");
    if (key === this.seen) return;
    this.seen = key;
    this.write(trace, state, guess, look);
    const { node } = this;
    setAttribute(node, "data-kind", state.kind);
    setAttribute(node, "data-now", state.now ? "yes" : null);
    setAttribute(node, "data-level", part < 0 ? null : String(level(part)));
    setAttribute(node, "data-marks", marks || null);
    setAttribute(node, "data-number", look.numbers ? text || "–" : null);
    setAttribute(node, "aria-label", labelOf(trace, this.position, more, guess, look, text));
  }

  write(trace, state, guess, look) {
    const masked = state.kind === "waiting" || state.kind === "ahead";
    const token = masked ? (look.ghosts ? guess : null) : state.token;
    const end = token === trace.eosId && token != null;
    const { gap, text, breaks, indent } = token == null ? BLANK : shown(trace.word(token));
    setAttribute(this.node, "data-end", end ? "yes" : null);
    this.gap.data = gap && !end ? " " : "";
    this.word.textContent = end ? "EOS" : text;
    const lines = masked || end ? 0 : breaks;
    const spaces = lines ? "\u00a0".repeat(Math.min(40, indent)) : "";
    if (this.lines === lines && this.spaces === spaces) return;
    [this.lines, this.spaces] = [lines, spaces];
    this.after.replaceChildren(...Array.from({ length: lines }, () => element("br")), spaces);
  }
}

const BLANK = { gap: false, text: "··", breaks: 0, indent: 0 };

// The signs at the corner of a chip; the legend explains them.
function marksOf(state, { plain, differs }, trace) {
  const signs = [];
  if (state.now && state.kind === "committed") signs.push("●");
  if (state.kind === "filled") signs.push("⇥");
  if (state.now && state.event?.kind === "revoked") signs.push("↺");
  if (plain && !(state.now && state.kind === "committed")) signs.push("○");
  if (differs) signs.push("≠");
  return signs.join("");
}

function labelOf(trace, position, { plain, differs, time }, guess, look, text) {
  const parts = [`position ${position}`];
  const token = trace.tokenAfter(position, time);
  if (guess != null) parts.push(`mask, best guess ${quoted(trace, guess)}`);
  else parts.push(quoted(trace, token));
  parts.push(sentence(trace, position, time));
  if (text) parts.push(`${look.mode.title} ${text}.`);
  if (plain) parts.push("At lam 0 the rule would commit it in this step.");
  if (differs) parts.push("The other run has another token here at the end.");
  return parts.join(", ");
}
