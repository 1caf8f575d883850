// Two runs: where they first part, and which positions end differently. Positions are counted from
// the first mask of each, so that prompts of unequal length can be compared too.

export class Comparison {
  constructor(first, second) {
    this.traces = [first, second];
    const [a, b] = this.traces;
    this.shift = b.start - a.start; // a position of the first plus this is one of the second
    this.words =
      a.header.spec.vocab_size !== b.header.spec.vocab_size ||
      a.header.spec.mask_id !== b.header.spec.mask_id;
    this.difference = this.firstDifference();
    this.differing = this.endings();
  }

  // The position in the other run that stands at the same place, or null.
  across(position, from, to) {
    if (position == null || from === to) return position;
    const found = position + (to > from ? this.shift : -this.shift);
    return found >= 0 && found < this.traces[to].canvas.length ? found : null;
  }

  token(which, token) {
    const trace = this.traces[which];
    if (!this.words) return token;
    return token === trace.eosId ? "EOS" : trace.word(token);
  }

  // What a step did, as text that can be compared.
  deeds(which, number) {
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

  // The number of the first step that does not do the same in both, or null.
  firstDifference() {
    const most = Math.max(...this.traces.map((trace) => trace.steps.length));
    for (let number = 1; number <= most; number += 1) {
      if (this.deeds(0, number) !== this.deeds(1, number)) return number;
    }
    return null;
  }

  // For each run the positions of the answer whose last token is another one in the other run.
  endings() {
    const [a, b] = this.traces;
    const found = [new Set(), new Set()];
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
      if (left !== null) found[0].add(a.start + place);
      if (right !== null) found[1].add(b.start + place);
    }
    return found;
  }

  // What a reader must know before comparing, as sentences.
  get caveats() {
    const [a, b] = this.traces;
    const said = [];
    const prompt = (trace) =>
      JSON.stringify([...trace.canvas.subarray(0, trace.start)].map((token) => trace.word(token)));
    if (prompt(a) !== prompt(b))
      said.push("The prompts differ; positions are matched from the first mask on.");
    const lengths = [a.canvas.length - a.start, b.canvas.length - b.start];
    if (lengths[0] !== lengths[1])
      said.push(
        `The canvases differ in length: ${lengths[0]} and ${lengths[1]} positions from the first mask on.`,
      );
    if (a.header.model?.name !== b.header.model?.name) said.push("The models differ.");
    return said;
  }

  get summary() {
    const count = Math.max(this.differing[0].size, this.differing[1].size);
    if (this.difference === null) return "Both runs do the same in every step.";
    const endings = count
      ? `${count} of their positions end with another token`
      : "they end with the same tokens";
    return `The runs first differ in step ${this.difference}; ${endings}.`;
  }
}
