// The page: views with an address each (#/...), and keys. The question: box.js; when it is asked: ask.js; how an answer
// looks: answer.js.

import { answerParts, verdictWords } from "./answer.js";
import { api, load, signIn, store } from "./api.js";
import { asking } from "./ask.js";
import { address, clear, fitBox, hasQuestion, listenToBox, nameLog, question, recall, remember, setQuestion, showLine, undo } from "./box.js";
import { browseView, projectLink } from "./browse.js";
import { content } from "./card.js";
import { issueView } from "./issue.js";
import { lettersAreOn, listen, switchLetters } from "./keys.js";
import { el, permalink, visible } from "./parts.js";
import { currentLanguage, say, setLanguage } from "./words.js";

const SLOW_MS = 700; // an answer to another question is gone after this, even if nothing has come yet

const $ = (id) => document.getElementById(id);
const box = $("box");
const view = $("view");
const state = { answer: null, projects: [], slow: 0 };
const { ask, typed, stop } = asking({ question, show, waits, fails: showError });

// --- the answer -----------------------------------------------------------------------------------------------------

function showError(error) {
  if (error.name === "AbortError") return;
  state.answer = null;
  busy(false);
  if (place().name === "search") view.replaceChildren();
  const words = error.words ?? { 401: "token title", 404: "not here", 413: "too long", 503: "busy" }[error.status] ?? (error.status ? null : "silent");
  $("status").textContent = words ? say(words, { n: error.status, project: $("project").value }) : visible(error.message);
}

function busy(now) {
  clearTimeout(state.slow);
  state.slow = 0;
  view.setAttribute("aria-busy", String(now));
}

// The answer in view is out of date: it is dimmed at once, and soon gone.
function waits() {
  if (place().name !== "search") return;
  $("status").replaceChildren();
  state.answer = null;
  if (state.slow) return;
  busy(true);
  state.slow = setTimeout(() => view.replaceChildren(el("p", { class: "searching" }, say("searching"))), SLOW_MS);
}

function show(answer) {
  state.answer = answer;
  busy(false);
  if (!answer?.draft) remember(answer);
  if (!answer?.draft && place().name === "search") history.replaceState(null, "", address());
  if (answer && place().name !== "search") location.hash = address();
  else showAnswer();
  if (!answer?.draft) showStatus(answer);
}

function showStatus(answer) {
  $("status").replaceChildren(...(answer && !answer.draft ? verdictWords(answer) : []));
}

// Replaces a shown result by its translation.
async function switchLanguage(hit, shown) {
  try {
    const other = hit.lang === "en" ? "zh" : "en";
    const record = { ...(await issue(hit.issue)).translations.find((one) => one.lang === other) };
    if (!record.issue) throw Object.assign(new Error(""), { status: 404 });
    shown.replaceChildren(...content(record, () => switchLanguage(record, shown)));
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
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").map(decoded);
  if (parts[0] === "issue" && parts.length >= 3) return { name: "issue", issue: `${parts.slice(1, -1).join("/")}#${parts.at(-1)}` };
  if (parts[0] === "browse") return { name: "browse", project: parts.slice(1).join("/") };
  if (parts[0]) return { name: "missing" };
  return { name: "search", asked: new URLSearchParams(query) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function go() {
  busy(false);
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
    else if (here.name === "missing") view.replaceChildren(...missing("no page"));
    else if (here.asked.get("q") && here.asked.get("q") !== question().text) {
      setQuestion({ text: here.asked.get("q"), project: here.asked.get("project") ?? "" });
      await ask();
    } else if (hasQuestion() && !state.answer) await ask();
    else showAnswer();
  } catch (error) {
    if (error.status !== 404) return view.replaceChildren(), showError(error);
    view.replaceChildren(...missing("not here", error.hint));
  }
}

function showAnswer() {
  if (place().name !== "search") return;
  document.title = say("title");
  const acts = { switchLanguage, showLine, unfilter, chooseFile: () => $("file").click() };
  view.replaceChildren(...(state.answer ? answerParts(state.answer, acts) : [welcome()]));
}

function unfilter() {
  $("project").value = "";
  ask();
}

function welcome() {
  const n = state.projects.reduce((sum, one) => sum + one.issues, 0);
  const some = state.projects.slice(0, 12).map((one) => projectLink(one));
  return el("div", { class: "welcome" },
    n ? el("p", {}, say("intro", { issues: say("size", { n }) })) : null,
    n ? el("p", { class: "projects" }, ...some, el("a", { href: "#/browse" }, say("all projects"))) : null);
}

async function showIssue(name) {
  const found = await issue(name);
  const show = (record, focus) => {
    const other = found.translations.find((one) => one.lang !== record.lang);
    document.title = `${visible(record.title)} · kb`;
    const back = el("a", { href: address(), class: "back" }, `← ${say(state.answer ? "back" : "back home")}`);
    view.replaceChildren(back, issueView(record, other ? () => show(other, true) : null));
    if (focus) $("other-language").focus();
    else view.querySelector("h1").focus({ preventScroll: true });
  };
  show(found.translations.find((one) => one.lang === currentLanguage()) ?? found.translations[0], false);
  scrollTo(0, 0);
}

async function showProjects(project) {
  const chosen = project ? `?lang=${currentLanguage()}&project=${encodeURIComponent(project)}` : `?lang=${currentLanguage()}`;
  const { issues } = await api(`api/issues${chosen}`);
  document.title = `${visible(project || say("browse"))} · kb`;
  view.replaceChildren(...(issues.length ? browseView(issues, project) : missing("no project here")));
  view.querySelector("h1").focus({ preventScroll: true });
}

// Where an address leads nowhere. `hint` names the ids that are near it.
function missing(what, hint = "") {
  document.title = say("title");
  const near = [...hint.matchAll(/[^\s,]{1,300}#\d{1,6}/g)].map(([one]) => el("li", {}, el("a", { href: permalink(one), "data-moves": true }, one)));
  return [el("h1", { tabindex: "-1" }, say(what)),
    what === "not here" ? el("p", {}, say("gone why")) : null,
    near.length ? el("h2", { class: "near" }, say("near ids")) : null,
    near.length ? el("ul", {}, ...near) : null,
    el("p", { class: "share" }, el("a", { href: "#/" }, say("search")), " · ", el("a", { href: "#/browse" }, say("browse")))].filter(Boolean);
}

// --- keys -----------------------------------------------------------------------------------------------------------

function move(step) {
  const stops = [...view.querySelectorAll("[data-moves]")].filter((one) => one.checkVisibility());
  const at = stops.findIndex((one) => one === document.activeElement || one.closest(".hit")?.contains(document.activeElement));
  if (at + step < 0) return box.focus();
  const next = stops[Math.min(at + step, stops.length - 1)];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

// Copies what to try first, of the issue one is in or of the first open one.
function copyCure() {
  if (getSelection().toString()) return false;
  const chosen = document.activeElement.closest?.(".hit") ?? view.querySelector(".hit.open");
  const button = chosen?.querySelector(".cure .copy");
  if (button && view.getAttribute("aria-busy") !== "true") button.click();
  else $("status").textContent = say("no command");
}

async function enter() {
  if (await ask()) view.querySelector(":is(.answer, .likely, .unknown) h2")?.focus({ preventScroll: true });
}

function showKeys() {
  $("letters").checked = lettersAreOn();
  $("keys").showModal();
}

const KEYS = {
  "/": () => box.focus(),
  "?": showKeys,
  j: () => move(1),
  k: () => move(-1),
  c: copyCure,
  Enter: (event, writes) => {
    if (writes !== box || event.shiftKey || (box.value.includes("\n") && !box.readOnly)) return false;
    enter();
  },
  "Ctrl-Enter": (event, writes) => (writes === box ? enter() : false),
  "Ctrl-z": (event, writes) => (writes === box ? undo() : false),
  Escape: (event, writes) => {
    if (writes === box) clear();
    else if (writes) return false;
    else if (place().name === "search") box.focus();
    else location.hash = address();
  },
};

// --- how it looks ---------------------------------------------------------------------------------------------------

function showLanguage(language) {
  setLanguage(language);
  document.documentElement.lang = currentLanguage() === "zh" ? "zh-Hans" : "en";
  for (const one of document.querySelectorAll("[data-text]")) one.textContent = say(one.dataset.text);
  for (const one of document.querySelectorAll("[data-label]")) one.setAttribute("aria-label", say(one.dataset.label));
  box.placeholder = say("example");
  nameLog();
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
  listenToBox({ ask, typed, stop, waits, show, fails: showError });
  $("to-keys").addEventListener("click", showKeys);
  $("letters").addEventListener("change", () => switchLetters($("letters").checked));
  $("skip").addEventListener("click", (event) => (event.preventDefault(), box.focus()));
  $("project").addEventListener("change", () => ask());
  $("language").addEventListener("click", () => {
    showLanguage(currentLanguage() === "zh" ? "en" : "zh");
    store("localStorage", "kb.language", currentLanguage());
    if (place().name === "search" && hasQuestion()) ask();
    else go();
  });
  $("theme").addEventListener("click", switchTheme);
  listen(KEYS);
  addEventListener("hashchange", go);
  fitBox();
  if (!place().asked?.get("q")) await recall();
  if (place().name !== "search") await loadProjects();
  await Promise.all([go(), place().name === "search" ? loadProjects() : null]);
}

async function loadProjects() {
  try {
    state.projects = await api("api/projects");
    for (const { project, issues } of state.projects) {
      const known = [...$("project").options].find((one) => one.value === project);
      const option = known ?? $("project").appendChild(el("option", { value: project }));
      option.textContent = visible(`${project} (${issues})`);
    }
    const { version, snapshot, bases } = await api("healthz");
    $("about").textContent = `kb ${version} · ${snapshot}`;
    document.body.dataset.bases = bases?.length > 1 ? "several" : "one";
    if (!hasQuestion()) showAnswer();
  } catch (error) {
    if (!state.answer) showError(error);
  }
}

start();
