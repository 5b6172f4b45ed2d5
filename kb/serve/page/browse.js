// All issues, by project, with a filter: groups are closed until one is opened or the filter finds something in it.

import { el, permalink } from "./parts.js";
import { say } from "./words.js";

const OPEN_UP_TO = 60; // issues; more are shown only when their group is opened

function item(one, project) {
  const link = el("a", { href: permalink(one.issue), "data-moves": true, lang: one.lang === "zh" ? "zh-Hans" : "en" }, one.title);
  return el("li", {}, link, project ? null : el("small", {}, one.issue));
}

function titles(issues, project) {
  return el("ul", { class: "titles" }, ...issues.map((one) => item(one, project)));
}

function group(project, issues, open) {
  const made = el("details", { class: "group", open }, el("summary", { "data-moves": true }, el("h2", {}, project || say("no project")), " ", el("small", {}, say("size", { n: issues.length }))));
  const fill = () => made.open && !made.querySelector("ul") && made.append(titles(issues, project));
  made.addEventListener("toggle", fill);
  fill();
  return made;
}

export function projectLink(one, current = "") {
  const chosen = one.project === current ? "true" : null;
  return el("a", { href: `#/browse/${encodeURIComponent(one.project)}`, class: "tag", "aria-current": chosen }, one.project, " ", el("small", {}, String(one.issues)));
}

// `issues`: those of /api/issues; `project`: the one they are of, or "".
export function browseView(issues, project) {
  const shown = el("div", {});
  const count = el("p", { class: "small-fact", role: "status" });
  const box = el("input", { type: "search", id: "filter", autocomplete: "off", spellcheck: "false", "aria-label": say("filter"), placeholder: say("filter") });
  const texts = issues.map((one) => [one.title, one.issue, one.project ?? "", ...one.tags].join(" ").toLowerCase());
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = issues.filter((_, n) => words.every((word) => texts[n].includes(word)));
    count.textContent = words.length ? say("size", { n: found.length }) : "";
    if (project) return shown.replaceChildren(titles(found, project));
    const groups = new Map();
    for (const one of found) groups.set(one.project ?? "", [...(groups.get(one.project ?? "") ?? []), one]);
    const sorted = [...groups].sort(([a, x], [b, y]) => y.length - x.length || a.localeCompare(b));
    shown.replaceChildren(...sorted.map(([name, some]) => group(name, some, words.length > 0 && found.length <= OPEN_UP_TO)));
  };
  box.addEventListener("input", show);
  show();
  const all = project ? el("a", { href: "#/browse", class: "back" }, `← ${say("all projects")}`) : null;
  return [all, el("h1", { tabindex: "-1" }, project || say("all projects"), " ", el("small", {}, say("size", { n: issues.length }))), el("div", { class: "filter" }, box, count), shown].filter(Boolean);
}
