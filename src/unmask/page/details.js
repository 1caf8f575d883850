// The numbers of one position in one step, and its likeliest tokens.

import { element } from "./dom.js";
import { lastSeen, sentence, stateAt } from "./states.js";
import { label, number, quoted } from "./words.js";

export class Details {
  constructor(root) {
    this.title = element("p", { class: "chosen-token" });
    this.sentence = element("p", { class: "sentence" });
    this.source = element("p", { class: "note" });
    this.numbers = element("dl", { class: "numbers" });
    this.bars = element("ol", { class: "bars" });
    this.heading = element("h3", {}, "Alternatives");
    root.append(this.title, this.sentence, this.source, this.numbers, this.heading, this.bars);
  }

  show(trace, time, position) {
    const known = position != null && position >= 0 && position < trace.canvas.length;
    for (const part of [this.numbers, this.bars, this.heading, this.source]) part.hidden = !known;
    if (!known) {
      this.title.textContent = "No token chosen";
      this.sentence.textContent = "Hover over a token, tap it, or press ↑ and ↓ to see its numbers.";
      return;
    }
    const state = stateAt(trace, position, time);
    const token = state.kind === "waiting" ? state.step.token(state.place) : state.token;
    const what = state.kind === "waiting" ? "best guess " : "";
    const strong = element("strong", {}, quoted(trace, token));
    this.title.replaceChildren(`Position ${position}: ${what}`, strong);
    this.sentence.textContent = sentence(trace, position, time);
    const step = state.step ?? lastSeen(trace, position, time);
    this.source.hidden = !step || step.number === time;
    if (step)
      this.source.textContent = `Numbers of step ${step.number}, the last step in which it was a candidate:`;
    this.numbers.hidden = this.bars.hidden = this.heading.hidden = !step;
    if (step) this.showNumbers(trace, step.cell(step.place(position)), step, token);
  }

  showNumbers(trace, cell, step, token) {
    const moved = Number.isNaN(cell.instability)
      ? "no earlier step"
      : `${number(cell.instability)} nats`;
    const base = step.logarithmic ? Math.exp(cell.base) : cell.base;
    const rows = [
      ...(cell.token === token ? [] : [["guess", "Guess in that step", quoted(trace, cell.token)]]),
      ["confidence", "Confidence", number(cell.confidence)],
      ["margin", "Margin", number(cell.margin)],
      ["entropy", "Entropy", `${number(cell.entropy)} nats`],
      ["instability", "Instability D", moved],
      ["base", "Base score", number(base)],
      ["score", "Score", number(cell.value)],
      ["rank", "Rank", `${cell.rank + 1} of ${step.count}`],
    ];
    if (step.unweighted !== null || cell.baseRank !== cell.rank) {
      rows.push(["base_rank", "Rank, λ = 0", `${cell.baseRank + 1} of ${step.count}`]);
    }
    this.numbers.replaceChildren(
      ...rows.map(([name, title, text]) =>
        element("div", {}, element("dt", {}, title), element("dd", { "data-name": name }, text)),
      ),
    );
    this.bars.replaceChildren(
      ...cell.alternatives.map(({ token, probability }) => {
        const bar = element("span", { class: "bar", "aria-hidden": "true" });
        bar.style.setProperty("--part", probability.toFixed(4));
        return element(
          "li",
          {},
          element("span", { class: "word" }, label(trace, token)),
          bar,
          element("span", { class: "figure" }, number(probability)),
        );
      }),
    );
  }
}

// One line with the main numbers, for small screens.
export function brief(trace, time, position) {
  if (position == null || position >= trace.canvas.length) return "";
  const state = stateAt(trace, position, time);
  const step = state.step ?? lastSeen(trace, position, time);
  if (!step) return `${position}: ${quoted(trace, state.token)}`;
  const cell = step.cell(step.place(position));
  const moved = Number.isNaN(cell.instability) ? "–" : number(cell.instability);
  const token = state.kind === "waiting" || state.kind === "ahead" ? cell.token : state.token;
  const open = state.kind === "waiting" ? "?" : "";
  return `${position}: ${quoted(trace, token)}${open} · p ${number(cell.confidence)} · D ${moved} · S ${number(cell.value)} · #${cell.rank + 1}`;
}
