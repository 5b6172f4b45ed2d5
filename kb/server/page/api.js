// Here is a path of the API; give me what it answers. Who has no token yet is asked for it.

const $ = (id) => document.getElementById(id);
let token = "";
let entering = null;

export async function api(path, { signal, question } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (question) headers["Content-Type"] = "application/json";
  const options = { headers, signal, ...(question && { method: "POST", body: JSON.stringify(question) }) };
  const response = await fetch(path, options);
  if (response.status === 401) {
    await enter();
    return api(path, { signal, question });
  }
  const found = await response.json();
  if (!response.ok) throw Object.assign(new Error(found.error), { status: response.status });
  return found;
}

function enter() {
  entering ??= new Promise((done) => {
    $("login").showModal();
    const given = () => {
      keepToken($("token").value.trim());
      $("token").value = "";
      entering = null;
      done();
    };
    $("login").addEventListener("close", given, { once: true });
  });
  return entering;
}

export function keepToken(given) {
  token = given;
  remember("sessionStorage", "kb.token", given);
}

// A private window may keep nothing, or not even have the place; then one chooses again.

export function remember(storage, key, value) {
  try {
    window[storage].setItem(key, value);
  } catch {
    return;
  }
}

export function recall(storage, key) {
  try {
    return window[storage].getItem(key) ?? "";
  } catch {
    return "";
  }
}
