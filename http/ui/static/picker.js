// Fields with data-pick: their options are fetched while the user types. A field in data-picker has
// several choices: this script draws its list, and a choice becomes a row or token of the form.
// Without scripts the field has a datalist, and buttons of the form add and remove choices.

const PAUSE_MS = 150;
let numbers = 0;

async function optionsOf(field, text, signal) {
  const url = `${field.dataset.pick}&q=${encodeURIComponent(text)}`;
  const answer = await fetch(url, { signal, headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  return [...fresh.querySelectorAll("option")];
}

// One request at a time: a later key supersedes the request of an earlier one.
function asker(field, show) {
  let waiting = 0;
  let asking = null;
  async function ask() {
    clearTimeout(waiting);
    asking?.abort();
    asking = new AbortController();
    const text = field.value;
    try {
      const found = await optionsOf(field, text, asking.signal);
      // Options of an earlier text must not be chosen by Enter.
      if (text === field.value) show(found);
    } catch {
      // Superseded, or the server is away: the shown list stays.
    }
  }
  return {
    now: ask,
    soon() {
      clearTimeout(waiting);
      waiting = setTimeout(ask, PAUSE_MS);
    },
    stop() {
      clearTimeout(waiting);
      asking?.abort();
    },
  };
}

function suggest(field) {
  const asks = asker(field, (found) => field.list.replaceChildren(...found));
  field.addEventListener("input", asks.soon);
}

function node(name, attributes, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// The part of the text that matches is marked.
function marked(text, part) {
  const at = part ? text.toLowerCase().indexOf(part.toLowerCase()) : -1;
  if (at < 0) return [text];
  const end = at + part.length;
  return [text.slice(0, at), node("mark", {}, text.slice(at, end)), text.slice(end)];
}

// The template's copy with the values in place of {key} and {text}.
function filled(template, values) {
  const made = template.content.firstElementChild.cloneNode(true);
  const put = (text) => text.replace(/\{(key|text)\}/g, (_, name) => values[name]);
  for (const one of [made, ...made.querySelectorAll("*")]) {
    for (const attribute of one.attributes) attribute.value = put(attribute.value);
    for (const child of one.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) child.data = put(child.data);
    }
  }
  return made;
}

function enhance(root) {
  const field = root.querySelector("[data-pick]");
  const chosen = root.querySelector("[data-chosen]");
  const table = root.querySelector("[data-filled]");
  const template = root.querySelector("template");
  const free = root.hasAttribute("data-free");
  const id = `picks-${++numbers}`;
  const items = node("ul", { id, role: "listbox", "aria-label": "Matches" });
  const foot = node("p", { class: "foot" });
  const list = node("div", { class: "list" }, items, foot);
  const said = node("p", { class: "vh", role: "status" });
  let at = -1;
  // Text whose options are shown.
  let shown = null;

  field.removeAttribute("list");
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", id);
  root.querySelector("[data-add]").hidden = true;
  field.closest(".box").after(list, said);
  close();

  const taken = () => new Set([...chosen.querySelectorAll("[data-token]")].map(keyOf));
  const open = () => !list.hidden;
  const choices = () => [...items.querySelectorAll("[data-key]:not([aria-disabled])")];

  function keyOf(one) {
    return one.dataset.token;
  }

  function close() {
    list.hidden = true;
    at = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function point(to) {
    at = to;
    choices().forEach((one, n) => {
      one.classList.toggle("on", n === at);
      if (n === at) one.scrollIntoView({ block: "nearest" });
    });
    const active = choices()[at];
    if (active) field.setAttribute("aria-activedescendant", active.id);
    else field.removeAttribute("aria-activedescendant");
  }

  function show(found) {
    if (document.activeElement !== field) return;
    const has = taken();
    const typed = field.value.trim();
    shown = field.value;
    items.replaceChildren(
      ...found.map((one, n) => {
        const { key, text } = one.dataset;
        const added = has.has(key);
        const small = node("small", {}, added ? "added" : one.label);
        const item = node("li", { role: "option", id: `${id}-${n}`, "data-key": key });
        item.dataset.text = text;
        item.setAttribute("aria-selected", String(added));
        if (added) item.setAttribute("aria-disabled", "true");
        item.append(node("span", {}, ...marked(text, typed)), small);
        return item;
      }),
    );
    items.hidden = found.length === 0;
    const none = free ? "No known value. Enter adds it." : "No match.";
    const many = `${found.length} found.`;
    foot.textContent = found.length ? `${many} ↑ ↓ move, ↵ add, Esc close.` : none;
    said.textContent = found.length ? many : none;
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    list.scrollIntoView({ block: "nearest" });
    point(free ? -1 : 0);
  }

  const asks = asker(field, show);

  function add(key, text) {
    asks.stop();
    if (!taken().has(key)) chosen.append(filled(template, { key, text }));
    if (table) table.hidden = false;
    field.value = "";
    close();
    said.textContent = `${text} added.`;
  }

  function addTyped() {
    for (const part of field.value.split(",")) {
      if (part.trim()) add(part.trim(), part.trim());
    }
  }

  async function enter() {
    if (!free && (!open() || shown !== field.value)) await asks.now();
    const active = open() && shown === field.value ? choices()[at] : null;
    if (active) add(active.dataset.key, active.dataset.text);
    else if (free) addTyped();
  }

  field.addEventListener("input", asks.soon);
  field.addEventListener("click", asks.now);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const many = choices().length;
      if (!open()) asks.now();
      else if (many) point(at < 0 && step < 0 ? many - 1 : (at + step + many) % many);
    } else if (event.key === "Enter" && (field.value.trim() || open())) {
      event.preventDefault();
      enter();
    } else if (event.key === "," && free) {
      event.preventDefault();
      addTyped();
    } else if (event.key === "Escape" && open()) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const one = event.target.closest("[data-key]:not([aria-disabled])");
    if (one) add(one.dataset.key, one.dataset.text);
  });
  chosen.addEventListener("click", (event) => {
    const button = event.target.closest("[data-drop]");
    if (!button) return;
    event.preventDefault();
    const token = button.closest("[data-token]");
    token.remove();
    if (table) table.hidden = taken().size === 0;
    field.focus();
    said.textContent = "Removed.";
  });
}

function enhanceAll() {
  for (const root of document.querySelectorAll("[data-picker]:not([data-ready])")) {
    root.setAttribute("data-ready", "");
    enhance(root);
  }
}

for (const field of document.querySelectorAll("[data-pick]")) {
  if (!field.closest("[data-picker]")) suggest(field);
}
enhanceAll();
// form.js replaces the content of its form.
document.addEventListener("swapped", enhanceAll);
