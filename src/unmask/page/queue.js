// The candidates of one step by rank: which were committed, and what SWD changed.

import { element } from "./dom.js";
import { few, label, number, plural } from "./words.js";

const FEW = 12;

export class Queue {
  constructor(root, { choose = () => {} } = {}) {
    this.choose = choose;
    this.all = false;
    this.about = element("p", { class: "about-step" });
    this.effect = element("p", { class: "effect" });
    this.body = element("tbody");
    const heads = [
      ["#", "rank"],
      ["pos", "position"],
      ["token"],
      ["score"],
      ["D", "instability"],
      ["λ=0", "rank without SWD"],
      [""],
    ];
    const head = heads.map(([name, title]) =>
      element("th", { scope: "col", title, class: name === "token" ? "left" : null }, name),
    );
    this.table = element(
      "table",
      { class: "queue" },
      element("thead", {}, element("tr", {}, head)),
      this.body,
    );
    this.more = element("button", { type: "button", class: "quiet", onclick: () => this.toggle() });
    root.append(
      this.about,
      this.effect,
      element("div", { class: "scroll" }, this.table),
      this.more,
    );
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-position]");
      if (row) this.choose(Number(row.dataset.position));
    });
  }

  toggle() {
    this.all = !this.all;
    this.show(this.trace, this.time, this.position);
  }

  show(trace, time, position) {
    Object.assign(this, { trace, time, position });
    const step = trace.steps[time - 1];
    this.table.hidden = !step;
    if (!step) {
      this.about.textContent = "Before the first step there are no candidates.";
      this.effect.textContent = "";
      this.more.hidden = true;
      this.body.replaceChildren();
      return;
    }
    const queue = step.queue;
    const least = lastOf(queue, step) + 4;
    const shownRows = this.all ? queue : queue.slice(0, Math.max(FEW, Math.min(least, 40)));
    const cut = cutOf(queue, step);
    const ready = step.ready.size < step.count ? `, ${step.ready.size} allowed` : "";
    this.about.textContent = `${plural(step.count, "candidate")}${ready}, ${step.committed.size} committed.`;
    this.effect.textContent = effectOf(step);
    this.table.classList.toggle("plain-rule", step.unweighted === null);
    const rows = shownRows.flatMap((place, index) => {
      const row = rowOf(trace, step, place, position);
      return index + 1 === cut ? [row, cutRow(trace, step)] : [row];
    });
    this.body.replaceChildren(...rows);
    this.more.hidden = queue.length <= shownRows.length && !this.all;
    this.more.textContent = this.all ? `Only the first ${FEW}` : `All ${queue.length} candidates`;
  }
}

function rowOf(trace, step, place, chosen) {
  const cell = step.cell(place);
  const plain = step.unweighted?.includes(cell.position);
  const signs = `${cell.chosen ? "●" : ""}${plain ? "○" : ""}`;
  const held = !cell.chosen && step.selected.includes(cell.position);
  const words = [
    cell.chosen && "committed",
    plain && "committed at lam 0",
    held && "removed by a limit",
    !cell.ready && "not allowed yet",
  ];
  const title = words.filter(Boolean).join(", ");
  const tds = [
    `${cell.position}`,
    label(trace, cell.token),
    number(cell.value),
    number(cell.instability),
    `${cell.baseRank + 1}`,
    `${signs}${held ? "⊘" : ""}`,
  ].map((text, i) =>
    element("td", { class: ["", "left word", "", "", "", "signs"][i] || null }, text),
  );
  if (title) tds[5].append(element("span", { class: "hidden" }, ` ${title}`));
  return element(
    "tr",
    {
      "data-position": cell.position,
      title,
      class: cell.chosen ? "chosen" : plain ? "plain" : cell.ready ? null : "unready",
      "aria-current": cell.position === chosen ? "true" : null,
    },
    element("th", { scope: "row" }, `${cell.rank + 1}`),
    tds,
  );
}

// The number of committed candidates if they are the best ones, else 0.
function cutOf(queue, step) {
  const taken = queue.filter((place) => step.committed.has(step.positions[place])).length;
  const prefix = queue.slice(0, taken).every((place) => step.committed.has(step.positions[place]));
  return prefix && taken < queue.length ? taken : 0;
}

function lastOf(queue, step) {
  const wanted = new Set([...step.committed.keys(), ...(step.unweighted ?? [])]);
  for (let i = queue.length - 1; i >= 0; i -= 1)
    if (wanted.has(step.positions[queue[i]])) return i + 1;
  return 0;
}

function cutRow(trace, step) {
  const text = gaugeOf(trace, step);
  return element("tr", { class: "cut" }, element("td", { colspan: 7 }, text));
}

const LIMITS = {
  eb: ["γ", "gamma"],
  budget: ["δ", "delta"],
  factor: ["f", "f"],
  threshold: ["τ", "tau"],
  klass: ["conf", "conf"],
};

// The knob of the selection, such as ["γ", "0.1"], read from the notation of the rule.
export function limitOf(rule) {
  for (const [name, [sign, key]] of Object.entries(LIMITS)) {
    const match = new RegExp(`(?:^|\\|)\\s*${name}(?:\\(([^)]*)\\))?\\s*(?:\\||$)`).exec(rule);
    if (!match) continue;
    const values = (match[1] ?? "").split(",").map((part) => part.trim());
    const named = values.find((part) => part.startsWith(`${key}=`))?.slice(key.length + 1);
    const first = values[0] && !values[0].includes("=") ? values[0] : null;
    return [sign, named ?? first];
  }
  return null;
}

function gaugeOf(trace, step) {
  const { spent, next, best, passing, share: wanted } = step.gauge;
  const limit = limitOf(trace.rule);
  const knob = limit?.[1] ? `${limit[0]} = ${limit[1]}` : limit?.[0];
  if (spent !== undefined && limit) {
    const more = next == null ? "" : `; with one more it would be ${number(next)}`;
    return `cut: ${spent == null ? "∞" : number(spent)} spent of ${knob}${more}`;
  }
  if (passing !== undefined && limit) {
    const score = best == null ? "" : `, best score ${number(best)}`;
    return passing
      ? `cut: ${passing} passed ${knob}`
      : `cut: none passed ${knob}${score}: only the best one`;
  }
  if (wanted !== undefined) return `cut: the schedule commits ${wanted}`;
  return "cut";
}

// A sentence on what SWD changed in this step.
function effectOf(step) {
  if (step.unweighted === null) return "";
  const plain = new Set(step.unweighted);
  const late = step.unweighted.filter((position) => !step.committed.has(position));
  const early = [...step.committed.keys()].filter((position) => !plain.has(position));
  if (!late.length && !early.length)
    return "SWD changes nothing in this step: λ\u00a0=\u00a00 would commit the same.";
  const parts = [];
  if (late.length) parts.push(`does not commit ${few(late, 6)}`);
  if (early.length) parts.push(`commits ${few(early, 6)}`);
  return `SWD ${parts.join(" and ")} (λ\u00a0=\u00a00 would commit ${few(step.unweighted, 6) || "nothing"}).`;
}
