// Keys. Those of a single character can be switched off (WCAG 2.1.4) and never act while one writes. The arrow keys scroll.

import { load, store } from "./api.js";

const SINGLE = new Set(["/", "?", "j", "k", "c"]);
const WITH_CTRL = new Set(["Enter", "z"]);

let on = load("localStorage", "kb.keys") !== "off";

export function lettersAreOn() {
  return on;
}

export function switchLetters(now) {
  on = now;
  store("localStorage", "kb.keys", now ? "on" : "off");
  document.body.dataset.keys = now ? "on" : "off";
}

// `acts` has a function for each key: it returns false for what it leaves to the browser.
export function listen(acts) {
  addEventListener("keydown", (event) => {
    const ctrl = event.ctrlKey || event.metaKey;
    if (event.defaultPrevented || event.isComposing || event.altKey || (ctrl && !WITH_CTRL.has(event.key))) return;
    if (document.querySelector("dialog[open]")) return;
    const writes = event.target.closest?.("input, select, textarea, [contenteditable]");
    if (SINGLE.has(event.key) && (!on || writes)) return;
    const act = acts[ctrl ? `Ctrl-${event.key}` : event.key];
    if (act && act(event, writes) !== false) event.preventDefault();
  });
  switchLetters(on);
}
