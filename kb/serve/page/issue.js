// A whole issue: what to try first, then every field with an address of its own, and ways to hand it on.

import { cure, gist, languageOf, versions } from "./card.js";
import { copy, el, elements, sourceLink, tag } from "./parts.js";
import { say } from "./words.js";

// The address of the issue for people without this page open: the server renders it, also for previews in chats.
function pathOf(issue) {
  const at = issue.lastIndexOf("#");
  return `issue/${encodeURIComponent(issue.slice(0, at))}/${issue.slice(at + 1)}`;
}

function addressOf(issue) {
  return new URL(pathOf(issue), document.baseURI).href;
}

function section(name, record, nodes, { folded = false } = {}) {
  if (!nodes.length) return null;
  const here = el("a", { class: "anchor", href: `${pathOf(record.issue)}?lang=${record.lang}#${name.replace("_", "-")}`, "aria-label": say("link to", { name: say(name) }) }, "#");
  const heading = el("h2", {}, say(name), " ", here);
  const inner = el("div", { lang: languageOf(record) }, ...nodes);
  return folded ? el("details", { class: "more" }, el("summary", {}, say(name)), inner) : el("section", { class: name }, heading, inner);
}

// The issue as its article has it, to paste into a thread or a chat.
function markdownOf(record) {
  const parts = ["summary", "symptom", "cause", "fix", "triage"].filter((name) => record[name]).map((name) => `### ${say(name, {}, record.lang)}\n\n${record[name]}`);
  const sources = record.sources.length ? [record.sources.map((one) => `- ${one}`).join("\n")] : [];
  return [`## ${record.title}`, ...parts, ...sources, addressOf(record.issue)].join("\n\n") + "\n";
}

function button(label, text) {
  const made = el("button", { type: "button", class: "quiet", on: { click: () => copy(text(), made, label) } }, say(label));
  return made;
}

// `other`: shows the other language; null where there is only one.
export function issueView(record, other) {
  const { tree } = record;
  const symptom = tree.symptom.length || !record.errors.length ? tree.symptom : [{ tag: "pre", lang: "", children: [record.errors.join("\n")] }];
  const none = (name) => [el("p", { class: "none" }, say(`no ${name}`))];
  const list = (items) => (items.length ? [el("ul", {}, ...items.map((one) => el("li", {}, one)))] : []);
  const language = record.lang === "en" ? "zh" : "en";
  const toggle = other ? el("button", { type: "button", class: "quiet", id: "other-language", lang: language, on: { click: other } }, say("other language", {}, language)) : null;
  return el("article", { class: "hit open whole" },
    el("header", {}, tag(record.project), record.updated ? el("span", { class: "small-fact" }, say("updated", { day: record.updated })) : null,
      el("h1", { lang: languageOf(record), tabindex: "-1" }, record.title), versions(record)),
    gist(record),
    el("div", { class: "inside" }, cure(record, "h2")),
    el("div", { class: "body" }, ...[
      section("fix", record, tree.fix.length ? elements(tree.fix) : none("fix")),
      section("triage", record, elements(tree.triage)),
      section("symptom", record, elements(symptom)),
      section("cause", record, tree.cause.length ? elements(tree.cause) : none("cause")),
      section("only_when", record, elements(tree.only_when)),
      section("confusable", record, elements(tree.confusable)),
      section("sources", record, list(record.sources.map(sourceLink))),
      section("aliases", record, list(record.aliases ?? []), { folded: true }),
    ].filter(Boolean)),
    el("p", { class: "links" }, button("copy address", () => addressOf(record.issue)), button("copy markdown", () => markdownOf(record)), toggle, el("code", {}, record.issue)));
}
