// Formats tokens and numbers.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;
const SIGNS = { "\n": "⏎", "\t": "⇥", "\r": "␍" };

// A token on the canvas: its text with visible spaces, whether a space stands before it, the number
// of its line breaks, and the indent after the last one.
export function shown(word) {
  const gap = word.length > 1 && word.startsWith(" ") && word.trim() !== "";
  const inner = gap ? word.slice(1) : word;
  const edges = inner.replace(/^ +| +$|(?<=[\n\t]) +| +(?=[\n\t])/g, (s) => "␣".repeat(s.length));
  const text = edges.replace(HIDDEN, (sign) => SIGNS[sign] ?? `\\u${hex(sign)}`);
  const breaks = word.split("\n").length - 1;
  const indent = breaks ? /[ ]*$/.exec(word.slice(word.lastIndexOf("\n")))[0].length : 0;
  return { gap, text: text || "∅", breaks, indent };
}

function hex(sign) {
  return sign.codePointAt(0).toString(16).padStart(4, "0");
}

// A token in a sentence: 'pens', with its spaces.
export function quoted(trace, token) {
  if (token === trace.maskId) return "the mask";
  if (token === trace.eosId) return "EOS";
  return `‘${trace.word(token).replace(HIDDEN, (sign) => SIGNS[sign] ?? `\\u${hex(sign)}`)}’`;
}

// A token in a table, shortened.
export function label(trace, token) {
  if (token === trace.eosId) return "EOS";
  const { text } = shown(trace.word(token));
  return text.length > 24 ? `${text.slice(0, 23)}…` : text;
}

export function number(x) {
  if (x === Infinity) return "∞";
  if (x === -Infinity) return "−∞";
  if (Number.isNaN(x)) return "–";
  const size = Math.abs(x);
  const text = size === 0 || size >= 0.001 ? size.toFixed(3) : size.toExponential(1);
  return x < 0 ? `−${text.replace("e-", "e−")}` : text.replace("e-", "e−");
}

export function few(items, most = 4) {
  const first = items.slice(0, most).join(", ");
  return items.length > most ? `${first} and ${items.length - most} more` : first;
}

export function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
