// Here is whoever came to ask; show answers while the question is typed, and find every place by its address (#/...).

import { api, keepToken, recall, remember } from "./api.js";
import { body, card, copy, el, links, tag, visible } from "./parts.js";
import { say, speak, spoken } from "./words.js";

const MOST_CHARS = 500_000; // of a log: its ends; a search reads no more of it
const PAUSE_MS = 90;

const $ = (id) => document.getElementById(id);
const box = $("box");
const view = $("view");
const state = { answer: null, projects: [], asking: null, timer: 0 };

// --- asking ---------------------------------------------------------------------------------------------------------

function complain(error) {
  if (error.name === "AbortError") return;
  const words = { 401: "token title", 404: "not here", 503: "busy" }[error.status] ?? (error.status ? null : "silent");
  $("status").textContent = words ? say(words) : visible(error.message);
}

function soon(delay = PAUSE_MS) {
  clearTimeout(state.timer);
  state.timer = setTimeout(() => ask().catch(complain), delay);
}

async function ask() {
  state.asking?.abort();
  const text = box.value;
  if (text.trim().length < 2) {
    state.answer = null;
    $("status").textContent = "";
    return showAnswer();
  }
  const { signal } = (state.asking = new AbortController());
  const cut = text.length > MOST_CHARS;
  const query = cut ? `${text.slice(0, MOST_CHARS / 2)}\n${text.slice(-MOST_CHARS / 2)}` : text;
  const question = { query, k: 6, render: "tree" };
  if ($("project").value) question.project = $("project").value;
  if ($("told").value) question.lang = $("told").value;
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
  tell(state.answer);
}

function tell(answer) {
  if (!answer) return $("status").replaceChildren();
  const [first] = answer.results;
  const values = { n: Math.floor((first?.confidence ?? 0) * 100), ms: answer.took_ms.toFixed(0) };
  const how = say(answer.answered ? "answered" : "unanswered", values) + (answer.cut ? ` ${say("shortened")}` : "");
  const title = answer.answered ? el("span", { class: "hush" }, ` ${first.title}`) : null;
  $("status").replaceChildren(...[how, title].filter(Boolean));
}

async function turn(hit, shown) {
  try {
    const other = hit.lang === "en" ? "zh" : "en";
    const told = { ...(await issue(hit.issue)).tellings.find((one) => one.lang === other) };
    if (!told.issue) throw Object.assign(new Error(""), { status: 404 });
    shown.replaceChildren(body(told), links(told, () => turn(told, shown)));
    shown.querySelector(".links button").focus();
  } catch (error) {
    complain(error);
  }
}

function issue(name) {
  const at = name.lastIndexOf("#");
  return api(`api/issues/${encodeURIComponent(name.slice(0, at))}/${encodeURIComponent(name.slice(at + 1))}?render=tree`);
}

// --- places ---------------------------------------------------------------------------------------------------------

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
  tell(here.name === "search" ? state.answer : null); // what it told before was of another place
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
    complain(error);
  }
}

function showAnswer() {
  if (place().name !== "search") return;
  document.title = say("title");
  const { answer } = state;
  if (!answer) return view.replaceChildren(welcome());
  const known = answer.answered;
  const cards = answer.results.filter((hit, i) => !known || i === 0 || hit.confidence >= 0.1)
    .map((hit, i) => card(hit, known && i === 0, turn));
  const parts = known
    ? [cards[0], ...(cards.length > 1 ? [el("h2", { class: "near" }, say("near")), ...cards.slice(1)] : [])]
    : [el("div", { class: "unknown" }, el("h2", {}, say("unknown")), el("p", {}, say(cards.length ? "unknown why" : "unknown all"))), ...cards];
  view.replaceChildren(...parts);
}

function welcome() {
  const n = state.projects.reduce((sum, one) => sum + one.issues, 0);
  const some = state.projects.slice(0, 12).map((one) => projectLink(one));
  return el("div", { class: "welcome" },
    n ? el("p", {}, say("intro", { issues: say("size", { n }) })) : null,
    n ? el("p", { class: "shelf" }, ...some, el("a", { href: "#/browse" }, say("all projects"))) : null);
}

function projectLink(one, current = "") {
  const chosen = one.project === current ? "true" : null;
  return el("a", { href: `#/browse/${encodeURIComponent(one.project)}`, class: "tag", "aria-current": chosen }, one.project, el("small", {}, String(one.issues)));
}

async function showIssue(name) {
  const found = await issue(name);
  const show = (told, focus) => {
    const other = found.tellings.find((one) => one.lang !== told.lang);
    document.title = `${visible(told.title)} · kb`;
    const back = el("a", { href: "#/", class: "back" }, `← ${say(state.answer ? "back" : "back home")}`);
    const lang = told.lang === "zh" ? "zh-Hans" : "en";
    view.replaceChildren(back, el("article", { class: "hit open whole" },
      el("header", {}, tag(told.project), el("h1", { lang, tabindex: "-1" }, told.title)),
      body(told, { whole: true }), links(told, other ? () => show(other, true) : null, true)));
    if (focus) view.querySelector(".links button").focus();
    else view.querySelector("h1").focus({ preventScroll: true });
  };
  show(found.tellings.find((one) => one.lang === spoken()) ?? found.tellings[0], false);
  scrollTo(0, 0);
}

async function showProjects(project) {
  const chosen = project ? `?lang=${spoken()}&project=${encodeURIComponent(project)}` : `?lang=${spoken()}`;
  const { issues } = await api(`api/issues${chosen}`);
  document.title = `${visible(project || say("browse"))} · kb`;
  const items = issues.map((one) => {
    const [slug, number] = one.issue.split("#");
    const link = el("a", { href: `#/issue/${encodeURIComponent(slug)}/${number}`, "data-moves": true, lang: one.lang }, one.title);
    return el("li", {}, link, project || !one.project ? null : el("small", {}, one.project));
  });
  view.replaceChildren(
    el("p", { class: "shelf" }, ...state.projects.map((one) => projectLink(one, project))),
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

// The answer to what stands in the box, and the first of it under the cursor.
function now() {
  clearTimeout(state.timer);
  ask().then(() => move(1)).catch(complain);
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
    if (event.key === "Escape") box.value = "", fit(), soon(0);
    else if (event.key === "ArrowDown" && lastLine && box.selectionEnd === box.value.length) move(1);
    else if (event.key === "Enter" && !event.shiftKey && !box.value.includes("\n")) now();
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

function fit() {
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight + 2, innerHeight * 0.4)}px`;
}

function choose(language) {
  speak(language);
  document.documentElement.lang = spoken() === "zh" ? "zh-Hans" : "en";
  for (const one of document.querySelectorAll("[data-text]")) one.textContent = say(one.dataset.text);
  for (const one of document.querySelectorAll("[data-label]")) one.setAttribute("aria-label", say(one.dataset.label));
  box.placeholder = say("example");
  $("language").textContent = spoken() === "zh" ? "English" : "中文";
  $("language").lang = spoken() === "zh" ? "en" : "zh";
}

function colour(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

function flip() {
  const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const theme = dark === "dark" ? "light" : "dark";
  colour(theme);
  remember("localStorage", "kb.theme", theme);
}

async function start() {
  const given = location.hash.match(/^#token=(.+)$/);
  if (given) {
    keepToken(decoded(given[1]));
    history.replaceState(null, "", "#/"); // neither shown nor kept in the history
  } else keepToken(recall("sessionStorage", "kb.token"));
  colour(recall("localStorage", "kb.theme"));
  choose(recall("localStorage", "kb.language") || (navigator.language.startsWith("zh") ? "zh" : "en"));
  box.addEventListener("input", (event) => {
    fit();
    if (!event.isComposing) soon(event.inputType === "insertFromPaste" ? 0 : PAUSE_MS);
  });
  box.addEventListener("compositionend", () => soon());
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  $("skip").addEventListener("click", (event) => (event.preventDefault(), box.focus()));
  for (const id of ["project", "told"]) $(id).addEventListener("change", () => soon(0));
  $("language").addEventListener("click", () => {
    choose(spoken() === "zh" ? "en" : "zh");
    remember("localStorage", "kb.language", spoken());
    go();
  });
  $("theme").addEventListener("click", flip);
  addEventListener("keydown", onKey);
  addEventListener("hashchange", go);
  fit();
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
  if (failed) complain(failed);
}

start();
