// What is typed is shown as it will be read, a moment after the last key. The server makes all of
// it; without scripts the button loads the page with the same.

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
  } catch {
    // Superseded by the next key, or the server is away: what is shown stays, and Preview asks.
  }
}

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(read, PAUSE_MS);
}

form.addEventListener("input", soon);
