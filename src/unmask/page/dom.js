// Makes elements. Text of a trace becomes text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

// element("p", { class: "note", onclick: f }, "text", child): attributes, then children.
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, String(value));
  }
  node.append(...children.flat().filter((child) => child != null));
  return node;
}

// Sets an attribute only if it changes, which avoids layout work.
export function setAttribute(node, name, value) {
  if (value == null) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

const ICONS = {
  first: "M5 5h2v14H5z M19 5v14l-10-7z",
  back: "M16 5v14L6 12z",
  play: "M7 4v16l13-8z",
  pause: "M6 5h4v14H6z M14 5h4v14h-4z",
  next: "M8 5v14l10-7z",
  last: "M17 5h2v14h-2z M5 5v14l10-7z",
};

export function icon(name) {
  const path = drawing("path", { d: ICONS[name], fill: "currentColor" });
  return drawing("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon" }, path);
}
