// Reads a trace from a file, or step by step while a run goes on.

import { Columns, TraceError, indices } from "./columns.js";

export const FORMAT = 1;

// One step: the numbers of its candidates and what the rule did. Columns are decoded on demand.
export class Step {
  constructor(record, number, length) {
    const [start, stop] = record.window;
    if (!(0 <= start && start <= stop && stop <= length)) throw new TraceError("a window is outside the canvas");
    this.number = number; // from 1
    this.forward = record.forward;
    this.start = start;
    this.stop = stop;
    this.count = record.count;
    this.logarithmic = record.logarithmic;
    this.committed = pairs(record.committed, length);
    this.filled = pairs(record.filled ?? [], length);
    this.revoked = places(record.revoked ?? [], length);
    this.selected = places(record.selected ?? [...this.committed.keys()], length);
    this.unweighted = record.unweighted ? places(record.unweighted, length) : null;
    this.gauge = record.gauge ?? {};
    this.digest = record.digest;
    this.columns = new Columns(record.columns, record.same, record.cells, record.count);
    this.record = record;
  }

  get positions() {
    const positions = indices(this.record.candidates, this.stop - this.start);
    if (positions.length !== this.count) throw new TraceError("the number of candidates is wrong");
    for (let i = 0; i < positions.length; i += 1) positions[i] += this.start;
    Object.defineProperty(this, "positions", { value: positions });
    return positions;
  }

  get ready() {
    const { ready } = this.record;
    const flags = ready == null ? null : indices(ready, this.stop - this.start);
    const set = new Set(flags ? flags.map((index) => index + this.start) : this.positions);
    Object.defineProperty(this, "ready", { value: set });
    return set;
  }

  // The index of a position among the candidates, or -1.
  place(position) {
    const { positions } = this;
    let low = 0;
    let high = positions.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (positions[middle] === position) return middle;
      if (positions[middle] < position) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  token(place) {
    return this.columns.read("token", place);
  }

  confidence(place) {
    return Math.exp(this.columns.read("log_confidence", place));
  }

  instability(place) {
    return this.columns.read("instability", place);
  }

  rank(place) {
    return this.columns.read("rank", place);
  }

  // The score in its own unit, as thresholds use it.
  value(place) {
    const { columns } = this;
    if (this.logarithmic) return Math.exp(columns.read("score", place));
    return columns.read(columns.has("value") ? "value" : "score", place);
  }

  // All numbers of one candidate.
  cell(place) {
    const { columns } = this;
    const read = (name) => columns.read(name, place);
    const position = this.positions[place];
    const alternatives = [];
    for (let k = 0; columns.has(`log_p_${k}`); k += 1) {
      const probability = Math.exp(read(`log_p_${k}`));
      alternatives.push({ token: read(`alternative_${k}`), probability });
    }
    return {
      position,
      alternatives,
      token: read("token"),
      confidence: this.confidence(place),
      margin: Math.exp(read("log_margin")),
      entropy: read("entropy"),
      instability: read("instability"),
      base: read("base"),
      score: read("score"),
      value: this.value(place),
      rank: read("rank"),
      baseRank: columns.has("base_rank") ? read("base_rank") : read("rank"),
      chosen: this.committed.has(position),
      ready: this.ready.has(position),
    };
  }

  // The indices of the candidates, the best first.
  get queue() {
    const order = new Array(this.count);
    for (let place = 0; place < this.count; place += 1) order[this.rank(place)] = place;
    return order.filter((place) => place != null);
  }
}

// A rule in the notation of today. Traces that do not name the start of swd are older than the
// default `uniform`; there the start is `single`.
export function ruleToday(rule) {
  return rule
    .replace(/\bswd\((?![^)]*start=)([^)]*)\)/, "swd($1, start=single)")
    .replace(/(\bswd\([^)]*), start=uniform/, "$1");
}

export class Trace {
  constructor(header, name = "trace") {
    if (header?.trace == null) throw new TraceError(`${name} is not a trace of unmask`);
    if (header.trace !== FORMAT) {
      throw new TraceError(`${name} has format ${header.trace}; this page reads ${FORMAT}`);
    }
    this.header = header;
    this.rule = ruleToday(String(header.settings.rule));
    this.name = name;
    this.canvas = Int32Array.from(header.canvas);
    this.maskId = header.spec.mask_id;
    this.eosId = header.spec.eos_id;
    this.start = Math.max(0, this.canvas.indexOf(this.maskId)); // the answer's first position
    this.steps = [];
    this.words = new Map();
    this.events = Array.from(this.canvas, () => []); // the changes of each position, in order
    this.end = null; // nfe, nfe_eos, text; null while it runs, or if it was cut off
    this.open = true; // more steps may come
    this.learn(header.words);
  }

  // Adds a line of the trace: a step, or the end of the run.
  append(record) {
    this.learn(record.words);
    if (record.end) this.end = record.end;
    if (record.forward == null) return;
    const number = this.steps.length + 1;
    const step = new Step(record, number, this.canvas.length);
    this.steps.push(step);
    for (const [position, token] of step.committed) {
      this.events[position].push({ number, kind: "committed", token });
    }
    for (const [position, token] of step.filled) {
      this.events[position].push({ number, kind: "filled", token });
    }
    for (const position of step.revoked) {
      this.events[position].push({ number, kind: "revoked", token: this.maskId });
    }
  }

  learn(words = {}) {
    for (const [id, word] of Object.entries(words)) this.words.set(Number(id), String(word));
  }

  word(token) {
    return this.words.get(token) ?? `#${token}`;
  }

  // The last event at a position after `time` steps, or null.
  event(position, time) {
    const events = this.events[position];
    for (let i = events.length - 1; i >= 0; i -= 1) if (events[i].number <= time) return events[i];
    return null;
  }

  tokenAfter(position, time) {
    return this.event(position, time)?.token ?? this.canvas[position];
  }
}

// Reads the bytes of a file. A file that was cut off gives the steps that it holds.
export async function readTrace(bytes, name = "trace") {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) throw new TraceError(`${name} is not a trace of unmask`);
  const { text, whole } = await gunzip(bytes);
  const lines = text.split("\n").slice(0, -1); // an unfinished last line is dropped
  if (!lines.length) throw new TraceError(`${name} is not a trace of unmask`);
  try {
    const trace = new Trace(JSON.parse(lines[0]), name);
    for (const line of lines.slice(1)) trace.append(JSON.parse(line));
    if (!whole) trace.end = null;
    trace.open = false;
    return trace;
  } catch (error) {
    if (error instanceof TraceError && error.message.startsWith(name)) throw error;
    throw new TraceError(`${name} is damaged: ${error.message}`);
  }
}

// Writes the bytes in pieces and reads all output before it closes the stream: an error at the end
// of a damaged file would discard output that was not read yet.
async function gunzip(bytes) {
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const reader = stream.readable.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const fetched = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
    }
  })();
  fetched.catch(() => {});
  writer.closed.catch(() => {});
  try {
    for (let at = 0; at < bytes.length; at += 4096)
      await writer.write(bytes.subarray(at, at + 4096));
    await new Promise((resume) => setTimeout(resume));
    await writer.close();
    await fetched;
    return { text, whole: true };
  } catch {
    return { text, whole: false };
  }
}

function pairs(writes, length) {
  places(
    writes.map(([position]) => position),
    length,
  );
  return new Map(writes);
}

function places(positions, length) {
  for (const position of positions) {
    const known = Number.isInteger(position) && position >= 0 && position < length;
    if (!known) throw new TraceError(`position ${position} is outside the canvas`);
  }
  return positions;
}
