// Requests to the API. When the server wants a token, a dialog asks for it and the request is sent again. The token is
// sent once; from then on the browser has a cookie, which no script can read and every tab sends.

import { say } from "./words.js";

const $ = (id) => document.getElementById(id);
let sessions = 0; // that were started here
let entering = null;

// The JSON that the API answers at `path`; `question` is sent as the body of a POST, and so is a log: `log` is
// `{ body, packed }`, its bytes and whether they are gzip. Throws an Error with `status`.
export async function api(path, { signal, question, log } = {}) {
  const before = sessions;
  const headers = {};
  if (question) headers["Content-Type"] = "application/json";
  if (log) headers["Content-Type"] = "text/plain";
  if (log?.packed) headers["Content-Encoding"] = "gzip";
  const body = question ? JSON.stringify(question) : log?.body;
  const response = await fetch(path, { headers, signal, ...(body !== undefined && { method: "POST", body }) });
  if (response.status === 401) {
    if (sessions === before) await askForToken(); // else another request has asked in the meantime
    return api(path, { signal, question, log });
  }
  const found = await response.json().catch(() => ({})); // a proxy may answer with a page of its own
  if (!response.ok) throw Object.assign(new Error(found.error ?? response.statusText), { status: response.status, hint: found.hint ?? "" });
  return found;
}

// The problem in words, or nothing when the token was right.
export async function signIn(token) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch("api/session", { method: "POST", headers, body: JSON.stringify({ token }) });
  if (!response.ok) return say(response.status === 429 ? "too many tokens" : "wrong token", { n: response.headers.get("Retry-After") });
  sessions += 1;
  return "";
}

function askForToken(problem = "") {
  entering ??= new Promise((done, fail) => {
    $("wrong").textContent = problem;
    $("wrong").hidden = !problem;
    $("login").returnValue = "";
    $("login").showModal();
    const given = async () => {
      const value = $("token").value.trim();
      $("token").value = "";
      const entered = $("login").returnValue === "enter";
      const wrong = entered ? await signIn(value).catch(() => say("silent")) : "";
      entering = null;
      if (!entered) fail(Object.assign(new Error("no token"), { status: 401 }));
      else if (wrong) askForToken(wrong).then(done, fail);
      else done();
    };
    $("login").addEventListener("close", given, { once: true });
  });
  return entering;
}

// In a private window the storage may be missing or refuse to store; then nothing is remembered.

export function store(storage, key, value) {
  try {
    window[storage].setItem(key, value);
  } catch {
    return;
  }
}

export function load(storage, key) {
  try {
    return window[storage].getItem(key) ?? "";
  } catch {
    return "";
  }
}
