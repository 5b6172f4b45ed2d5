// Two quiet buttons under an answer: this helped, this did not fit. Not shown where the server keeps no votes.

import { api } from "./api.js";
import { el } from "./parts.js";
import { say } from "./words.js";

let on = null; // asked once: does this server keep votes?

// The element for the answer `issue` (slug#n) to `question`, the text that was asked. Pressed again, a button takes the vote back.
export function feedback(issue, question) {
  const said = el("span", { role: "status" });
  const buttons = ["helped", "did_not_fit"].map((verdict) =>
    el("button", { type: "button", class: "quiet", "aria-pressed": "false", on: { click: (event) => vote(event.currentTarget, verdict) } }, say(verdict)),
  );
  const group = el("div", { class: "feedback", role: "group", "aria-label": say("was this it"), hidden: true }, ...buttons, said);

  async function vote(button, verdict) {
    const back = button.getAttribute("aria-pressed") === "true";
    try {
      await api("api/feedback", { question: { issue, verdict: back ? "none" : verdict, ...(question && { question }) } });
    } catch {
      said.textContent = say("not kept");
      return;
    }
    for (const one of buttons) one.setAttribute("aria-pressed", String(one === button && !back));
    said.textContent = say(back ? "taken back" : "thanks");
  }

  on ??= api("api/feedback").then((state) => state.on, () => false);
  on.then((yes) => (group.hidden = !yes));
  return group;
}
