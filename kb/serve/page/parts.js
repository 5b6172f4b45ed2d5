// Elements that show an issue. Every text is inserted as text; no markup is ever parsed.

import { say } from "./words.js";

const TAGS = new Set(
  "p em strong code pre a br ul ol li blockquote hr h4 h5 h6 table thead tbody tr th td span".split(" "),
);

// Characters that would change the text around them (escapes, the direction of writing), and those that nobody sees and
// an agent reads, are shown as marks, as in a terminal (kb.text.visible).
const CONTROL =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2065-\u206f\ud800-\udfff\ufff0-\ufffb\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/gu;
const STYLE = /[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;
const BLANK =
  /[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u2800\u3164\ufeff\uffa0\u{13430}-\u{13438}\u{16fe4}\u{1bca0}-\u{1bca3}\u{1d159}\u{1d173}-\u{1d17a}]/u;
const RUN = new RegExp(`(?:${STYLE.source}|${BLANK.source}){2,}`, "gu");

function shownRun(run) {
  const hidden = (one, before) => BLANK.test(before) || (STYLE.test(before) && STYLE.test(one));
  return [...run].map((one, at, all) => (at && hidden(one, all[at - 1]) ? "\ufffd" : one)).join("");
}

export function visible(text) {
  const mark = (one) => (one < " " ? String.fromCharCode(0x2400 + one.charCodeAt(0)) : "\ufffd");
  return text.replace(RUN, shownRun).replace(CONTROL, mark);
}

// A new element: attributes (`on` holds event listeners), then children, of which texts are made visible.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : name === "title" ? visible(value) : value);
  }
  made.append(...children.filter((child) => child !== null).map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

// Only http and https become links: a source comes from an article and may be any text.
function isWebAddress(target) {
  return /^https?:\/\//i.test(target);
}

export function externalLink(target, ...children) {
  if (!isWebAddress(target)) return el("span", {}, ...children);
  return el("a", { href: target, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}

// The elements for a tree of nodes, which the server makes from an article's markdown.
export function elements(nodes) {
  return nodes.map((node) => {
    if (typeof node === "string") return document.createTextNode(visible(node));
    if (!TAGS.has(node.tag)) return document.createTextNode("");
    const children = elements(node.children);
    if (node.tag === "pre") return fence(children, node.lang);
    if (node.tag === "table") return el("div", { class: "wide" }, el("table", {}, ...children));
    if (node.tag === "ol") return el("ol", { start: node.start ?? null }, ...children);
    if (node.tag !== "a") return el(node.tag, {}, ...children);
    return node.href.startsWith("#/issue/") ? el("a", { href: node.href }, ...children) : externalLink(node.href, ...children);
  });
}

// A block of code with the button that copies it as it was written.
function fence(children, language) {
  const code = el("code", { translate: "no" }, ...children);
  const text = code.textContent;
  const what = text.trim().split("\n")[0].slice(0, 60);
  const button = el("button", { type: "button", class: "copy", "aria-label": say("copy what", { what }), on: { click: () => copy(text, button) } }, say("copy"));
  return el("div", { class: "fence" }, button, el("pre", { "data-language": language || null }, code));
}

// `label` is the key of the button's own words.
export async function copy(text, button = null, label = "copy") {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Over plain http from another machine only the old way to copy works.
    const box = el("textarea", { class: "visually-hidden" });
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
  setTimeout(() => (button.textContent = say(label)), 1500);
}

export function permalink(issue) {
  const [slug, number] = issue.split("#");
  return `#/issue/${encodeURIComponent(slug)}/${number}`;
}

// How a source is shown: `owner/name#12` for a thread of GitHub, else its address without the scheme.
export function sourceLink(source) {
  const thread = source.match(/^https?:\/\/(?:www\.)?github\.com\/([\w.-]{1,100}\/[\w.-]{1,100})\/(?:issues|pull|discussions)\/(\d{1,9})(?:[#?]\S*)?$/i);
  return externalLink(source, thread ? `${thread[1]}#${thread[2]}` : source.replace(/^https?:\/\/(?:www\.)?/i, ""));
}

// The links below a record: to the whole issue, and to its translation (`switchLanguage`, null without one).
export function links(record, switchLanguage) {
  const other = record.lang === "en" ? "zh" : "en";
  const toggle = switchLanguage
    ? el("button", { type: "button", class: "quiet", lang: other, on: { click: switchLanguage } }, say("other language", {}, other))
    : null;
  return el(
    "p",
    { class: "links" },
    el("a", { href: permalink(record.issue) }, say("all of it")),
    toggle,
    el("code", {}, record.issue),
  );
}

export function tag(project) {
  return project ? el("a", { class: "tag", href: `#/browse/${encodeURIComponent(project)}` }, project) : null;
}
