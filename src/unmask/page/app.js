// The page: opens the traces inside it, or files that are dropped on it.

import { unbase64 } from "./columns.js";
import { element } from "./dom.js";
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
  if (files.length > 2) wrong.push("Two traces at most; the others were left out.");
  byId("trouble").replaceChildren(...wrong.map((line) => element("p", {}, line)));
  byId("trouble").hidden = !wrong.length;
  if (!traces.length) return;
  byId("welcome").hidden = true;
  byId("bar").hidden = false;
  viewer.open(traces);
  const names = traces.map((trace) => trace.header.settings.rule);
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
  const found = [...document.querySelectorAll("script.trace")];
  return open(
    found.map((script) => ({
      name: script.dataset.name,
      bytes: async () => unbase64(script.textContent.trim()),
    })),
  );
}

function themed() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}

// Keys are ours unless a control needs them: a slider keeps its arrows, a field all of them.
function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || byId("keys").open) return;
  const { target } = event;
  if (target.closest("select, input:not([type=range], [type=checkbox], [type=file])")) return;
  if (event.key === " " && target.closest("button, summary, input[type=checkbox]")) return;
  if (event.key === "?") byId("keys").showModal();
  else if (!viewer.key(event.key)) return;
  event.preventDefault();
}

document.addEventListener("keydown", pressed);
byId("theme").addEventListener("click", themed);
byId("help").addEventListener("click", () => byId("keys").showModal());
byId("close").addEventListener("click", () => byId("keys").close());
byId("open").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", (event) => opened(event.target.files));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) opened(event.dataTransfer.files);
});
embedded().then(() => (document.documentElement.dataset.ready = "yes"));
