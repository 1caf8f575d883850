// Colour scales: each mode maps a position to a number and the number to a colour.

import { number } from "./words.js";

export const LEVELS = 12; // steps of the scale in page.css

const share = (x) => Math.min(1, Math.max(0, x));

export const MODES = [
  {
    name: "confidence",
    title: "Confidence",
    hint: "probability of the likeliest token; for a committed token, in the step that committed it",
    of: ({ step, place }) => (step ? step.confidence(place) : NaN),
    fraction: share,
    ticks: () => ["0", "0.25", "0.5", "0.75", "1"],
    format: (x) => x.toFixed(2),
  },
  {
    name: "instability",
    title: "Instability D",
    hint: "KL divergence between two consecutive steps, in nats, on a logarithmic scale",
    of: ({ step, place }) => (step ? step.instability(place) : NaN),
    fraction: (x) => share((Math.log10(Math.max(x, 1e-9)) + 3) / 4),
    ticks: () => ["≤ 0.001", "0.01", "0.1", "1", "≥ 10"],
    format: (x) => (x === Infinity ? "∞" : x < 0.01 ? "<.01" : x.toFixed(2)),
  },
  {
    name: "step",
    title: "Step of commitment",
    hint: "early to late",
    of: ({ kind, event }) => (kind === "committed" || kind === "filled" ? event.number : NaN),
    fraction: (x, { steps }) => share((x - 1) / Math.max(1, steps - 1)),
    ticks: ({ steps }) => ["1", `${Math.ceil(steps / 2)}`, `${steps}`],
    format: (x) => `${x}`,
  },
  {
    name: "score",
    title: "Rule score",
    hint: "the score that ranks candidates, after SWD, in its own unit",
    of: ({ step, place }) => (step ? step.value(place) : NaN),
    fraction: (x, { low, high }) => share((x - low) / (high - low || 1)),
    ticks: ({ low, high }) => {
      if (low === 0 && high === 1) return ["0", "0.25", "0.5", "0.75", "1"];
      return [`≤ ${number(low)}`, number((low + high) / 2), number(high)];
    },
    format: (x) => (Number.isFinite(x) ? x.toFixed(2).replace("-", "−") : "−∞"),
  },
];

export function level(fraction) {
  return Math.min(LEVELS - 1, Math.floor(fraction * LEVELS));
}

// The common ranges of the scales for all runs of the page.
export function extent(traces) {
  const ranges = traces.map(scoreRange);
  return {
    steps: Math.max(1, ...traces.map((trace) => trace.steps.length)),
    low: Math.min(...ranges.map(([low]) => low)),
    high: Math.max(...ranges.map(([, high]) => high)),
  };
}

const RANGES = new WeakMap(); // trace -> the number of steps read, and their range

// The range of the scores: 0 to 1 for probabilities, else the range of the scores before SWD.
function scoreRange(trace) {
  if (trace.steps[0]?.logarithmic ?? true) return [0, 1];
  const range = RANGES.get(trace) ?? { count: 0, low: Infinity, high: -Infinity };
  for (; range.count < trace.steps.length; range.count += 1) {
    const { columns, count } = trace.steps[range.count];
    for (let place = 0; place < count; place += 1) {
      const base = columns.read("base", place);
      if (!Number.isFinite(base)) continue;
      range.low = Math.min(range.low, base);
      range.high = Math.max(range.high, base);
    }
  }
  RANGES.set(trace, range);
  return range.low < Infinity ? [range.low, range.high] : [0, 1];
}
