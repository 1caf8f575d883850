// A run: its rule, model, settings, cost and answer.

import { element } from "./dom.js";
import { ending } from "./states.js";
import { plural } from "./words.js";

export class About {
  constructor(root) {
    this.root = root;
  }

  show(trace, title = "") {
    const { end, open } = trace;
    const facts = factsOf(trace).map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value)),
    );
    const heading = element(
      "h2",
      {},
      title ? element("span", { class: "which" }, title) : null,
      ruleOf(trace.rule),
    );
    const cost = element("strong", { class: end || open ? "cost" : "cost cut-off" }, ending(trace));
    const text = end?.text;
    const answer =
      text == null ? null : element("blockquote", { class: "answer" }, text || "(empty)");
    this.root.replaceChildren(
      heading,
      element(
        "dl",
        { class: "facts" },
        element("div", {}, element("dt", {}, "cost"), element("dd", {}, cost)),
        facts,
      ),
      ...(answer ? [answer] : []),
    );
  }
}

// The rule as one element for each part, so that lines break between parts.
function ruleOf(rule) {
  const parts = String(rule).split(" | ");
  const spans = parts.flatMap((part, index) => [index ? " | " : "", element("span", {}, part)]);
  return element(
    "code",
    { class: "rule" },
    spans.filter((part) => part !== ""),
  );
}

function factsOf(trace) {
  const { header } = trace;
  const { settings, model } = header;
  const sampling = settings.sampling ?? {};
  const start = trace.start;
  const prompt =
    header.length == null ? "infilling" : `${plural(header.length, "token")} after ${start}`;
  return [
    ["model", String(model?.name ?? "unknown")],
    ["window", settings.block ? `blocks of ${settings.block}` : "full"],
    ["EOS", String(settings.eos)],
    ["length", prompt],
    ["seed", String(header.seed)],
    ...(sampling.temperature ? [["temperature", String(sampling.temperature)]] : []),
    ...(sampling.temperature && sampling.top_p < 1 ? [["top-p", String(sampling.top_p)]] : []),
    ...(settings.steps ? [["steps", `at most ${settings.steps}`]] : []),
    ...(model?.cache && model.cache !== "none" ? [["cache", String(model.cache)]] : []),
    ...(model?.guidance ? [["guidance", String(model.guidance)]] : []),
    ["file", trace.name],
  ];
}
