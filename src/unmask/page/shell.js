// The frame of a page with a viewer: keyboard, list of keys, dark or light theme.

import { element } from "./dom.js";

const KEYS = [
  [["space"], "play or pause"],
  [["←", "→"], "one step back or forward"],
  [["Home", "End"], "go to the start or to the end"],
  [["↑", "↓"], "previous or next token"],
  [["c"], "next colour scale"],
  [["g"], "show or hide guesses in the masks"],
  [["n"], "show or hide numbers on the tokens"],
  [["d"], "go to the first difference of two runs"],
  [["?"], "show this list"],
];

// `help` and `theme` are buttons of the page. The viewer gets all other keys.
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

// Leaves a key to the control that needs it, such as a text field or a button.
function pressed(event, viewer, keys) {
  if (event.ctrlKey || event.altKey || event.metaKey || keys.open) return;
  const { target } = event;
  if (target.closest("select, textarea, input:not([type=range], [type=checkbox], [type=radio], [type=file])")) return;
  if (event.key === " " && target.closest("button, summary, input[type=checkbox], input[type=radio]")) return;
  if (event.key === "?") keys.showModal();
  else if (!viewer.key(event.key)) return;
  event.preventDefault();
}
