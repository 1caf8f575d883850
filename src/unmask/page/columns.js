// Decodes the columns of a trace: base64 of numbers in 16, 24 or 32 bits, and rows of flags.

const WIDTH = { u16: 2, u24: 3, u32: 4, f16: 2 };

export class TraceError extends Error {}

export function unbase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// Decodes a float of 16 bits: 5 for the exponent, 10 for the fraction.
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// The indices of the flags that are set; eight flags in a byte, lowest bit first.
export function indices(text, count) {
  const bytes = unbase64(text);
  if (bytes.length * 8 < count) throw new TraceError("a row of flags is cut off");
  const set = [];
  for (let i = 0; i < count; i += 1) if ((bytes[i >> 3] >> (i & 7)) & 1) set.push(i);
  return Int32Array.from(set);
}

// The columns of one step. The bytes are decoded when the first number is read.
export class Columns {
  // names: such as "token:u24"; same: columns that are left out -> the columns they equal.
  constructor(names, same, text, count) {
    this.count = count;
    this.same = same;
    this.begin = new Map();
    this.text = text;
    let end = 0;
    for (const written of names) {
      const cut = written.lastIndexOf(":");
      const kind = written.slice(cut + 1);
      if (!(kind in WIDTH)) throw new TraceError(`column ${written} has an unknown type`);
      this.begin.set(written.slice(0, cut), [end, kind]);
      end += WIDTH[kind] * count;
    }
    const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
    if ((text.length / 4) * 3 - padding < end) throw new TraceError("the columns are cut off");
  }

  get bytes() {
    const bytes = unbase64(this.text);
    Object.defineProperty(this, "bytes", { value: bytes });
    this.text = "";
    return bytes;
  }

  has(name) {
    return this.begin.has(name) || Object.hasOwn(this.same, name);
  }

  read(name, place) {
    if (Object.hasOwn(this.same, name)) {
      const other = this.same[name];
      return other === "minus_entropy" ? -this.raw("entropy", place) : this.read(other, place);
    }
    return this.raw(name, place);
  }

  raw(name, place) {
    const column = this.begin.get(name);
    if (!column) throw new TraceError(`there is no column ${name}`);
    const [begin, kind] = column;
    const bytes = this.bytes;
    const at = begin + WIDTH[kind] * place;
    const low = bytes[at] | (bytes[at + 1] << 8);
    if (kind === "u16") return low;
    if (kind === "f16") return half(low);
    if (kind === "u24") return low | (bytes[at + 2] << 16);
    return (low | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
  }
}
