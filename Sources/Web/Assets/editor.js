// A campaign's text is checked while it is written. The page does all of this without, by its button.
(() => {
  "use strict";
  const pause = 400;

  for (const form of document.querySelectorAll("form.editor")) {
    const text = form.querySelector("textarea");
    if (!text || text.readOnly) continue;
    const gutter = form.querySelector(".gutter");
    let timer, asked = 0;

    // As many numbers as lines; the field grows, so that both scroll with the page.
    const number = () => {
      const rows = Math.max(text.value.split("\n").length + 1, 6);
      if (rows === gutter.childElementCount) return;
      text.rows = rows;
      // The line ends stand between the numbers: within one they would make it as wide as the field.
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
      // A later one is on its way, or the page is not what it was: the button tells what is wrong.
      if (turn !== asked || !answer.ok) return;
      const parts = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (turn !== asked) return;
      for (const part of parts.querySelectorAll("[data-part]")) {
        const name = part.dataset.part;
        const target = document.querySelector(`[data-target="${CSS.escape(name)}"]`);
        const isShown = target && (name === form.id || (name === "phones" && part.querySelector(".phone")));
        // A screen reader does not repeat what did not change.
        if (isShown && target.innerHTML.trim() !== part.innerHTML.trim()) target.replaceChildren(...part.childNodes);
      }
      mark();
    };

    text.addEventListener("input", () => {
      number();
      clearTimeout(timer);
      timer = setTimeout(check, pause);
    });
    // As in every editor.
    text.addEventListener("keydown", (event) => {
      if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
        const save = form.querySelector('button[formaction*="/save"]');
        if (!save) return;
        event.preventDefault();
        // Another's text is replaced by the button alone.
        if (save.name === "over") { save.focus(); } else { form.requestSubmit(save); }
      }
    });
    addEventListener("beforeunload", (event) => {
      const isTyped = "unsaved" in form.dataset || text.value !== text.defaultValue;
      if (isTyped && !form.dataset.sent) event.preventDefault();
    });
    form.addEventListener("submit", () => { form.dataset.sent = "1"; });
  }

  // A value is one line as a rule: Enter plans, as in every other field, and Shift with Enter breaks the line.
  const plan = document.getElementById("try");
  for (const value of plan ? plan.querySelectorAll("textarea") : []) {
    value.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      plan.requestSubmit(plan.querySelector("button"));
    });
  }
})();
