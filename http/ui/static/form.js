// Swaps parts of the form without a page load: the fields of another type, errors and the result of
// a test. The server renders them from the values of the form. Without scripts, the same buttons
// load a page.

const form = document.getElementById("monitor-form");

async function send(act) {
  const data = new URLSearchParams(new FormData(form));
  data.set("act", act);
  const answer = await fetch(form.action, { method: "POST", body: data });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// The server never sends passwords back, so this keeps them, and also which parts are unfolded.
function take(fresh) {
  const next = fresh.getElementById("monitor-form");
  if (!next) return;
  const kept = new Map();
  for (const field of form.querySelectorAll("input[type=password]")) {
    kept.set(field.name, field.value);
  }
  const open = [...form.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
  form.replaceChildren(...next.childNodes);
  for (const field of form.querySelectorAll("input[type=password]")) {
    field.value = kept.get(field.name) ?? "";
  }
  for (const summary of form.querySelectorAll("details > summary")) {
    if (open.includes(summary.textContent)) summary.parentElement.open = true;
  }
  const sub = fresh.querySelector(".lede .sub");
  if (sub) document.querySelector(".lede .sub").textContent = sub.textContent;
  quiet();
  form.dispatchEvent(new Event("swapped", { bubbles: true }));
}

form.addEventListener("change", async (event) => {
  if (event.target.name !== "type") return;
  take(await send("kind"));
  form.querySelector("[name=type]:checked")?.focus();
});

// Shows the types that match all words. The chosen type stays.
form.addEventListener("input", (event) => {
  if (!event.target.closest("[data-find]")) return;
  const words = event.target.value.toLowerCase().split(/\s+/);
  document.getElementById("more-kinds").open ||= event.target.value !== "";
  for (const card of form.querySelectorAll("[data-words]")) {
    card.hidden = !words.every((word) => card.dataset.words.includes(word));
  }
});

// Enter in the search chooses the first matching type.
form.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.closest("[data-find]")) return;
  event.preventDefault();
  form.querySelector("[data-words]:not([hidden]) input")?.click();
});

// Adds and removes rows of conditions, and converts them to text.
form.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-swap]");
  if (!button) return;
  event.preventDefault();
  const act = button.value;
  take(await send(act));
  const places = form.querySelectorAll(".condrow > :first-child");
  (places.item(places.length - 1) ?? document.getElementById("conditions"))?.focus();
});

form.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-test]");
  if (!button) return;
  event.preventDefault();
  if (button.getAttribute("aria-busy")) return;
  const said = button.textContent;
  button.setAttribute("aria-busy", "true");
  button.textContent = "Testing";
  try {
    take(await send("test"));
  } finally {
    button.removeAttribute("aria-busy");
    button.textContent = said;
  }
  const first = form.querySelector("[aria-invalid]") ?? form.querySelector("[data-test]");
  first.focus();
});

// With scripts, the button that loads the fields of another type is not needed.
function quiet() {
  for (const button of form.querySelectorAll("[data-kind]")) button.hidden = true;
  for (const find of form.querySelectorAll("[data-find]")) find.hidden = false;
}

quiet();
form.querySelector("[aria-invalid]")?.focus();
