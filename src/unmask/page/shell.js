// What every page around a viewer has: keys, a list of them, and dark or light.

import { element } from "./dom.js";

const KEYS = [
  [["space"], "play or pause"],
  [["←", "→"], "one step back or forward"],
  [["Home", "End"], "before the first step, after the last"],
  [["↑", "↓"], "the token before or after"],
  [["c"], "colour by something else"],
  [["g"], "guesses in the masks, or none"],
  [["n"], "numbers on the tokens, or none"],
  [["d"], "first difference of two runs"],
  [["?"], "this list"],
];

// Buttons `help` and `theme` are in the page; the viewer gets the keys that are not theirs.
export function dress(viewer, help, theme) {
  const keys = listOfKeys();
  document.body.append(keys);
  help.addEventListener("click", () => keys.showModal());
  theme.addEventListener("click", turn);
  document.addEventListener("keydown", (event) => pressed(event, viewer, keys));
}

function listOfKeys() {
  const rows = KEYS.map(([names, meaning]) => {
    const caps = names.flatMap((name, index) => [index ? " " : null, element("kbd", {}, name)]);
    return element("div", {}, element("dt", {}, caps), element("dd", {}, meaning));
  });
  const close = element("button", { type: "button", id: "close", onclick: () => dialog.close() }, "Close");
  const title = element("h2", { id: "keys-title" }, "Keys");
  const dialog = element("dialog", { id: "keys", "aria-labelledby": "keys-title" }, title, element("dl", {}, rows), close);
  return dialog;
}

function turn() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}

// Keys are ours unless a control needs them: a slider keeps its arrows, a field all of them.
function pressed(event, viewer, keys) {
  if (event.ctrlKey || event.altKey || event.metaKey || keys.open) return;
  const { target } = event;
  if (target.closest("select, textarea, input:not([type=range], [type=checkbox], [type=radio], [type=file])")) return;
  if (event.key === " " && target.closest("button, summary, input[type=checkbox], input[type=radio]")) return;
  if (event.key === "?") keys.showModal();
  else if (!viewer.key(event.key)) return;
  event.preventDefault();
}
