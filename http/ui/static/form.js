// The form without leaving it: another kind's fields, what has to be mended and a test's result are
// swapped in. The server makes all of them from what stands in the form; without scripts the same
// buttons load a page.

const form = document.getElementById("monitor-form");

async function send(act) {
  const data = new URLSearchParams(new FormData(form));
  data.set("act", act);
  const answer = await fetch(form.action, { method: "POST", body: data });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Passwords are never sent back, so that they are carried over here, and so is what is unfolded.
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
  const under = fresh.querySelector(".lede .under");
  if (under) document.querySelector(".lede .under").textContent = under.textContent;
  quiet();
}

form.addEventListener("change", async (event) => {
  if (event.target.id !== "type") return;
  take(await send("kind"));
  document.getElementById("type").focus();
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

// The button that loads another kind's fields is not needed where this runs.
function quiet() {
  for (const button of form.querySelectorAll("[data-kind]")) button.hidden = true;
}

quiet();
form.querySelector("[aria-invalid]")?.focus();
