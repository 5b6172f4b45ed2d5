// The box with the question: a text, or a log of which it shows a part. It remembers the question over a reload, and one
// that was cleared.

import { MAX_LINK, linkOf } from "./answer.js";
import { load, store } from "./api.js";
import { isLog, logOf, partOf, readLog } from "./log.js";
import { el, visible } from "./parts.js";
import { currentLanguage, say } from "./words.js";

const MAX_KEPT = 500_000; // characters of a log that a reload still knows

const $ = (id) => document.getElementById(id);
const box = $("box");
let held = null; // the log, when there is one
let shown = null; // the part of it in the box
let previous = null; // the question that was cleared, or that a log has replaced
let reading = 0; // counts questions: a log that was read too late is dropped
let acts = null;

export function question() {
  return { text: held ? "" : box.value, log: held, lang: currentLanguage(), project: $("project").value };
}

export function setQuestion({ text = "", log = null, project = $("project").value }) {
  reading += 1;
  held = log;
  chooseProject(project);
  box.readOnly = Boolean(log);
  box.wrap = log ? "off" : "soft";
  if (log) showPart(partOf(log));
  else box.value = text;
  fitBox();
}

export function hasQuestion() {
  return Boolean(held || box.value.trim());
}

// The list of projects may still be on its way, and a link may name a tag.
function chooseProject(project) {
  if (![...$("project").options].some((one) => one.value === project)) $("project").append(el("option", { value: project }, project));
  $("project").value = project;
}

// The box shows a part of a log; line `number` in it is selected.
function showPart(part, number = 0) {
  box.value = part.text;
  shown = part;
  nameLog();
  if (number) select(part.from, part.to);
  else box.scrollTop = box.scrollHeight;
}

// What the log is called and which lines of it are shown, in the language of the page.
export function nameLog() {
  if (!held) return;
  const n = (held.skipped + held.starts.length).toLocaleString();
  $("log-what").textContent = [visible(held.name) || say("pasted"), say("lines", { n }), say("part", shown)].join(" · ");
}

function select(from, to) {
  box.blur(); // focus scrolls to what is selected
  box.setSelectionRange(from, to);
  box.focus();
  const before = box.value.slice(0, from).split("\n").length - 1;
  if (held) box.scrollTop = Math.max(0, before - 3) * parseFloat(getComputedStyle(box).lineHeight);
  box.scrollLeft = 0;
}

export function showLine(number) {
  if (held) return showPart(partOf(held, number), number);
  const lines = box.value.split("\n");
  const from = lines.slice(0, number - 1).join("\n").length + (number > 1 ? 1 : 0);
  select(from, from + lines[number - 1].length);
}

// Asks about the log that `reads` resolves to; what stood in the box can be brought back.
async function take(reads, before = question()) {
  const mine = ++reading;
  acts.stop();
  acts.waits();
  try {
    const log = await reads;
    if (mine !== reading) return;
    keep(before);
    setQuestion({ log });
    acts.ask();
  } catch (error) {
    if (mine === reading) acts.fails(Object.assign(error, { words: error.message === "binary" ? "binary" : "unreadable" }));
  }
}

function takeFile(file) {
  if (file) take(readLog(file));
  $("file").value = ""; // the same file can be chosen again
}

function paste(event) {
  const [file] = event.clipboardData.files;
  const text = event.clipboardData.getData("text/plain");
  const whole = held ? text : box.value.slice(0, box.selectionStart) + text + box.value.slice(box.selectionEnd);
  if (!text && file) takeFile(file);
  else if (isLog(whole)) take(logOf(whole));
  else if (held && text) keep(question()), setQuestion({ text }), acts.ask();
  else return;
  event.preventDefault();
}

export function clear() {
  if (!box.value && !held) return;
  keep(question());
  acts.stop();
  setQuestion({});
  acts.show(null);
  box.focus();
}

function keep(one) {
  previous = one.log || one.text?.trim() ? one : null;
  $("undo").hidden = !previous;
}

// Brings the previous question back; the present one becomes the previous. Whether it did: in a box that can be written
// in, the browser undoes what was written there.
export function undo() {
  if (!previous || (!held && box.value)) return false;
  bringBack();
  return true;
}

function bringBack() {
  const again = previous;
  keep(question());
  setQuestion(again);
  box.focus();
  acts.ask();
}

// The address of what is asked now; a long question has none.
export function address() {
  const { text, project } = question();
  return text.trim() && text.length <= MAX_LINK ? linkOf(text, project) : "#/";
}

// So that a reload finds the question again.
export function remember(answer) {
  const { text, log, project } = question();
  const kept = log ? (log.text.length <= MAX_KEPT ? { name: log.name, log: log.text, project } : { text: answer?.text ?? "", project }) : { text, project };
  store("sessionStorage", "kb.question", JSON.stringify(kept));
}

export async function recall() {
  try {
    const { text, name, log, project } = JSON.parse(load("sessionStorage", "kb.question"));
    setQuestion({ text: text ?? "", log: log ? await logOf(log, name) : null, project });
  } catch {
    return;
  }
}

export function fitBox() {
  $("log").hidden = !held;
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight + 2, innerHeight * (held ? 0.25 : 0.4))}px`;
}

// `given`: ask(), typed(), stop(), waits(), show(answer) and fails(error), as in ask.js and kb.js.
export function listenToBox(given) {
  acts = given;
  const changed = (event) => {
    reading += 1;
    if (isLog(box.value)) return take(logOf(box.value), previous ?? {});
    fitBox();
    if (event.inputType === "insertFromPaste") acts.ask();
    else acts.typed();
  };
  box.addEventListener("input", (event) => event.isComposing || changed(event));
  box.addEventListener("compositionend", changed);
  box.addEventListener("paste", paste);
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  $("undo").addEventListener("click", bringBack);
  $("remove").addEventListener("click", clear);
  $("choose").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => takeFile($("file").files[0]));
  const hasFile = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => hasFile(event) && (event.preventDefault(), (document.body.dataset.drop = "")));
  addEventListener("dragleave", (event) => event.relatedTarget ?? delete document.body.dataset.drop);
  addEventListener("drop", (event) => {
    delete document.body.dataset.drop;
    if (hasFile(event)) event.preventDefault(), takeFile(event.dataTransfer.files[0]);
  });
}
