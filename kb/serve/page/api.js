// Requests to the API. When the server wants a token, a dialog asks for it and the request is sent again.

const $ = (id) => document.getElementById(id);
let token = "";
let entering = null;

// The JSON that the API answers at `path`; `question` is sent as the body of a POST, and so is a log: `log` is
// `{ body, packed }`, its bytes and whether they are gzip. Throws an Error with `status`.
export async function api(path, { signal, question, log } = {}) {
  const headers = {};
  const sent = token;
  if (token) headers.Authorization = `Bearer ${token}`;
  if (question) headers["Content-Type"] = "application/json";
  if (log) headers["Content-Type"] = "text/plain";
  if (log?.packed) headers["Content-Encoding"] = "gzip";
  const body = question ? JSON.stringify(question) : log?.body;
  const options = { headers, signal, ...(body !== undefined && { method: "POST", body }) };
  const response = await fetch(path, options);
  if (response.status === 401) {
    if (token === sent) await askForToken(Boolean(sent)); // else another request has got one in the meantime
    return api(path, { signal, question, log });
  }
  const found = await response.json().catch(() => ({})); // a proxy may answer with a page of its own
  if (!response.ok) throw Object.assign(new Error(found.error ?? response.statusText), { status: response.status });
  return found;
}

function askForToken(wrong) {
  entering ??= new Promise((done, fail) => {
    $("wrong").hidden = !wrong;
    $("login").returnValue = "";
    $("login").showModal();
    const given = () => {
      const value = $("token").value.trim();
      $("token").value = "";
      entering = null;
      if ($("login").returnValue !== "enter") return fail(Object.assign(new Error("no token"), { status: 401 }));
      setToken(value);
      done();
    };
    $("login").addEventListener("close", given, { once: true });
  });
  return entering;
}

export function setToken(given) {
  token = given;
  store("sessionStorage", "kb.token", given);
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
