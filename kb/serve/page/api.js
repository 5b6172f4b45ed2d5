// Here is a path of the API; give me what it answers. Who has no token yet is asked for it.

const $ = (id) => document.getElementById(id);
let token = "";
let entering = null;

export async function api(path, { signal, question } = {}) {
  const headers = {};
  const sent = token;
  if (token) headers.Authorization = `Bearer ${token}`;
  if (question) headers["Content-Type"] = "application/json";
  const options = { headers, signal, ...(question && { method: "POST", body: JSON.stringify(question) }) };
  const response = await fetch(path, options);
  if (response.status === 401) {
    if (token === sent) await enter(Boolean(sent)); // else another request has been given one in the meantime
    return api(path, { signal, question });
  }
  const found = await response.json();
  if (!response.ok) throw Object.assign(new Error(found.error), { status: response.status });
  return found;
}

function enter(wrong) {
  entering ??= new Promise((done, fail) => {
    $("wrong").hidden = !wrong;
    $("login").returnValue = "";
    $("login").showModal();
    const given = () => {
      const value = $("token").value.trim();
      $("token").value = "";
      entering = null;
      if ($("login").returnValue !== "enter") return fail(Object.assign(new Error("no token"), { status: 401 }));
      keepToken(value);
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
