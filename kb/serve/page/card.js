// One issue in an answer: what it is and what to try stand first, symptom and details are folded below.

import { copy, el, elements, links, permalink, sourceLink, tag } from "./parts.js";
import { say } from "./words.js";

const MOST_CHIPS = 4;
const MOST_SOURCES = 3;

export function languageOf(hit) {
  return hit.lang === "zh" ? "zh-Hans" : "en";
}

// The share in percent. Only what is known is called sure: the server decides that, not a threshold of the page.
function confidence(hit, known) {
  const n = Math.floor(hit.confidence * 100);
  const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("i"));
  bar.firstChild.style.width = `${n}%`;
  return el("span", { class: known ? "sure" : "sure unsure" }, bar, say(known ? "certain" : "possible", { n }));
}

// What matched: the line of the question with its number, else the texts. A single word beside a line, and one of two
// letters or digits, say nothing.
function matches(hit, showLine) {
  const words = hit.matched.filter((one) => /\p{L}{3}|\p{Script=Han}/u.test(one));
  const lines = words.filter((one) => /\S\s+\S/.test(one));
  const texts = (lines.length ? lines : words).slice(0, MOST_CHIPS);
  if (!hit.line) {
    if (!texts.length) return null;
    return el("p", { class: "chips" }, el("span", {}, say("matched")), ...texts.map((text) => el("code", { title: text }, text)));
  }
  const times = hit.line.more ? ` ${say("more lines", { n: hit.line.more })}` : "";
  const place = say("line", { n: hit.line.number.toLocaleString() }) + times;
  const show = showLine ? el("button", { type: "button", class: "quiet", on: { click: () => showLine(hit.line.number) } }, say("show line")) : null;
  return el("p", { class: "chips" }, el("span", {}, place), el("code", { title: hit.line.text }, hit.line.text), show);
}

// A line in which `backticks` mark code.
function coded(text) {
  return text.split(/`([^`]+)`/).map((part, n) => (n % 2 ? el("code", {}, part) : part));
}

export function versions(hit) {
  return hit.versions.length ? el("p", { class: "versions" }, el("span", { class: "visually-hidden" }, say("versions")), ...hit.versions.map((one) => el("span", {}, one))) : null;
}

// In short: the summary, else how the cause begins.
export function gist(hit) {
  const nodes = hit.tree.summary.length ? hit.tree.summary : hit.tree.cause.slice(0, 1);
  const leads = hit.leads_to?.length
    ? el("p", { class: "leads" }, say("leads to"), " ", ...hit.leads_to.flatMap((one, n) => [n ? ", " : "", el("a", { href: permalink(one) }, one)]))
    : null;
  return el("div", { class: "gist", lang: languageOf(hit) }, ...elements(nodes), leads);
}

// What to try first, with the one button that copies it.
export function cure(hit, heading = "h3") {
  const { says, code, warnings } = hit.cure;
  if (!says && !code) return el("p", { class: "none" }, say("no fix"));
  const button = el("button", { type: "button", class: "copy", "aria-label": say("copy cure"), on: { click: () => copy(code, button) } }, say("copy"));
  return el("section", { class: "cure", lang: languageOf(hit) },
    el(heading, {}, say("try first")),
    says ? el("p", {}, ...coded(says)) : null,
    ...warnings.map((one) => el("p", { class: "warning" }, ...coded(one))),
    code ? el("div", { class: "fence" }, button, el("pre", {}, el("code", { translate: "no" }, code))) : null);
}

function folded(name, hit, parts, open = false) {
  return el("details", { class: `more ${name}`, open }, el("summary", {}, say(name)), el("div", { lang: languageOf(hit) }, ...parts));
}

function details(hit) {
  const errors = hit.tree.symptom.length || !hit.errors.length ? hit.tree.symptom : [{ tag: "pre", lang: "", children: [hit.errors.join("\n")] }];
  const part = (name, nodes) => (nodes.length ? [el("h3", {}, say(name)), ...elements(nodes)] : []);
  const cause = hit.tree.cause.length ? part("cause", hit.tree.cause) : [el("p", { class: "none" }, say("no cause"))];
  return [
    hit.tree.triage.length ? folded("triage", hit, elements(hit.tree.triage), true) : null,
    hit.tree.fix.length ? folded("all steps", hit, elements(hit.tree.fix), !hit.cure.code) : null,
    folded("details", hit, [...part("symptom", errors), ...cause]),
  ];
}

// Everything below the heading of an issue; `switchLanguage` is null where there is no translation.
export function content(hit, switchLanguage) {
  return [gist(hit), inside(hit, switchLanguage)];
}

// Where it is from: the sources, the day, and the base where there are several (of a folder, its name).
function facts(hit) {
  const rest = hit.sources.length - MOST_SOURCES;
  const sources = hit.sources.slice(0, MOST_SOURCES).map((one) => el("span", {}, sourceLink(one)));
  const parts = [
    sources.length ? el("span", {}, `${say("sources")}:`) : null,
    ...sources,
    rest > 0 ? el("a", { href: permalink(hit.issue) }, say("more sources", { n: rest })) : null,
    hit.updated ? el("span", {}, say("updated", { day: hit.updated })) : null,
    hit.base ? el("span", { class: "base" }, `${say("base")}: ${hit.base.split(/[\\/]/).at(-1)}`) : null,
  ].filter(Boolean);
  return parts.length ? el("p", { class: "small" }, ...parts) : null;
}

function inside(hit, switchLanguage) {
  return el("div", { class: "inside" }, cure(hit), facts(hit), ...details(hit), links(hit, switchLanguage));
}

// The answer: always open.
export function answerCard(hit, { switchLanguage, showLine }) {
  const shown = el("div", {}, ...content(hit, switchLanguage && (() => switchLanguage(hit, shown))));
  return el("article", { class: "hit open answer", "data-issue": hit.issue },
    el("header", {},
      el("span", { class: "mark", "aria-hidden": "true" }, "✓"), el("strong", { class: "verdict" }, say("known")), tag(hit.project), confidence(hit, true),
      el("h2", { tabindex: "-1", "data-moves": true, lang: languageOf(hit) }, hit.title), versions(hit), matches(hit, showLine)),
    shown);
}

// An issue that may be meant, or is only near: its heading opens and closes it.
export function card(hit, { open = false, known = false, likely = false, switchLanguage, showLine }) {
  const id = `hit-${hit.rank}`;
  const button = el("button", { type: "button", class: "opens", "aria-controls": id, "data-moves": true, lang: languageOf(hit) }, hit.title);
  const shown = el("div", { id });
  const tells = hit.tells_apart && !(likely && hit.summary.startsWith(hit.tells_apart.replace(/\s*…$/, ""))); // the summary stands below anyway
  const apart = tells ? el("p", { class: "apart", lang: languageOf(hit) }, el("strong", {}, say("apart")), " ", ...coded(hit.tells_apart)) : null;
  const made = el("article", { class: likely ? "hit candidate" : "hit", "data-issue": hit.issue },
    el("header", {}, tag(hit.project), confidence(hit, known), el("h2", {}, button), apart, matches(hit, showLine)),
    likely ? gist(hit) : null, shown);
  const set = (now) => {
    button.setAttribute("aria-expanded", String(now));
    shown.hidden = !now;
    made.classList.toggle("open", now);
    if (now && !shown.firstChild) shown.append(...content(hit, switchLanguage && (() => switchLanguage(hit, shown))).slice(likely ? 1 : 0));
  };
  button.addEventListener("click", () => set(shown.hidden));
  set(open);
  return made;
}
