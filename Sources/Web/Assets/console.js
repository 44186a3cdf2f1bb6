"use strict";
// A test that is on its way: its state is asked for again whenever its run moves, and nothing that was typed is lost.
for (const place of document.querySelectorAll("[data-follow]")) {
  const source = new EventSource(place.dataset.follow);
  const ask = async () => {
    try {
      const answer = await fetch(place.dataset.part);
      if (answer.status !== 200 || answer.redirected) return;
      const part = new DOMParser().parseFromString(await answer.text(), "text/html").body.firstElementChild;
      place.replaceChildren(...part.childNodes);
      if (!("follow" in part.dataset)) source.close();
    } catch { /* The next event asks again. */ }
  };
  for (const event of ["state", "beat", "end"]) source.addEventListener(event, ask);
}
// Times are in the browser's zone, until the person chooses another one in the foot of a page.
try {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !/(^|; )zone=/.test(document.cookie)) document.cookie = `zone=${zone}; path=/; max-age=34560000; samesite=lax`;
} catch { /* The server's zone stays. */ }
// Back shows the page as it is now, not as it was when it was left.
addEventListener("pageshow", (event) => { if (event.persisted && document.querySelector("[data-fresh]")) location.reload(); });
// Unsaved texts of a person who signs out are not for the next one.
document.querySelector("form.visitor")?.addEventListener("submit", () => {
  try { sessionStorage.clear(); } catch { /* Off. */ }
});
// Puts in place what the server says of a page that moves, all of it at once: each message is the whole state. A stream
// repeats no part that did not change. Server-sent events first; after three silences by asking every 5 seconds, and
// back to events as soon as they come.
(() => {
  const root = document.querySelector("[data-live]");
  if (!root) return;
  const link = root.querySelector("[data-link]");
  const voice = root.querySelector("[data-announce]");
  const silence = 12000, askEvery = 5000, retryEvents = 60000, speakEvery = 10000;
  const shown = {};
  let source, watch, asking, again, tag, spoken = 0, silent = 0, over = false;

  // A notification of the browser when the run ends or halts, for a person who asks for it on its page.
  const watchKey = "watch " + root.dataset.live, button = root.querySelector("[data-watch]");
  const watched = () => { try { return sessionStorage.getItem(watchKey) === "on"; } catch { return false; } };
  const mark = () => { button.textContent = "You get a notification when it ends or pauses"; button.disabled = true; };
  if (button && "Notification" in window && Notification.permission !== "denied") {
    button.hidden = false;
    if (watched()) mark();
    button.addEventListener("click", async () => {
      if (await Notification.requestPermission() !== "granted") { button.hidden = true; return; }
      try { sessionStorage.setItem(watchKey, "on"); } catch { return; }
      mark();
    });
  }
  const tell = (state) => {
    if (!watched() || !(state.is_over || /^(paused|failed)/.test(state.stage))) return;
    try { new Notification(document.querySelector("h1").textContent.trim(), { body: state.announcement, tag: watchKey }); } catch { /* Refused. */ }
  };

  const say = (text) => { if (link) { link.textContent = text; link.hidden = !text; } };

  // An open table, and the place of the keyboard, outlast the new part.
  const put = (place, html) => {
    const opened = [...place.querySelectorAll("details")].map((details) => details.open);
    const focused = [...place.querySelectorAll("summary, a")].indexOf(document.activeElement);
    place.innerHTML = html;
    place.querySelectorAll("details").forEach((details, index) => { details.open = opened[index] ?? false; });
    if (focused >= 0) place.querySelectorAll("summary, a")[focused]?.focus({ preventScroll: true });
  };

  const show = (state) => {
    if (root.dataset.stage !== state.stage) { tell(state); location.reload(); return; }
    for (const place of root.querySelectorAll("[data-value]")) {
      const text = state.values[place.dataset.value];
      if (text !== undefined && place.textContent.trim() !== text) place.textContent = text;
    }
    for (const bar of root.querySelectorAll("[data-progress]")) {
      const value = state.progress[bar.dataset.progress];
      if (value !== undefined) bar.value = value;
    }
    for (const place of root.querySelectorAll("[data-part]")) {
      const html = state.parts[place.dataset.part];
      if (html !== undefined && shown[place.dataset.part] !== html) {
        put(place, html);
        shown[place.dataset.part] = html;
      }
    }
    if (voice && Date.now() - spoken > speakEvery) { spoken = Date.now(); voice.textContent = state.announcement; }
    if (state.is_over) { over = true; stop(); }
  };

  const alive = () => {
    silent = 0;
    say("");
    clearTimeout(watch);
    watch = setTimeout(lost, silence);
  };

  const lost = () => {
    if (over || document.hidden) return;
    close();
    silent += 1;
    if (silent < 3) { listen(); return; }
    say("Live updates do not arrive; checking every 5 seconds instead.");
    if (!asking) { ask(); asking = setInterval(ask, askEvery); }
    clearTimeout(again);
    again = setTimeout(listen, retryEvents);
  };

  const close = () => { clearTimeout(watch); if (source) source.close(); source = undefined; };

  const stop = () => { close(); clearInterval(asking); clearTimeout(again); asking = undefined; };

  const listen = () => {
    if (over) return;
    close();
    source = new EventSource(root.dataset.live);
    watch = setTimeout(lost, silence);
    const heard = () => { if (asking) { clearInterval(asking); asking = undefined; } alive(); };
    source.addEventListener("state", (event) => { heard(); show(JSON.parse(event.data)); });
    source.addEventListener("beat", heard);
    source.addEventListener("end", () => { over = true; stop(); location.reload(); });
  };

  const ask = async () => {
    try {
      const answer = await fetch(root.dataset.state, { headers: tag ? { "If-None-Match": tag } : {} });
      if (answer.redirected || answer.status === 401) { location.reload(); return; }
      if (answer.status === 200) { tag = answer.headers.get("ETag"); show(await answer.json()); }
      say("Live updates do not arrive; checking every 5 seconds instead.");
    } catch { say("The server does not respond; retrying every 5 seconds."); }
  };

  document.addEventListener("visibilitychange", () => { if (document.hidden) { stop(); } else { silent = 0; listen(); } });
  listen();
})();
