// Checks a campaign's text while a person types it, and plans by Enter in the values of a send. Without this script, the page's button checks the text.
(() => {
  "use strict";
  const pause = 400, checkMax = 20000, checkAgain = 5000;

  // The address of the page that is shown after signing in: a form's own address shows nothing by itself.
  const path = location.pathname.replace(/\/(check|save|plan|test-send)$/, "");
  const page = path + (path === location.pathname ? location.search : "?view=files");

  for (const form of document.querySelectorAll("form.editor")) {
    const text = form.querySelector("textarea");
    if (!text || text.readOnly) continue;
    const gutter = form.querySelector(".gutter");
    const found = form.querySelector(".found");
    const etag = form.elements.etag;
    const opened = etag.value;
    const place = `fanfare ${form.getAttribute("action").split("#")[0]} ${form.id}`;
    let timer, asked = 0;

    // What is not saved survives the end of the session, and of the page, in this tab.
    const storage = (use) => { try { return use(sessionStorage); } catch { return null; /* Off, or full. */ } };
    const keep = () => storage((kept) => text.value === text.defaultValue && !("unsaved" in form.dataset)
      ? kept.removeItem(place) : kept.setItem(place, JSON.stringify({ text: text.value, etag: etag.value })));

    const restore = () => {
      const isHeld = new URLSearchParams(location.search).get("held") === form.id;
      const kept = storage((kept) => JSON.parse(kept.getItem(place)));
      if (!kept || "unsaved" in form.dataset) return;
      if (isHeld || kept.text === text.value) { storage((kept) => kept.removeItem(place)); return; }
      text.value = kept.text;
      // Saving then finds out whether another user has changed the file.
      etag.value = kept.etag;
      const note = document.createElement("p"), discard = document.createElement("button");
      note.className = "notice paused restored";
      note.setAttribute("role", "status");
      note.textContent = "This is the text that you had not saved. ";
      discard.type = "button";
      discard.textContent = "Discard it";
      discard.addEventListener("click", () => {
        text.value = text.defaultValue;
        etag.value = opened;
        note.remove();
        keep(); number(); check();
      });
      note.append(discard);
      form.prepend(note);
      number();
      check();
    };

    // As many numbers as lines; the field grows, so that both scroll with the page.
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

    // What an earlier check said is not true of the text any more.
    const unchecked = (reason, address) => {
      const note = document.createElement("p"), words = document.createElement("span");
      note.className = "summary";
      words.className = "state paused";
      words.textContent = `Not checked: ${reason}`;
      note.append(words);
      if (address) {
        const link = document.createElement("a");
        link.href = address;
        link.textContent = "Sign in";
        // The text is kept: nothing is to be asked.
        link.addEventListener("click", () => { form.dataset.sent = "1"; });
        note.append(" ", link);
      }
      if (found.innerHTML !== note.outerHTML) found.replaceChildren(note);
      mark();
      clearTimeout(timer);
      timer = setTimeout(check, checkAgain);
    };

    const check = async () => {
      const turn = ++asked;
      const fields = new URLSearchParams(new FormData(form));
      const typed = document.getElementById("try");
      if (typed) for (const [name, value] of new FormData(typed)) {
        if (name.startsWith("v.") || name === "device" || name === "variant") fields.append(name, value);
      }
      fields.set("part", "check");
      let answer, answered;
      try {
        answer = await fetch(form.getAttribute("action").split("#")[0], { method: "POST", body: fields, redirect: "error", signal: AbortSignal.timeout(checkMax) });
        answered = await answer.text();
      } catch {
        if (turn === asked) unchecked("the server does not respond; retrying every 5 seconds.");
        return;
      }
      // A later one is on its way.
      if (turn !== asked) return;
      if (answer.status === 401) {
        unchecked("your session has ended, and your text is kept.", `/sign-in?next=${encodeURIComponent(page)}`);
        return;
      }
      if (!answer.ok) { unchecked(`the server refuses the check (status ${answer.status}); press Check for the reason.`); return; }
      const parts = new DOMParser().parseFromString(answered, "text/html");
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
      keep();
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
    restore();
    if ("unsaved" in form.dataset) keep();
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
