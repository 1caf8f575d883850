// The page: opens the traces inside it, or files that the reader drops or chooses.

import { unbase64 } from "./columns.js";
import { element } from "./dom.js";
import { dress } from "./shell.js";
import { readTrace } from "./trace.js";
import { Viewer } from "./viewer.js";

const byId = (id) => document.getElementById(id);
const viewer = new Viewer(byId("viewer"), byId("bar"), byId("voice"));

async function open(files) {
  const traces = [];
  const wrong = [];
  for (const { name, bytes } of files.slice(0, 2)) {
    try {
      traces.push(await readTrace(await bytes(), name));
    } catch (error) {
      wrong.push(error.message);
    }
  }
  if (files.length > 2) wrong.push("The page shows two traces at most; the other files were ignored.");
  byId("trouble").replaceChildren(...wrong.map((line) => element("p", {}, line)));
  byId("trouble").hidden = !wrong.length;
  if (!traces.length) return;
  byId("welcome").hidden = true;
  byId("bar").hidden = false;
  viewer.open(traces);
  const names = traces.map((trace) => trace.rule);
  document.title = `${names.join(" and ")} – unmask`;
}

function opened(list) {
  return open(
    [...list].map((file) => ({
      name: file.name,
      bytes: async () => new Uint8Array(await file.arrayBuffer()),
    })),
  );
}

function embedded() {
  const scripts = [...document.querySelectorAll("script.trace")];
  return open(
    scripts.map((script) => ({
      name: script.dataset.name,
      bytes: async () => unbase64(script.textContent.trim()),
    })),
  );
}

dress(viewer, byId("help"), byId("theme"));
byId("open").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", (event) => opened(event.target.files));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) opened(event.dataTransfer.files);
});
embedded().then(() => (document.documentElement.dataset.ready = "yes"));
