// Shows the typed text as readers will see it, shortly after the last key. The server renders it.
// Without scripts, the button loads the page with the same preview.

const PAUSE_MS = 400;

const form = document.getElementById("composer");
const shown = document.getElementById("outside");
let waiting = 0;
let asking = null;

async function read() {
  asking?.abort();
  asking = new AbortController();
  const data = new URLSearchParams(new FormData(form));
  data.set("act", "preview");
  try {
    const answer = await fetch(form.action, { method: "POST", body: data, signal: asking.signal });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    shown.replaceChildren(...(fresh.getElementById("outside")?.childNodes ?? []));
    const told = fresh.querySelector("[data-told]");
    if (told) document.querySelector("[data-told]").textContent = told.textContent;
  } catch {
    // The next key superseded the request, or the server is away: the shown preview stays.
  }
}

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(read, PAUSE_MS);
}

form.addEventListener("input", soon);
