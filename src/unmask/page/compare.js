// Compares two runs: their first different step, and the positions with different tokens at the end.
// Positions are matched from the first mask on, so the prompts may differ in length.

export class Comparison {
  constructor(first, second) {
    this.traces = [first, second];
    const [a, b] = this.traces;
    this.shift = b.start - a.start; // position in the second run minus position in the first
    this.words =
      a.header.spec.vocab_size !== b.header.spec.vocab_size ||
      a.header.spec.mask_id !== b.header.spec.mask_id;
    this.difference = this.firstDifference();
    this.differing = this.endings();
  }

  // The matching position in the other run, or null.
  across(position, from, to) {
    if (position == null || from === to) return position;
    const other = position + (to > from ? this.shift : -this.shift);
    return other >= 0 && other < this.traces[to].canvas.length ? other : null;
  }

  token(which, token) {
    const trace = this.traces[which];
    if (!this.words) return token;
    return token === trace.eosId ? "EOS" : trace.word(token);
  }

  // The writes and revocations of a step, as a text to compare.
  changes(which, number) {
    const step = this.traces[which].steps[number - 1];
    if (!step) return null;
    const start = this.traces[which].start;
    const writes = [...step.committed, ...step.filled].map(([at, token]) => [
      at - start,
      this.token(which, token),
    ]);
    const order = (a, b) => a[0] - b[0];
    return JSON.stringify([writes.sort(order), step.revoked.map((at) => at - start)]);
  }

  // The number of the first step that differs, or null.
  firstDifference() {
    const most = Math.max(...this.traces.map((trace) => trace.steps.length));
    for (let number = 1; number <= most; number += 1) {
      if (this.changes(0, number) !== this.changes(1, number)) return number;
    }
    return null;
  }

  // For each run, the positions of the answer whose final token differs.
  endings() {
    const [a, b] = this.traces;
    const positions = [new Set(), new Set()];
    const after = (which, position) => {
      const trace = this.traces[which];
      return position >= trace.start && position < trace.canvas.length
        ? this.token(which, trace.tokenAfter(position, trace.steps.length))
        : null;
    };
    const most = Math.max(a.canvas.length - a.start, b.canvas.length - b.start);
    for (let place = 0; place < most; place += 1) {
      const [left, right] = [after(0, a.start + place), after(1, b.start + place)];
      if (left === right) continue;
      if (left !== null) positions[0].add(a.start + place);
      if (right !== null) positions[1].add(b.start + place);
    }
    return positions;
  }

  // Sentences on differences of the prompts, lengths or models.
  get caveats() {
    const [a, b] = this.traces;
    const sentences = [];
    const prompt = (trace) =>
      JSON.stringify([...trace.canvas.subarray(0, trace.start)].map((token) => trace.word(token)));
    if (prompt(a) !== prompt(b))
      sentences.push("The prompts differ; positions are matched from the first mask on.");
    const lengths = [a.canvas.length - a.start, b.canvas.length - b.start];
    if (lengths[0] !== lengths[1])
      sentences.push(
        `The canvases differ in length: ${lengths[0]} and ${lengths[1]} positions from the first mask on.`,
      );
    if (a.header.model?.name !== b.header.model?.name) sentences.push("The models differ.");
    return sentences;
  }

  get summary() {
    const count = Math.max(this.differing[0].size, this.differing[1].size);
    if (this.difference === null) return "Both runs are the same in every step.";
    const endings = count
      ? `at the end ${count} of their positions have different tokens`
      : "at the end they have the same tokens";
    return `The runs first differ in step ${this.difference}; ${endings}.`;
  }
}
