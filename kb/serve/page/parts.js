// Here is an issue; give me elements that show it. Every text goes in as text: no markup is ever parsed.

import { say } from "./words.js";

const TAGS = new Set(
  "p em strong code pre a br ul ol li blockquote hr h4 h5 h6 table thead tbody tr th td".split(" "),
);

// What would steer the text around it (an escape, a turn of the writing direction) is shown as a mark, as in a terminal.
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu;

export function visible(text) {
  return text.replace(CONTROL, (one) => (one < " " ? String.fromCharCode(0x2400 + one.charCodeAt(0)) : "\ufffd"));
}

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : name === "title" ? visible(value) : value);
  }
  made.append(...children.filter((child) => child !== null).map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

function web(target) {
  return /^https?:\/\//i.test(target);
}

function outward(target, ...children) {
  if (!web(target)) return el("span", {}, ...children);
  return el("a", { href: target, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}

// The tree of nodes that the server made of an article's markdown.
export function grown(nodes) {
  return nodes.map((node) => {
    if (typeof node === "string") return document.createTextNode(visible(node));
    if (!TAGS.has(node.tag)) return document.createTextNode("");
    const children = grown(node.children);
    if (node.tag === "pre") return fence(children, node.lang);
    if (node.tag === "table") return el("div", { class: "wide" }, el("table", {}, ...children));
    if (node.tag === "ol") return el("ol", { start: node.start ?? null }, ...children);
    if (node.tag !== "a") return el(node.tag, {}, ...children);
    return node.href.startsWith("#/issue/") ? el("a", { href: node.href }, ...children) : outward(node.href, ...children);
  });
}

function fence(children, language) {
  const code = el("code", { translate: "no" }, ...children);
  const button = el("button", { type: "button", class: "copy", on: { click: () => copy(code.textContent, button) } }, say("copy"));
  return el("div", { class: "fence" }, el("pre", { tabindex: "0", "data-language": language || null }, code), button);
}

export async function copy(text, button = null) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Over plain http from another machine there is no clipboard but the old one.
    const box = el("textarea", { class: "hush" });
    box.value = text;
    const before = document.activeElement;
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
    before?.focus();
  }
  document.getElementById("status").textContent = say("copied what", { what: text.split("\n")[0].slice(0, 80) });
  if (!button) return;
  button.textContent = say("copied");
  setTimeout(() => (button.textContent = say("copy")), 1500);
}

export function permalink(issue) {
  const [slug, number] = issue.split("#");
  return `#/issue/${encodeURIComponent(slug)}/${number}`;
}

function chips(label, texts) {
  if (!texts.length) return null;
  const list = texts.map((text) => el("code", { title: text }, text));
  return el("p", { class: "chips" }, el("span", {}, label), ...list);
}

function section(name, nodes) {
  const words = nodes.length ? grown(nodes) : name === "symptom" ? [] : [el("p", { class: "none" }, say(`no ${name}`))];
  if (!words.length) return null;
  return el("section", { class: name }, el("h3", {}, say(name)), ...words);
}

// Symptom, cause and fix; then where it comes from. `whole` also shows how people ask.
export function body(told, { whole = false } = {}) {
  const errors = told.tree.symptom.length ? [] : [{ tag: "pre", lang: "", children: [told.errors.join("\n")] }];
  const symptom = told.tree.symptom.length || !told.errors.length ? told.tree.symptom : errors;
  const asked = whole && told.aliases?.length
    ? el("section", {}, el("h3", {}, say("aliases")), el("ul", {}, ...told.aliases.map((one) => el("li", {}, one))))
    : null;
  const sources = whole ? told.sources : told.sources.slice(0, 2);
  const rest = told.sources.length - sources.length;
  const facts = el(
    "dl",
    { class: "facts" },
    ...fact("versions", told.versions.map((one) => el("span", {}, one))),
    ...fact("sources", [
      ...sources.map((one) => outward(one, one.replace(/^https?:\/\/(www\.)?/i, ""))),
      ...(rest > 0 ? [el("a", { href: permalink(told.issue) }, `+${rest}`)] : []),
    ]),
    ...fact("base", told.base && told.base !== "bundled" ? [el("span", {}, told.base)] : []),
  );
  const parts = [section("symptom", symptom), section("cause", told.tree.cause), section("fix", told.tree.fix), asked, facts];
  return el("div", { class: "body", lang: told.lang === "zh" ? "zh-Hans" : "en" }, ...parts.filter(Boolean));
}

function fact(name, values) {
  return values.length ? [el("dt", {}, say(name)), ...values.map((value) => el("dd", {}, value))] : [];
}

// One result: a heading that opens it, why it is here, and what the article tells.
export function card(hit, open, turn) {
  const id = `hit-${hit.rank}`;
  const button = el("button", { type: "button", class: "opens", "aria-controls": id, "data-moves": true }, hit.title);
  const shown = el("div", { id });
  const made = el(
    "article",
    { class: "hit", "data-issue": hit.issue },
    el("header", {}, tag(hit.project), sure(hit.confidence, open), el("h2", {}, button), chips(say("matched"), hit.matched)),
    shown,
  );
  const set = (now) => {
    button.setAttribute("aria-expanded", String(now));
    shown.hidden = !now;
    made.classList.toggle("open", now);
    if (now && !shown.firstChild) shown.append(body(hit), links(hit, turn ? () => turn(hit, shown) : null));
  };
  button.addEventListener("click", () => set(shown.hidden));
  set(open);
  return made;
}

// What can be done with a shown issue: see all of it, or the other telling.
export function links(told, turn, whole = false) {
  const other = told.lang === "en" ? "zh" : "en";
  const toggle = turn
    ? el("button", { type: "button", class: "quiet", lang: other, on: { click: turn } }, say("told in", {}, other))
    : null;
  return el(
    "p",
    { class: "links" },
    whole ? null : el("a", { href: permalink(told.issue) }, say("all of it")),
    toggle,
    el("code", {}, told.issue),
  );
}

export function tag(project) {
  return project ? el("a", { class: "tag", href: `#/browse/${encodeURIComponent(project)}` }, project) : null;
}

// Only the answer is called sure: what `answered` says decides, no figure of the page's own.
function sure(confidence, answer) {
  const n = Math.floor(confidence * 100);
  const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("i"));
  bar.firstChild.style.width = `${n}%`;
  return el("span", { class: answer ? "sure" : "sure unsure" }, bar, answer ? say("certain", { n }) : `${n}%`);
}
