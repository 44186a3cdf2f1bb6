// Counts an expression while a person types it. The server renders the result. Without this script, a button counts.
"use strict";
for (const form of document.querySelectorAll("form[data-count]")) {
  const output = form.querySelector("output");
  let timer = 0;
  let asked = null;
  const count = async () => {
    asked?.abort();
    asked = new AbortController();
    const fields = new FormData(form);
    const isChosen = fields.get("c.who") === "choose";
    const sent = [...fields].filter(([name, value]) => value && (isChosen ? /^(c\.|n\.)/ : /^expression$/).test(name));
    if (!sent.some(([name, value]) => name !== "c.who" && value.trim())) { output.replaceChildren(); return; }
    const query = new URLSearchParams(sent);
    for (const name of ["topic", "push_type"]) query.set(name, fields.get(name));
    output.setAttribute("aria-busy", "true");
    try {
      // An ended session leads to the sign-in page, which is no part of this one.
      const answer = await fetch(`${form.dataset.count}?${query}`, { redirect: "manual", signal: asked.signal });
      const hasEnded = answer.type === "opaqueredirect" || answer.status === 401;
      if (hasEnded) output.textContent = "Not counted: your session has ended. Sign in in another tab, then go on here.";
      else if (answer.ok) output.innerHTML = await answer.text();
      output.removeAttribute("aria-busy");
    } catch (error) {
      if (error.name !== "AbortError") output.removeAttribute("aria-busy");
    }
  };
  form.addEventListener("input", (event) => {
    if (event.target.name === "name") return;
    clearTimeout(timer);
    timer = setTimeout(count, 400);
  });
}
