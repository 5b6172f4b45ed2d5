// An answer as elements. The three verdicts differ in words and in form: one open card with a tick; several candidates
// with what tells them apart; a plain sheet with what one can do next.

import { answerCard, card } from "./card.js";
import { feedback } from "./feedback.js";
import { copy, el, permalink, visible } from "./parts.js";
import { say } from "./words.js";

const NEAR = 0.1; // confidence; what is less near is not shown beside an answer
export const MAX_LINK = 1500; // characters of a question in a link; chats and proxies cut longer ones

// `acts`: switchLanguage(hit, shown), showLine(number), unfilter(), chooseFile().
export function answerParts(answer, acts) {
  if (answer.draft) return [soFar(answer)];
  return { known: knownParts, likely: likelyParts, unknown: unknownParts }[answer.verdict](answer, acts);
}

// While somebody types nothing is claimed yet.
function soFar({ verdict, results, likely }) {
  const shown = verdict === "unknown" ? [] : results.filter((hit, n) => (verdict === "known" ? n === 0 : likely.includes(hit.issue)));
  const titles = shown.map((hit) => el("li", {}, el("a", { href: permalink(hit.issue), "data-moves": true, lang: hit.lang }, hit.title)));
  return el("div", { class: "so-far" }, el("p", {}, say(titles.length ? "so far" : "nothing yet")), titles.length ? el("ul", {}, ...titles) : null);
}

function knownParts({ results, areFindings, text, project }, acts) {
  const [first, ...others] = results.filter((hit, n) => n === 0 || areFindings || hit.confidence >= NEAR);
  const rest = others.map((hit) => card(hit, { ...acts, known: hit.verdict === "known", likely: hit.verdict === "likely" }));
  return [
    answerCard(first, acts),
    feedback(first.issue, text),
    areFindings && rest.length ? el("h2", { class: "near" }, say("also in log")) : null,
    ...(areFindings ? rest : []),
    !areFindings && rest.length ? fold(say("near", { n: rest.length }), rest) : null,
    shareLine(text, project),
  ].filter(Boolean);
}

function likelyParts({ results, likely, areFindings, text, project }, acts) {
  const some = results.filter((hit) => likely.includes(hit.issue));
  const cards = some.map((hit) => card(hit, { ...acts, likely: true, open: some.length === 1 }));
  const head = el("div", { class: "likely" }, el("h2", { tabindex: "-1" }, el("span", { class: "mark", "aria-hidden": "true" }, "?"), say("likely")), el("p", {}, say(areFindings ? "likely in log" : "likely why", { n: cards.length })));
  return [head, ...cards.flatMap((one, n) => [one, feedback(some[n].issue, text)]), shareLine(text, project)].filter(Boolean);
}

function unknownParts({ results, project, isLog, lines, text }, acts) {
  const cards = results.map((hit) => card(hit, acts));
  const why = isLog ? say("unknown log", { n: lines }) : project ? say("unknown in project", { project }) : say(cards.length ? "unknown why" : "unknown all");
  const steps = [
    project ? [say("next unfilter", { project }), " ", el("button", { type: "button", class: "quiet", on: { click: acts.unfilter } }, say("unfilter"))] : null,
    isLog ? null : [say("next paste")],
    [say(isLog ? "next rank" : "next log"), " ", el("button", { type: "button", class: "quiet", on: { click: acts.chooseFile } }, say("choose file"))],
    isLog ? [say("next words")] : null,
    [say("next scan"), " ", command("kb scan train.log")],
  ];
  const sheet = el("div", { class: "unknown" },
    el("h2", { tabindex: "-1" }, el("span", { class: "mark", "aria-hidden": "true" }, "–"), say("unknown")),
    el("p", {}, why),
    el("h3", {}, say("what next")),
    el("ul", {}, ...steps.filter(Boolean).map((parts) => el("li", {}, ...parts))));
  return [sheet, cards.length ? fold(say("nearest", { n: cards.length }), cards) : null, shareLine(text, project)].filter(Boolean);
}

function command(text) {
  const button = el("button", { type: "button", class: "quiet", "aria-label": say("copy what", { what: text }), on: { click: () => copy(text, button) } }, say("copy"));
  return el("span", {}, el("code", { translate: "no" }, text), " ", button);
}

function fold(summary, cards) {
  return el("details", { class: "others" }, el("summary", {}, summary), ...cards);
}

function shareLine(text, project) {
  if (!text || text.length > MAX_LINK) return null;
  const button = el("button", { type: "button", class: "quiet", on: { click: () => copy(new URL(linkOf(text, project), location.href).href, button, "copy link") } }, say("copy link"));
  return el("p", { class: "share" }, button);
}

// The address of a question.
export function linkOf(text, project = "") {
  return `#/?q=${encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, "\ufffd"))}${project ? `&project=${encodeURIComponent(project)}` : ""}`;
}

// What the status line says of a settled answer; its title is for those who do not see the view.
export function verdictWords(answer) {
  const [first] = answer.results;
  const values = { n: Math.floor((first?.confidence ?? 0) * 100), ms: answer.took_ms.toFixed(0) };
  const words = { known: "answered", likely: "answered likely", unknown: "unanswered" };
  const title = answer.verdict === "known" ? el("span", { class: "visually-hidden" }, ` ${visible(first.title)}`) : null;
  return [say(words[answer.verdict], values) + (answer.skipped ? ` ${say("shortened", { n: answer.skipped })}` : ""), title].filter(Boolean);
}
