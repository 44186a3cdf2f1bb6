// Previews a campaign's form while a person fills it in. Without this script, the form's buttons do the same.
(() => {
  "use strict";
  const form = document.getElementById("composer");
  if (!form) return;
  const pause = 400, waitMax = 20000;
  const place = `fanfare compose ${form.getAttribute("action")}`;
  const address = form.getAttribute("action");
  const reach = form.querySelector("output.reach");
  let timer, counter, running = null, isWaiting = false, counting = null, last = null;

  const isTag = (name) => name.startsWith("etag.") || name === "opened";
  // A secret is never kept, wherever it comes from.
  const state = () => new URLSearchParams([...new FormData(form)].filter(([name]) => !isTag(name) && name !== "token")).toString();
  const opened = state();
  const isTyped = () => "unsaved" in form.dataset || state() !== opened;

  // What is not saved survives the end of the session, and of the page, in this tab.
  const storage = (use) => { try { return use(sessionStorage); } catch { return null; /* Off, or full. */ } };
  const tags = () => [...form.elements].filter((field) => isTag(field.name));
  const keep = () => storage((kept) => isTyped()
    ? kept.setItem(place, JSON.stringify({ fields: state(), tags: tags().map((tag) => [tag.name, tag.value]) })) : kept.removeItem(place));

  const restore = () => {
    const kept = storage((kept) => JSON.parse(kept.getItem(place)));
    if (new URLSearchParams(location.search).has("saved") || new URLSearchParams(location.search).has("held")) {
      storage((kept) => kept.removeItem(place));
      return;
    }
    if (!kept || kept.fields === opened || "unsaved" in form.dataset) return;
    const fields = new URLSearchParams(kept.fields);
    // Saving then finds out whether someone else has changed a file.
    for (const [name, value] of kept.tags) if (form.elements[name]) form.elements[name].value = value;
    // A language that was just added has no fields yet: the server makes them.
    if ([...fields.keys()].some((name) => name.startsWith("c.alert.") && !form.elements[name])) {
      for (const [name, value] of fields) {
        if (form.elements[name] || name === "do") continue;
        const own = document.createElement("input");
        own.type = "hidden";
        own.name = name;
        own.value = value;
        form.append(own);
      }
    }
    for (const field of form.elements) {
      if (!field.name || isTag(field.name) || field.tagName === "BUTTON") continue;
      if (field.type === "checkbox") field.checked = fields.has(field.name);
      else if (field.type === "radio") field.checked = fields.get(field.name) === field.value;
      else if (fields.has(field.name)) field.value = fields.get(field.name);
    }
    const note = document.createElement("p"), discard = document.createElement("button");
    note.className = "notice paused restored";
    note.setAttribute("role", "status");
    note.textContent = "These are the changes that you had not saved. ";
    discard.type = "button";
    discard.textContent = "Discard them";
    discard.addEventListener("click", () => { storage((kept) => kept.removeItem(place)); form.dataset.sent = "1"; location.reload(); });
    note.append(discard);
    form.prepend(note);
    letters();
    if (form.querySelector('input[type=hidden][name^="c.alert."]')) {
      form.dataset.sent = "1";
      form.requestSubmit(form.querySelector('button[value="preview"]'));
    } else {
      check();
    }
  };

  const say = (text, link) => {
    const target = form.querySelector('[data-target="found"]'), note = document.createElement("p"), word = document.createElement("span");
    note.className = "summary";
    word.className = "state paused";
    word.textContent = text;
    note.append(word);
    if (link) {
      const sign = document.createElement("a");
      sign.href = link;
      sign.textContent = "Sign in";
      sign.addEventListener("click", () => { form.dataset.sent = "1"; });
      note.append(" ", sign);
    }
    target.replaceChildren(note);
  };

  // Sends the form and the values, with one more field.
  const send = (more) => {
    const fields = new URLSearchParams(new FormData(form));
    const values = document.getElementById("try");
    if (values) for (const [name, value] of new FormData(values)) {
      if (name.startsWith("v.") || name === "device" || name === "variant") fields.append(name, value);
    }
    for (const [name, value] of Object.entries(more)) fields.set(name, value);
    return fetch(address, { method: "POST", body: fields, redirect: "error", signal: AbortSignal.timeout(waitMax) });
  };

  // One request at a time: the next one begins with what is typed until then.
  const check = async () => {
    if (running) { isWaiting = true; return; }
    running = send({ part: "check" });
    try {
      const answer = await running, text = await answer.text();
      if (answer.status === 401) say("Not checked: your session has ended, and your changes are kept.", `/sign-in?next=${encodeURIComponent(location.pathname.replace(/\/(compose|check)$/, ""))}`);
      else if (!answer.ok) say(`Not checked: the server refuses the check (status ${answer.status}).`);
      else show(new DOMParser().parseFromString(text, "text/html"));
    } catch {
      say("Not checked: the server does not respond.");
      clearTimeout(timer);
      timer = setTimeout(check, 5000);
    }
    running = null;
    if (isWaiting) { isWaiting = false; check(); }
  };

  const show = (parts) => {
    for (const part of parts.querySelectorAll("[data-part]")) {
      const target = document.querySelector(`[data-target="${CSS.escape(part.dataset.part)}"]`);
      if (!target || target.innerHTML.trim() === part.innerHTML.trim()) continue;
      if (part.dataset.part === "phones" && !part.querySelector(".phone")) continue;
      // New variables get a field; the fields that a person types in stay as they are.
      if (part.dataset.part === "variables") {
        for (const field of part.querySelectorAll("[name]")) {
          if (!form.elements[field.name]) target.append(field.closest("p"));
        }
        continue;
      }
      target.replaceChildren(...part.childNodes);
    }
    tools();
    order();
    mark();
  };

  // Each error stands at its field, too.
  const mark = () => {
    for (const old of form.querySelectorAll(".fault")) old.remove();
    for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
    for (const link of form.querySelectorAll(".troubles .error a")) {
      const field = document.getElementById(decodeURIComponent(link.hash.slice(1)));
      if (!field || !form.contains(field)) continue;
      const note = document.createElement("span");
      note.className = "fault bad";
      note.textContent = link.textContent;
      if (field.matches("input, select, textarea")) field.setAttribute("aria-invalid", "true");
      field.after(note);
    }
  };
  // A link to a field leads into a language that is folded.
  form.addEventListener("click", (event) => {
    const link = event.target.closest('.found a[href^="#"], .notice a[href^="#"]');
    const field = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (!field) return;
    event.preventDefault();
    for (let outer = field.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
    field.scrollIntoView({ block: "center" });
    if (field.matches("input, select, textarea")) field.focus({ preventScroll: true });
  });

  // Adds the fields of a language without leaving the page.
  const add = async (button) => {
    const name = form.elements.language;
    if (!name.value.trim()) { name.focus(); return; }
    button.disabled = true;
    try {
      const answer = await send({ do: "language" });
      if (!answer.ok) throw answer;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const shown = [...form.querySelectorAll("[data-language]")];
      const added = [...page.querySelectorAll("#composer [data-language]")]
        .filter((one) => !shown.some((other) => other.dataset.language === one.dataset.language));
      shown.at(-1)?.after(...added);
      const found = page.querySelector('[data-target="found"]'), choice = page.getElementById("c-default_locale");
      if (added.length) {
        name.value = "";
        const missing = page.querySelector("#composer .missing");
        if (missing) form.querySelector(".missing").replaceChildren(...missing.childNodes);
        if (choice) form.elements["c.default_locale"].innerHTML = choice.innerHTML;
        for (const one of added) one.querySelector("input")?.focus();
        form.dispatchEvent(new Event("input"));
      } else if (found) {
        form.querySelector('[data-target="found"]').replaceChildren(...found.childNodes);
        mark();
      }
    } catch {
      // The server's own page says why.
      form.requestSubmit(button);
      return;
    } finally {
      button.disabled = false;
    }
  };
  form.querySelector('button[value="language"]')?.addEventListener("click", (event) => {
    event.preventDefault();
    add(event.currentTarget);
  });
  form.elements.language?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    form.querySelector('button[value="language"]').click();
  });

  // A save with errors stays on the page, and shows them at their fields.
  form.querySelector('button[value="save"]')?.addEventListener("click", async (event) => {
    const button = event.currentTarget;
    event.preventDefault();
    button.disabled = true;
    let isWrong = false;
    try {
      const answer = await send({ part: "check" });
      if (answer.ok) {
        show(new DOMParser().parseFromString(await answer.text(), "text/html"));
        isWrong = form.querySelector(".found [data-refused]") !== null;
      }
    } catch { /* The save itself says what is wrong. */ }
    button.disabled = false;
    if (isWrong) {
      form.querySelector(".found a")?.click();
      return;
    }
    form.requestSubmit(button);
  });
  for (const button of form.querySelectorAll('button[value="preview"]')) {
    button.addEventListener("click", (event) => { event.preventDefault(); check(); });
  }

  // The fields that decide which devices get the push.
  const counted = /^(c\.(who|guards|start|at|repeat|zone|unknown_zone|quiet|expires_after|late_by_max)|n\.)/;
  const count = async () => {
    const who = [...new FormData(form)].filter(([name]) => counted.test(name));
    const fields = new URLSearchParams(who).toString();
    if (fields === last || fields.includes("c.who=sql")) return;
    last = fields;
    counting?.abort();
    counting = new AbortController();
    reach.setAttribute("aria-busy", "true");
    try {
      // An ended session leads to the sign-in page, which is no part of this one.
      const answer = await fetch(`${address}/count`, { method: "POST", body: new URLSearchParams(who), redirect: "manual", signal: counting.signal });
      const hasEnded = answer.type === "opaqueredirect" || answer.status === 401;
      if (hasEnded) { last = null; reach.textContent = "Not counted: your session has ended, and your changes are kept."; }
      else if (answer.ok) reach.innerHTML = await answer.text();
      reach.removeAttribute("aria-busy");
    } catch (error) {
      if (error.name !== "AbortError") { last = null; reach.removeAttribute("aria-busy"); }
    }
  };

  // The phone of the language under edit comes first.
  let language = null;
  const order = () => {
    for (const phone of document.querySelectorAll(".phones .phone")) {
      phone.closest("li").style.order = language && phone.lang === language ? -1 : 0;
    }
  };

  // Letters, variables and emoji for the text field that was used last.
  const emoji = "🎧 🎙️ 📣 🔔 ⭐ ✨ 🎉 🔥 ❤️ 👀 🙌 👋 ⏰ 📅 📰 📺 🎬 🎮 🏆 ⚽ 🛒 🏷️ 💡 ✅ ⚠️ 🚨 🌍 ☀️ ❄️ 🎁".split(" ");
  const bar = form.querySelector(".tools");
  let field = null;
  const insert = (text) => {
    const target = field ?? form.querySelector("[data-text]");
    target.setRangeText(text, target.selectionStart, target.selectionEnd, "end");
    target.focus();
    target.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const button = (label, text, title) => {
    const item = document.createElement("button");
    item.type = "button";
    item.className = "chip";
    item.textContent = label;
    if (title) item.title = title;
    item.addEventListener("click", () => insert(text));
    return item;
  };
  const tools = () => {
    const names = [...form.querySelectorAll('[name^="c.variables."]')].map((one) => one.name.slice("c.variables.".length));
    const shown = [...bar.querySelectorAll("[data-name]")].map((one) => one.dataset.name);
    for (const name of names.filter((name) => !shown.includes(name))) {
      const chip = button(name, `{{${name}}}`, "Inserts the value of each send");
      chip.dataset.name = name;
      bar.insertBefore(chip, bar.querySelector("details"));
    }
    if (!bar.querySelector("details")) {
      const list = document.createElement("details"), summary = document.createElement("summary");
      summary.textContent = "Emoji";
      list.append(summary, ...emoji.map((one) => button(one, one)));
      bar.append(list);
    }
    bar.hidden = false;
  };
  const letters = () => {
    for (const one of form.querySelectorAll("[data-text]")) {
      const label = one.closest("label");
      if (!label) continue;
      let number = label.querySelector(".letters");
      if (!number) {
        number = document.createElement("span");
        number.className = "letters";
        label.insertBefore(number, one);
      }
      number.textContent = one.value ? `${[...one.value].length}` : "";
    }
  };

  form.addEventListener("focusin", (event) => {
    if ("text" in event.target.dataset) field = event.target;
    const block = event.target.closest("[data-language]");
    if (block) { language = block.dataset.language; order(); }
  });
  form.addEventListener("input", (event) => {
    keep();
    remind();
    letters();
    clearTimeout(timer);
    timer = setTimeout(check, pause);
    if (counted.test(event.target.name)) { clearTimeout(counter); counter = setTimeout(count, pause); }
  });
  // Ctrl+S or Cmd+S saves, as in other editors.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.querySelector('button[value="save"]').click();
  });
  form.addEventListener("submit", () => {
    form.dataset.sent = "1";
    // What was typed into the form of values goes along, so that the page shows it again.
    const values = document.getElementById("try");
    for (const [name, value] of values ? new FormData(values) : []) {
      const own = document.createElement("input");
      own.type = "hidden";
      own.name = name;
      own.value = value;
      form.append(own);
    }
  });
  addEventListener("beforeunload", (event) => { if (isTyped() && !form.dataset.sent) event.preventDefault(); });

  // A plan and a test use the saved text, and not what the phones show.
  const unsaved = document.querySelector("[data-remind]");
  const remind = () => { if (unsaved) unsaved.hidden = !isTyped(); };
  document.getElementById("try")?.addEventListener("submit", (event) => {
    if (!isTyped() || event.submitter?.formMethod === "get") return;
    event.preventDefault();
    remind();
    unsaved?.scrollIntoView({ block: "center" });
  });

  // The phones show the values, too.
  for (const value of document.querySelectorAll("#try textarea")) {
    value.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(check, pause); });
  }
  tools();
  letters();
  restore();
  if ("unsaved" in form.dataset) keep();
  remind();
  count();
})();
