// Checks a campaign's text while a person types it. Without this script, the page's button checks the text.
(() => {
  "use strict";
  const pause = 400;

  for (const form of document.querySelectorAll("form.editor")) {
    const text = form.querySelector("textarea");
    if (!text || text.readOnly) continue;
    const gutter = form.querySelector(".gutter");
    let timer, asked = 0;

    // Number each line. The field is as high as its text, so that the numbers scroll with it.
    const number = () => {
      const rows = Math.max(text.value.split("\n").length + 1, 6);
      if (rows === gutter.childElementCount) return;
      text.rows = rows;
      // The line ends are between the numbers. Inside a number they would make it as wide as the field.
      gutter.replaceChildren(...Array.from({ length: rows }, (_, index) => {
        const line = document.createElement("span");
        line.textContent = index + 1;
        return [line, "\n"];
      }).flat());
    };

    const mark = () => {
      for (const line of gutter.children) line.className = "";
      for (const item of form.querySelectorAll(".troubles [data-line]")) {
        const line = gutter.children[item.dataset.line - 1];
        if (line && line.className !== "error") line.className = item.className;
      }
    };

    const check = async () => {
      const turn = ++asked;
      const fields = new URLSearchParams(new FormData(form));
      const typed = document.getElementById("try");
      if (typed) for (const [name, value] of new FormData(typed)) {
        if (name.startsWith("v.") || name === "device" || name === "variant") fields.append(name, value);
      }
      fields.set("part", "check");
      let answer;
      try {
        answer = await fetch(form.getAttribute("action").split("#")[0], { method: "POST", body: fields, redirect: "error" });
      } catch { return; }
      // A later check is in flight, or the server refused this one. The button then shows the reason.
      if (turn !== asked || !answer.ok) return;
      const parts = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (turn !== asked) return;
      for (const part of parts.querySelectorAll("[data-part]")) {
        const name = part.dataset.part;
        const target = document.querySelector(`[data-target="${CSS.escape(name)}"]`);
        const isShown = target && (name === form.id || (name === "phones" && part.querySelector(".phone")));
        // Keep unchanged parts, so that a screen reader does not repeat them.
        if (isShown && target.innerHTML.trim() !== part.innerHTML.trim()) target.replaceChildren(...part.childNodes);
      }
      mark();
    };

    text.addEventListener("input", () => {
      number();
      clearTimeout(timer);
      timer = setTimeout(check, pause);
    });
    // Ctrl+S or Cmd+S saves, as in other editors.
    text.addEventListener("keydown", (event) => {
      if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
        const save = form.querySelector('button[formaction*="/save"]');
        if (!save) return;
        event.preventDefault();
        // Only the button itself replaces another user's text.
        if (save.name === "over") { save.focus(); } else { form.requestSubmit(save); }
      }
    });
    addEventListener("beforeunload", (event) => {
      const isTyped = "unsaved" in form.dataset || text.value !== text.defaultValue;
      if (isTyped && !form.dataset.sent) event.preventDefault();
    });
    form.addEventListener("submit", () => {
      form.dataset.sent = "1";
      // What was typed into the form above goes along, so that the page shows it again.
      const typed = document.getElementById("try");
      for (const [name, value] of typed ? new FormData(typed) : []) {
        const field = form.querySelector(`input[type=hidden][name="${CSS.escape(name)}"]`);
        if (field) field.value = value;
      }
    });
  }

  // A value usually has one line: Enter plans, as in other fields, and Shift+Enter inserts a line break.
  const plan = document.getElementById("try");
  for (const value of plan ? plan.querySelectorAll("textarea") : []) {
    value.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      plan.requestSubmit(plan.querySelector("button"));
    });
  }
})();
