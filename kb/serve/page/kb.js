// The page: it shows answers while the question is typed. Each view has an address (#/...).

import { api, load, signIn, store } from "./api.js";
import { body, card, copy, el, links, tag, visible } from "./parts.js";
import { currentLanguage, say, setLanguage } from "./words.js";

const MAX_CHARS = 500_000; // of a longer log only the two ends are sent; a search reads no more
const PAUSE_MS = 90;

const $ = (id) => document.getElementById(id);
const box = $("box");
const view = $("view");
const state = { answer: null, projects: [], request: null, timer: 0 };

// --- questions ------------------------------------------------------------------------------------------------------

function showError(error) {
  if (error.name === "AbortError") return;
  const words = { 401: "token title", 404: "not here", 503: "busy" }[error.status] ?? (error.status ? null : "silent");
  $("status").textContent = words ? say(words) : visible(error.message);
}

function askSoon(delay = PAUSE_MS) {
  clearTimeout(state.timer);
  state.timer = setTimeout(() => ask().catch(showError), delay);
}

async function ask() {
  state.request?.abort();
  const text = box.value;
  if (text.trim().length < 2) {
    state.answer = null;
    $("status").textContent = "";
    return showAnswer();
  }
  const { signal } = (state.request = new AbortController());
  const cut = text.length > MAX_CHARS;
  const query = cut ? `${text.slice(0, MAX_CHARS / 2)}\n${text.slice(-MAX_CHARS / 2)}` : text;
  const question = { query, k: 6, render: "tree" };
  if ($("project").value) question.project = $("project").value;
  if ($("result-language").value) question.lang = $("result-language").value;
  let answer;
  try {
    answer = await api("api/search", { signal, question });
  } catch (error) {
    if (error.name !== "AbortError") state.answer = null, showAnswer();
    throw error;
  }
  if (signal.aborted) return;
  state.answer = { ...answer, cut };
  if (place().name !== "search") location.hash = "#/";
  else showAnswer();
  showStatus(state.answer);
}

function showStatus(answer) {
  if (!answer) return $("status").replaceChildren();
  const [first] = answer.results;
  const values = { n: Math.floor((first?.confidence ?? 0) * 100), ms: answer.took_ms.toFixed(0) };
  const words = { known: "answered", likely: "answered likely", unknown: "unanswered" };
  const how = say(words[answer.verdict], values) + (answer.cut ? ` ${say("shortened")}` : "");
  const title = answer.answered ? el("span", { class: "visually-hidden" }, ` ${first.title}`) : null;
  $("status").replaceChildren(...[how, title].filter(Boolean));
}

// Replaces a shown result by its translation.
async function switchLanguage(hit, shown) {
  try {
    const other = hit.lang === "en" ? "zh" : "en";
    const record = { ...(await issue(hit.issue)).translations.find((one) => one.lang === other) };
    if (!record.issue) throw Object.assign(new Error(""), { status: 404 });
    shown.replaceChildren(body(record), links(record, () => switchLanguage(record, shown)));
    shown.querySelector(".links button").focus();
  } catch (error) {
    showError(error);
  }
}

function issue(name) {
  const at = name.lastIndexOf("#");
  return api(`api/issues/${encodeURIComponent(name.slice(0, at))}/${encodeURIComponent(name.slice(at + 1))}?render=tree`);
}

// --- views ----------------------------------------------------------------------------------------------------------

function place() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (parts[0] === "issue" && parts.length >= 3) return { name: "issue", issue: `${parts.slice(1, -1).join("/")}#${parts.at(-1)}` };
  if (parts[0] === "browse") return { name: "browse", project: parts.slice(1).join("/") };
  return { name: "search" };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function go() {
  const here = place();
  showStatus(here.name === "search" ? state.answer : null); // the status of another view is out of date
  document.body.dataset.place = here.name;
  for (const name of ["search", "browse"]) {
    if (here.name === name) $(`to-${name}`).setAttribute("aria-current", "page");
    else $(`to-${name}`).removeAttribute("aria-current");
  }
  try {
    if (here.name === "issue") await showIssue(here.issue);
    else if (here.name === "browse") await showProjects(here.project);
    else showAnswer();
  } catch (error) {
    view.replaceChildren();
    showError(error);
  }
}

function showAnswer() {
  if (place().name !== "search") return;
  document.title = say("title");
  const { answer } = state;
  if (!answer) return view.replaceChildren(welcome());
  view.replaceChildren(...{ known: knownParts, likely: likelyParts, unknown: unknownParts }[answer.verdict](answer));
}

function knownParts({ results }) {
  const [first, ...others] = results.filter((hit, i) => i === 0 || hit.confidence >= 0.1)
    .map((hit, i) => card(hit, i === 0, switchLanguage));
  return [first, ...(others.length ? [el("h2", { class: "near" }, say("near")), ...others] : [])];
}

function likelyParts({ results, likely }) {
  const cards = results.filter((hit) => likely.includes(hit.issue)).map((hit) => card(hit, false, switchLanguage));
  return [notice("likely", say("likely why", { n: cards.length })), ...cards];
}

function unknownParts({ results }) {
  const cards = results.map((hit) => card(hit, false, switchLanguage));
  if (!cards.length) return [notice("unknown", say("unknown all"), say("what next"))];
  return [notice("unknown", say("unknown why"), say("what next"), say("nearest")), ...cards];
}

function notice(verdict, ...texts) {
  return el("div", { class: verdict }, el("h2", {}, say(verdict)), ...texts.map((text) => el("p", {}, text)));
}

function welcome() {
  const n = state.projects.reduce((sum, one) => sum + one.issues, 0);
  const some = state.projects.slice(0, 12).map((one) => projectLink(one));
  return el("div", { class: "welcome" },
    n ? el("p", {}, say("intro", { issues: say("size", { n }) })) : null,
    n ? el("p", { class: "projects" }, ...some, el("a", { href: "#/browse" }, say("all projects"))) : null);
}

function projectLink(one, current = "") {
  const chosen = one.project === current ? "true" : null;
  return el("a", { href: `#/browse/${encodeURIComponent(one.project)}`, class: "tag", "aria-current": chosen }, one.project, el("small", {}, String(one.issues)));
}

async function showIssue(name) {
  const found = await issue(name);
  const show = (record, focus) => {
    const other = found.translations.find((one) => one.lang !== record.lang);
    document.title = `${visible(record.title)} · kb`;
    const back = el("a", { href: "#/", class: "back" }, `← ${say(state.answer ? "back" : "back home")}`);
    const lang = record.lang === "zh" ? "zh-Hans" : "en";
    view.replaceChildren(back, el("article", { class: "hit open whole" },
      el("header", {}, tag(record.project), el("h1", { lang, tabindex: "-1" }, record.title)),
      body(record, { whole: true }), links(record, other ? () => show(other, true) : null, true)));
    if (focus) view.querySelector(".links button").focus();
    else view.querySelector("h1").focus({ preventScroll: true });
  };
  show(found.translations.find((one) => one.lang === currentLanguage()) ?? found.translations[0], false);
  scrollTo(0, 0);
}

async function showProjects(project) {
  const chosen = project ? `?lang=${currentLanguage()}&project=${encodeURIComponent(project)}` : `?lang=${currentLanguage()}`;
  const { issues } = await api(`api/issues${chosen}`);
  document.title = `${visible(project || say("browse"))} · kb`;
  const items = issues.map((one) => {
    const [slug, number] = one.issue.split("#");
    const link = el("a", { href: `#/issue/${encodeURIComponent(slug)}/${number}`, "data-moves": true, lang: one.lang }, one.title);
    return el("li", {}, link, project || !one.project ? null : el("small", {}, one.project));
  });
  view.replaceChildren(
    el("p", { class: "projects" }, ...state.projects.map((one) => projectLink(one, project))),
    el("h1", { tabindex: "-1" }, project || say("all projects"), el("small", {}, say("size", { n: issues.length }))),
    el("ul", { class: "titles" }, ...items));
  view.querySelector("h1").focus({ preventScroll: true });
}

// --- keys -----------------------------------------------------------------------------------------------------------

function move(step) {
  const stops = [...view.querySelectorAll("[data-moves]")];
  const at = stops.findIndex((one) => one === document.activeElement || one.closest(".hit")?.contains(document.activeElement));
  if (at + step < 0) return box.focus();
  const next = stops[Math.min(at + step, stops.length - 1)];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

// Asks at once and moves to the first result.
function askNow() {
  clearTimeout(state.timer);
  ask().then(() => move(1)).catch(showError);
}

function copyFirst() {
  const chosen = document.activeElement.closest?.(".hit") ?? view.querySelector(".hit.open");
  const code = chosen?.querySelector(".fix .fence code");
  if (code) copy(code.textContent, code.closest(".fence").querySelector(".copy"));
  else $("status").textContent = say("no command");
}

function onKey(event) {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || $("login").open) return;
  const inBox = event.target === box;
  if (inBox) {
    const lastLine = !box.value.slice(box.selectionEnd).includes("\n");
    if (event.key === "Escape") box.value = "", fitBox(), askSoon(0);
    else if (event.key === "ArrowDown" && lastLine && box.selectionEnd === box.value.length) move(1);
    else if (event.key === "Enter" && !event.shiftKey && !box.value.includes("\n")) askNow();
    else return;
  } else if (event.target.closest?.("select, input")) return;
  else if (event.key === "/") box.focus();
  else if (event.key === "Escape") location.hash === "#/" || !location.hash ? box.focus() : (location.hash = "#/");
  else if (event.key === "j" || event.key === "ArrowDown") move(1);
  else if (event.key === "k" || event.key === "ArrowUp") move(-1);
  else if (event.key === "c" && !getSelection().toString()) copyFirst();
  else return;
  event.preventDefault();
}

// --- how it looks ---------------------------------------------------------------------------------------------------

function fitBox() {
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight + 2, innerHeight * 0.4)}px`;
}

function showLanguage(language) {
  setLanguage(language);
  document.documentElement.lang = currentLanguage() === "zh" ? "zh-Hans" : "en";
  for (const one of document.querySelectorAll("[data-text]")) one.textContent = say(one.dataset.text);
  for (const one of document.querySelectorAll("[data-label]")) one.setAttribute("aria-label", say(one.dataset.label));
  box.placeholder = say("example");
  $("language").textContent = currentLanguage() === "zh" ? "English" : "中文";
  $("language").lang = currentLanguage() === "zh" ? "en" : "zh";
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

function switchTheme() {
  const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const theme = dark === "dark" ? "light" : "dark";
  setTheme(theme);
  store("localStorage", "kb.theme", theme);
}

async function start() {
  const given = location.hash.match(/^#token=(.+)$/);
  if (given) {
    history.replaceState(null, "", "#/"); // the token must not stay in the address or the history
    await signIn(decoded(given[1])).catch(showError);
  }
  setTheme(load("localStorage", "kb.theme"));
  showLanguage(load("localStorage", "kb.language") || (navigator.language.startsWith("zh") ? "zh" : "en"));
  box.addEventListener("input", (event) => {
    fitBox();
    if (!event.isComposing) askSoon(event.inputType === "insertFromPaste" ? 0 : PAUSE_MS);
  });
  box.addEventListener("compositionend", () => askSoon());
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  $("skip").addEventListener("click", (event) => (event.preventDefault(), box.focus()));
  for (const id of ["project", "result-language"]) $(id).addEventListener("change", () => askSoon(0));
  $("language").addEventListener("click", () => {
    showLanguage(currentLanguage() === "zh" ? "en" : "zh");
    store("localStorage", "kb.language", currentLanguage());
    go();
  });
  $("theme").addEventListener("click", switchTheme);
  addEventListener("keydown", onKey);
  addEventListener("hashchange", go);
  fitBox();
  let failed = null;
  try {
    state.projects = await api("api/projects");
    for (const one of state.projects) $("project").append(el("option", { value: one.project }, `${one.project} (${one.issues})`));
    const { version, snapshot } = await api("healthz");
    $("about").textContent = `kb ${version} · ${snapshot}`;
  } catch (error) {
    failed = error;
  }
  await go();
  if (failed) showError(failed);
}

start();
