// What is asked: when a question is sent, and what comes back. It knows nothing of the page but what `asking` is given.

import { api } from "./api.js";
import { lineOf, matchedLine, packed } from "./log.js";

const DRAFT_MS = 300; // a pause while typing, after which the nearest titles are shown
const SHORT_MS = 650; // the same for a text so short that it can hardly mean anything yet
const SHORT = 10; // characters
const SETTLE_MS = 1000; // a pause after which the question counts as asked
const DESCRIBED_LINES = 300; // so short a text may be a description with a traceback in it, which only a search reads
const K = 6;
const MOST_FINDINGS = 8;

// `question()` gives { text, log, lang, project }; `show(answer)` gets an answer, or null when there is no question;
// `waits()` is called when the shown answer is out of date; `fails(error)` gets what went wrong.
export function asking({ question, show, waits, fails }) {
  let timers = [];
  let request = null;
  let shown = ""; // to which question the answer in view belongs

  function stop() {
    timers.forEach(clearTimeout);
    timers = [];
    request?.abort();
    request = null;
  }

  // The question changes.
  function typed() {
    stop();
    const { text, log } = question();
    if (log) return ask();
    shown = "";
    if (isNothing(text)) return show(null);
    waits();
    timers = [
      setTimeout(() => ask({ draft: true }), text.trim().length < SHORT ? SHORT_MS : DRAFT_MS),
      setTimeout(ask, SETTLE_MS),
    ];
  }

  // Asks at once. Resolves to whether there is an answer.
  async function ask({ draft = false } = {}) {
    request?.abort();
    if (!draft) stop();
    const asked = question();
    if (!asked.log && isNothing(asked.text)) return show(null), false;
    const name = asked.log ? "" : JSON.stringify(asked);
    if (!name || name !== shown) waits();
    const { signal } = (request = new AbortController());
    try {
      const answer = await (asked.log ? scanned(asked, signal) : searched(asked, draft, signal));
      if (signal.aborted) return false;
      shown = name;
      show(answer);
      return true;
    } catch (error) {
      if (signal.aborted || error.name === "AbortError") return false;
      shown = "";
      const words = { 400: asked.project && "no such project", 404: "no answer" }[error.status]; // 404: not our server
      fails(words ? Object.assign(error, { words }) : error);
      return false;
    }
  }

  return { ask, typed, stop };
}

function isNothing(text) {
  return text.trim().length < 2;
}

async function searched({ text, lang, project }, draft, signal) {
  const sent = { query: text, k: K, render: "tree", lang, ...(project && { project }), ...(draft && { draft }) };
  const answer = await api("api/search", { signal, question: sent });
  const lines = text.split("\n");
  for (const hit of answer.results) {
    const number = matchedLine(text, hit.matched);
    if (number) hit.line = { number, text: lines[number - 1].trim() };
  }
  return { ...answer, draft, text, project };
}

// A log is sent once. After that another language needs only its issues, and another project only its telling lines.
async function scanned({ log, lang, project }, signal) {
  if (!log.report) {
    const { skipped, ...sent } = await packed(log);
    const report = await api("api/scan", { signal, log: sent });
    const shift = log.skipped + skipped;
    log.report = { ...report, skipped: shift, findings: report.findings.map((one) => ({ ...one, first_line: one.first_line + shift })) };
  }
  let { findings } = log.report;
  if (project && findings.length) findings = await narrowed(findings, project, signal);
  const common = { isLog: true, lines: log.skipped + log.starts.length, skipped: log.report.skipped, took_ms: log.report.took_ms, project, draft: false };
  if (!findings.length && log.starts.length < DESCRIBED_LINES) {
    const answer = await searched({ text: log.text, lang, project }, false, signal);
    return { ...answer, ...common, took_ms: answer.took_ms, text: "" };
  }
  if (!findings.length) {
    const nearest = await api("api/search", { signal, question: { query: tellingText(log), k: K, render: "tree", lang, draft: true, ...(project && { project }) } });
    return { ...common, verdict: "unknown", likely: [], results: nearest.results, text: "" };
  }
  const surest = findings.some((one) => one.verdict === "known") ? "known" : "likely";
  const some = [...findings].sort(bySureness).slice(0, MOST_FINDINGS);
  const results = (await Promise.all(some.map((one, n) => hitOf(one, n + 1, lang, signal)))).sort(bySureness);
  const likely = results.filter((one) => one.verdict === "likely").map((one) => one.issue);
  return { ...common, verdict: surest, likely, results, areFindings: true, text: results.map((one) => one.line.text).join("\n") };
}

// As at every door (kb/scan/whole.py): what has many causes comes last, and of equally sure ones the first in the log first.
function bySureness(a, b) {
  const hasManyCauses = (one) => Boolean(one.tree?.triage.length);
  return (b.verdict === "known") - (a.verdict === "known") || hasManyCauses(a) - hasManyCauses(b)
    || Math.round(b.confidence * 10) - Math.round(a.confidence * 10) || a.first_line - b.first_line;
}

// The findings about one project or tag. Only the server knows tags, so it is asked about the telling lines.
async function narrowed(findings, project, signal) {
  const body = findings.map((one) => one.text).join("\n");
  const report = await api(`api/scan?project=${encodeURIComponent(project)}`, { signal, log: { body, packed: false } });
  const about = new Set(report.findings.map((one) => one.issue));
  return findings.filter((one) => about.has(one.issue) || one.project?.toLowerCase() === project.toLowerCase());
}

async function hitOf(finding, rank, lang, signal) {
  const { issue, verdict, confidence, first_line, text, count } = finding;
  const at = issue.lastIndexOf("#");
  const { translations } = await api(`api/issues/${encodeURIComponent(issue.slice(0, at))}/${encodeURIComponent(issue.slice(at + 1))}?render=tree`, { signal });
  const record = translations.find((one) => one.lang === lang) ?? translations[0];
  return { ...record, rank, verdict, confidence, first_line, matched: [], base: finding.base, line: { number: first_line, text: text.trim(), more: count - 1 } };
}

// Of a log in which no issue was found: the lines that look like errors, else its end; for what is nearest to it.
export function tellingText(log, most = 40) {
  const end = log.skipped + log.starts.length;
  const found = [];
  for (let number = end; number > log.skipped && found.length < most; number--) {
    const line = lineOf(log, number);
    if (/error|exception|fatal|fail|错误|失败|异常/i.test(line)) found.unshift(line);
    if (end - number > 50_000) break;
  }
  if (found.length) return found.join("\n");
  return Array.from({ length: Math.min(most, log.starts.length) }, (_, n) => lineOf(log, end - Math.min(most, log.starts.length) + n + 1)).join("\n") || " ";
}
