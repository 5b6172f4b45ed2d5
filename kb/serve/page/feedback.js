// Two quiet buttons under an answer: this helped, this did not fit. Not shown where the server keeps no votes.

import { api } from "./api.js";
import { el } from "./parts.js";
import { currentLanguage } from "./words.js";

const WORDS = {
  en: { ask: "Was this it?", helped: "This helped", did_not_fit: "Did not fit", kept: "Thank you.", none: "Taken back.", failed: "This could not be kept." },
  zh: { ask: "是这个问题吗？", helped: "有用", did_not_fit: "不符", kept: "谢谢。", none: "已撤回。", failed: "未能保存。" },
};

let on = null; // asked once: does this server keep votes?

// The element for the answer `issue` (slug#n) to `question`, the text that was asked. Pressed again, a button takes the vote back.
export function feedback(issue, question) {
  const words = WORDS[currentLanguage()];
  const said = el("span", { role: "status" });
  const buttons = ["helped", "did_not_fit"].map((verdict) =>
    el("button", { type: "button", class: "quiet", "aria-pressed": "false", on: { click: (event) => vote(event.currentTarget, verdict) } }, words[verdict]),
  );
  const group = el("div", { class: "feedback", role: "group", "aria-label": words.ask, hidden: true }, ...buttons, said);

  async function vote(button, verdict) {
    const back = button.getAttribute("aria-pressed") === "true";
    try {
      await api("api/feedback", { question: { issue, verdict: back ? "none" : verdict, ...(question && { question }) } });
    } catch {
      said.textContent = words.failed;
      return;
    }
    for (const one of buttons) one.setAttribute("aria-pressed", String(one === button && !back));
    said.textContent = back ? words.none : words.kept;
  }

  on ??= api("api/feedback").then((state) => state.on, () => false);
  on.then((yes) => (group.hidden = !yes));
  return group;
}
