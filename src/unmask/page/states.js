// The state of a position after a number of steps, and sentences about it.

import { few, plural, quoted } from "./words.js";

// kind: given (prompt), ahead (masked, not a candidate in this step), waiting, committed, filled.
// step and place: the step and index of its numbers; step is null if it has none.
export function stateAt(trace, position, time) {
  const event = trace.event(position, time);
  const step = time > 0 ? trace.steps[time - 1] : null;
  if (event && event.kind !== "revoked") {
    const source = event.kind === "committed" ? trace.steps[event.number - 1] : null;
    const place = source ? source.place(position) : -1;
    return state(event.kind, event.token, event.number === time, event, source, place);
  }
  if (!event && trace.canvas[position] !== trace.maskId) {
    return state("given", trace.canvas[position], false, null, null, -1);
  }
  const place = step ? step.place(position) : -1;
  const kind = place < 0 ? "ahead" : "waiting";
  const now = event !== null && event.number === time; // taken back in this step
  return state(kind, trace.maskId, now, event, place < 0 ? null : step, place);
}

function state(kind, token, now, event, step, place) {
  return { kind, token, now, event, step: place < 0 ? null : step, place };
}

// The last step up to `time` in which a position was a candidate, or null.
export function lastSeen(trace, position, time) {
  for (let number = time; number > 0; number -= 1) {
    if (trace.steps[number - 1].place(position) >= 0) return trace.steps[number - 1];
  }
  return null;
}

// One sentence about a position.
export function sentence(trace, position, time) {
  const { kind, now, event, step, place } = stateAt(trace, position, time);
  const eos = trace.header.settings.eos;
  const taken = event?.kind === "revoked" ? `taken back in step ${event.number}` : "";
  const of = step ? `rank ${step.rank(place) + 1} of ${step.count}` : "";
  if (kind === "given") return "Part of the prompt.";
  if (kind === "filled") return `Written by the EOS policy (${eos}) in step ${event.number}.`;
  if (kind === "committed") {
    return now ? `Committed in this step as ${of}.` : `Committed in step ${event.number} as ${of}.`;
  }
  if (now) return "Taken back in this step: its distribution changed after the commitment.";
  const again = taken ? `, ${taken}` : "";
  if (kind === "waiting") return `Not committed: ${of}${again}.`;
  if (time === 0) return "Masked: decoding has not started.";
  const { start, stop } = trace.steps[time - 1];
  if (position >= stop) return `Masked${again}: its block comes after ${start}–${stop - 1}.`;
  return `Masked${again}: not a candidate in this step.`;
}

// One sentence about a step, for screen readers.
export function stepSentence(trace, time) {
  const total = trace.steps.length;
  if (time === 0) return `Start: ${plural(trace.steps[0]?.count ?? 0, "mask")} to fill.`;
  const step = trace.steps[Math.min(time, total) - 1];
  if (!step) return "No step yet.";
  const names = (writes) => few([...writes].map(([at, token]) => `${quoted(trace, token)} at ${at}`));
  const parts = [];
  if (step.committed.size) parts.push(`committed ${names(step.committed)}`);
  if (step.filled.size) parts.push(`the EOS policy wrote ${plural(step.filled.size, "token")}`);
  if (step.revoked.length) parts.push(`taken back at ${few(step.revoked)}`);
  if (!parts.length) parts.push("no token was committed");
  return `Step ${step.number} of ${total}: ${parts.join("; ")}.`;
}

// The cost of a finished run, or its last step.
export function ending(trace) {
  if (trace.end) {
    const { nfe, nfe_eos: until } = trace.end;
    return until == null ? `NFE ${nfe}` : `NFE ${nfe}, ${until} until EOS`;
  }
  return trace.open ? `step ${trace.steps.length}` : `cut off at step ${trace.steps.length}`;
}
