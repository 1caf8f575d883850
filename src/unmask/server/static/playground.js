// The playground: decodes a prompt with one or two rules and shows the runs side by side.

import { ApiError, Client } from "./ask.js";
import { element } from "./page/dom.js";
import { dress } from "./page/shell.js";
import { Viewer } from "./page/viewer.js";

const byId = (id) => document.getElementById(id);
const viewer = new Viewer(byId("viewer"), byId("bar"), byId("voice"));
const client = new Client();
const REDRAW = 60; // milliseconds between two updates of the view
const PACE = 8; // steps a second, the same for both runs: they race in forwards, not in seconds
const doubts = new Set(); // what the server warned of in this race
let running = null; // an AbortController
let usual = { block: "", recipes: {} }; // of the server

dress(viewer, byId("help"), byId("theme"));

async function greet() {
  client.key = byId("key").value;
  try {
    const model = await client.model();
    const { unmask } = model;
    byId("key-field").hidden = !client.key;
    byId("model").textContent = `${model.id}, ${unmask.family}; up to ${unmask.max_length} tokens.`;
    byId("length").max = unmask.max_length;
    byId("length").placeholder = unmask.length ?? "";
    usual = { block: String(unmask.block ?? ""), recipes: unmask.recipes };
    if (!byId("block").value) byId("block").value = usual.block;
    byId("recipes").replaceChildren(
      ...Object.entries(unmask.recipes).map(([name, rule]) => element("option", { value: name }, rule)), // a name keeps its block
    );
    const eos = byId("eos").value || unmask.eos;
    byId("eos").replaceChildren(...unmask.eos_policies.map((name) => element("option", {}, name)));
    byId("eos").value = eos;
    if (!byId("rule-a").value) byId("rule-a").value = unmask.rule_without_swd ?? unmask.rule;
    const rival = unmask.rule_without_swd ? unmask.rule : unmask.recipes.swd;
    if (!byId("rule-b").value) byId("rule-b").value = rival;
    if (!unmask.chat) choose("raw", "chat");
    offer(unmask.examples);
    say("");
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      byId("key-field").hidden = false;
      say("This server needs its API key.");
    } else say(`The server does not answer: ${error.message}`);
  }
}

function choose(kind, without) {
  const pick = (value) => document.querySelector(`input[name=kind][value=${value}]`);
  pick(kind).checked = true;
  pick(without).disabled = true;
}

// Buttons that fill in a prompt that the model can answer; the first one is there at the start.
function offer(prompts) {
  const use = (text) => {
    byId("prompt").value = text;
    document.querySelector("input[name=kind][value=chat]").checked = true;
  };
  if (!byId("prompt").value && prompts.length) use(prompts[0]);
  byId("examples").hidden = !prompts.length;
  byId("examples").replaceChildren(
    "Try ",
    ...prompts.map((text) => element("button", { type: "button", onclick: () => use(text) }, text)),
  );
}

function say(...content) {
  byId("state").replaceChildren(...content);
}

// The request that the form describes, without its rule. The server's own block is not sent for a
// recipe, which may have another one, nor where masks are filled.
function requestBody(rule) {
  const kind = document.querySelector("input[name=kind]:checked").value;
  const text = byId("prompt").value;
  const number = (id) => (byId(id).value === "" ? undefined : Number(byId(id).value));
  const shown = byId("block").value.trim();
  const own = shown === usual.block && (kind === "infill" || rule in usual.recipes);
  const block = own ? "" : shown;
  return {
    ...(kind === "chat" ? { messages: [{ role: "user", content: text }] } : { prompt: text }),
    ...(kind === "infill" ? { infill: true } : { length: number("length") }),
    block: block === "" ? undefined : block === "full" ? "full" : Number(block),
    eos: byId("eos").value || undefined,
    temperature: number("temperature"),
    seed: number("seed"),
  };
}

async function race(event) {
  event.preventDefault();
  stop();
  const own = new AbortController();
  running = own;
  const rules = ["a", "b"].map((name) => byId(`rule-${name}`).value.trim()).filter(Boolean);
  const lanes = rules.map((rule, place) => new Lane("ab"[place], rule));
  for (const name of "ab") trouble(name, "");
  doubts.clear();
  doubt([]);
  client.key = byId("key").value;
  busy(true);
  const display = new Display(lanes);
  try {
    await Promise.all(lanes.map((lane) => lane.run(requestBody(lane.rule), display, own.signal)));
    if (running === own) say(...summary(lanes));
  } finally {
    display.finish();
    if (running === own) {
      running = null;
      busy(false);
    }
  }
}

// The run of one rule.
class Lane {
  constructor(name, rule) {
    Object.assign(this, { name, rule, trace: null, last: null, failed: false });
  }

  async run(body, display, signal) {
    const callbacks = {
      signal,
      began: (settings) => doubt(settings.warnings),
      grown: (trace) => {
        this.trace = trace;
        display.grown();
      },
      ended: (last) => {
        this.last = last;
      },
    };
    try {
      await client.run({ ...body, rule: this.rule }, this.fileName, callbacks);
    } catch (error) {
      this.failed = true;
      display.grown();
      if (signal.aborted) return;
      if (error.status === 401) byId("key-field").hidden = false;
      trouble(this.name, error.message);
    }
  }

  get fileName() {
    return `${this.name}.trace`;
  }

  get traceId() {
    return this.last?.unmask?.trace;
  }
}

// Opens the view once every lane has started or failed, then adds new steps.
class Display {
  constructor(lanes) {
    Object.assign(this, { lanes, opened: false, timer: null });
  }

  grown() {
    this.timer ??= setTimeout(() => this.update(), REDRAW);
  }

  update() {
    this.timer = null;
    const started = this.lanes.filter((lane) => lane.trace?.steps.length);
    if (!this.opened) {
      if (!started.length || this.lanes.some((lane) => !lane.failed && !started.includes(lane))) return;
      this.opened = true;
      byId("bar").hidden = false;
      viewer.open(started.map((lane) => lane.trace));
      viewer.player.setSpeed(PACE);
      if (viewer.runs.getBoundingClientRect().top > innerHeight / 2) viewer.runs.scrollIntoView();
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) viewer.player.go(viewer.count);
      else viewer.player.play();
    } else viewer.grown();
  }

  finish() {
    clearTimeout(this.timer);
    this.update();
  }
}

function summary(lanes) {
  const done = lanes.filter((lane) => lane.last);
  const costs = done.map((lane) => `${lane.name.toUpperCase()}: ${lane.last.unmask.nfe} forwards`);
  const links = done.filter((lane) => lane.traceId).map((lane) => {
    const onclick = (event) => download(event, lane.traceId, lane.fileName);
    return element("a", { href: "#", "data-trace": lane.name, onclick }, `Download ${lane.fileName}`);
  });
  return [`${costs.join(", ")}. `, element("span", { class: "downloads" }, links)];
}

async function download(event, id, name) {
  event.preventDefault();
  try {
    const url = URL.createObjectURL(await client.file(id));
    const link = element("a", { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (error) {
    say(`${name} cannot be downloaded: ${error.message}`);
  }
}

function trouble(name, message) {
  const place = byId(`trouble-${name}`);
  place.textContent = message;
  place.hidden = !message;
}

// Shows what the server warns of, each warning once for both runs.
function doubt(warnings) {
  for (const warning of warnings) doubts.add(warning);
  byId("doubts").textContent = [...doubts].join("; ");
  byId("doubts").hidden = !doubts.size;
}

function busy(is) {
  byId("run").disabled = is;
  byId("stop").hidden = !is;
  if (is) say("Decoding …");
}

function stop() {
  running?.abort();
  running = null;
  busy(false);
  say("");
}

byId("ask").addEventListener("submit", race);
byId("stop").addEventListener("click", stop);
byId("key").addEventListener("change", greet);
byId("rule-b").addEventListener("input", () => {
  byId("run").textContent = byId("rule-b").value.trim() ? "Race" : "Run";
});
greet().then(() => (document.documentElement.dataset.ready = "yes"));
