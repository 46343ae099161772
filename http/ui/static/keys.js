// Menus, the search palette and shortcuts. Each of them has a link too, and no shortcut acts while the
// user types.

const dialog = document.getElementById("keys");
const finder = document.querySelector("[data-palette]");
const PAUSE_MS = 120;
let leader = 0;

// Menus: one is open at a time; Escape and a press outside close it.
function openMenus() {
  return [...document.querySelectorAll("details.menu[open]")];
}

addEventListener(
  "toggle",
  (event) => {
    const menu = event.target;
    if (!menu.matches?.("details.menu") || !menu.open) return;
    for (const other of openMenus()) if (!other.contains(menu) && other !== menu) other.open = false;
  },
  true,
);

addEventListener("pointerdown", (event) => {
  for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
});

// The palette shows what the search screen shows for the same text. The arrow keys move the focus
// between the field and the results; Enter in the field opens the first one.
let palette = null;
let asking = null;
let pausing = 0;

function paletteOf() {
  if (palette) return palette;
  palette = document.createElement("dialog");
  palette.className = "palette";
  palette.setAttribute("aria-label", "Search, or go to a page");
  palette.innerHTML =
    '<input type="search" aria-label="Search" placeholder="Search, or go to a page" autocomplete="off"><div id="palette-found"></div><p class="foot"><span><kbd>↑</kbd> <kbd>↓</kbd> move</span><span><kbd>↵</kbd> open</span><span><kbd>Esc</kbd> close</span></p>';
  document.body.append(palette);
  const input = palette.querySelector("input");
  input.addEventListener("input", () => {
    clearTimeout(pausing);
    pausing = setTimeout(() => fill(input.value), PAUSE_MS);
  });
  palette.addEventListener("keydown", (event) => {
    const stops = [input, ...palette.querySelectorAll("li a")];
    const at = stops.indexOf(document.activeElement);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      stops[Math.min(Math.max(at + (event.key === "ArrowDown" ? 1 : -1), 0), stops.length - 1)].focus();
    } else if (event.key === "Enter" && at === 0) {
      event.preventDefault();
      stops[1]?.click();
    } else if (event.key === "Escape") {
      // The first Escape of a search field only clears its text.
      event.preventDefault();
      palette.close();
    }
  });
  palette.addEventListener("click", (event) => event.target === palette && palette.close());
  return palette;
}

async function fill(text) {
  asking?.abort();
  asking = new AbortController();
  try {
    const url = `${finder.href}?q=${encodeURIComponent(text)}`;
    const answer = await fetch(url, { signal: asking.signal, headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = fresh.getElementById("found")?.childNodes ?? [];
    palette.querySelector("#palette-found").replaceChildren(...found);
  } catch {
    // A later key superseded the request, or the server is away: the shown results stay.
  }
}

function search() {
  if (!finder) return;
  const box = paletteOf();
  box.showModal();
  box.querySelector("input").select();
  fill(box.querySelector("input").value);
}

finder?.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  search();
});

// A Copy button briefly states that it copied.
addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const text = button.dataset.copy || button.previousElementSibling.textContent;
  await navigator.clipboard?.writeText(text);
  const said = button.lastChild.textContent;
  button.lastChild.textContent = "Copied";
  setTimeout(() => (button.lastChild.textContent = said), 1_600);
});

// Enables a deletion when the name is typed. Without scripts, the server checks it.
for (const field of document.querySelectorAll("[data-confirms]")) {
  const button = field.form.querySelector("[type=submit]");
  const check = () => (button.disabled = field.value.trim() !== field.dataset.confirms);
  field.addEventListener("input", check);
  check();
}

for (const button of document.querySelectorAll("[data-keys]")) {
  button.hidden = false;
  button.addEventListener("click", () => dialog?.showModal());
}

function rows() {
  return [...document.querySelectorAll("main tbody th a, main .rows > li a")];
}

function step(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function go(key) {
  const link = document.querySelector(`nav [data-key="${CSS.escape(key)}"]`);
  if (link) location.assign(link.href);
}

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    search();
    return;
  }
  if (event.key === "Escape") {
    for (const menu of openMenus()) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (Date.now() - leader < 1_500) {
    leader = 0;
    go(event.key);
    return;
  }
  switch (event.key) {
    case "/":
      event.preventDefault();
      search();
      break;
    case "g":
      leader = Date.now();
      break;
    case "j":
      step(1);
      break;
    case "k":
      step(-1);
      break;
    case "?":
      dialog?.showModal();
      break;
  }
});
