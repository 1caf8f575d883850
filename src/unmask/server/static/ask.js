// A client of the server's API: sends requests and follows their traces while they are written.

import { Trace } from "./page/trace.js";

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function checked(response) {
  if (response.ok) return response;
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // the body is not JSON: keep the status line
  }
  throw new ApiError(message, response.status);
}

export class Client {
  constructor(key = "") {
    this.key = key;
  }

  get headers() {
    return this.key ? { Authorization: `Bearer ${this.key}` } : {};
  }

  async model() {
    const response = await checked(await fetch("/v1/models", { headers: this.headers }));
    return (await response.json()).data[0];
  }

  // Decodes one request. Calls began(settings) with the settings and warnings, grown(trace) when steps
  // have arrived and ended(choice) with the last chunk of the answer; throws on errors.
  async run(body, name, { began, grown, ended, signal }) {
    const path = body.messages ? "/v1/chat/completions" : "/v1/completions";
    const response = await checked(
      await fetch(path, {
        method: "POST",
        headers: { ...this.headers, "Content-Type": "application/json" },
        body: JSON.stringify({ ...body, stream: true, trace: true }),
        signal,
      }),
    );
    let following = null;
    for await (const line of lines(response.body)) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const chunk = JSON.parse(line.slice(6));
      if (chunk.error) throw new ApiError(chunk.error.message, 500);
      if (chunk.unmask) began(chunk.unmask);
      const trace = chunk.choices[0]?.unmask?.trace;
      if (!following && trace) {
        following = this.follow(trace, name, grown, signal);
        following.catch(() => {}); // the caller of run() gets the error
      }
      if (chunk.choices[0]?.finish_reason) ended(chunk.choices[0]);
    }
    return following;
  }

  // Reads a trace while it is written; returns it when it is whole.
  async follow(id, name, grown, signal) {
    const response = await checked(await fetch(`/v1/traces/${id}`, { headers: this.headers, signal }));
    let trace = null;
    try {
      for await (const line of lines(response.body.pipeThrough(new DecompressionStream("gzip")))) {
        const record = JSON.parse(line);
        if (trace) trace.append(record);
        else trace = new Trace(record, name);
        grown(trace);
      }
    } catch (error) {
      if (!trace || signal?.aborted) throw error;
    }
    trace.open = false;
    grown(trace);
    return trace;
  }

  // The bytes of a trace, for a download.
  async file(id) {
    const response = await checked(await fetch(`/v1/traces/${id}`, { headers: this.headers }));
    return response.blob();
  }
}

async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      for (const part of parts) if (part) yield part;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
