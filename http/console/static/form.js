// The form without leaving it: another kind's fields and a test's result are swapped in. The server
// makes both, from what stands in the form; without scripts the same buttons load a page.

const form = document.getElementById("monitor-form");

async function send(act) {
  const data = new URLSearchParams(new FormData(form));
  data.set("act", act);
  const answer = await fetch(form.action, { method: "POST", body: data });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function take(fresh, ...ids) {
  for (const id of ids) {
    const next = fresh.getElementById(id);
    if (next) document.getElementById(id)?.replaceWith(next);
  }
}

addEventListener("change", async (event) => {
  if (event.target.id !== "type") return;
  const fresh = await send("kind");
  const next = fresh.getElementById("monitor-form");
  if (!next) return;
  document.querySelector(".lede .under").textContent = fresh.querySelector(".lede .under").textContent;
  document.getElementById("monitor-form").replaceChildren(...next.childNodes);
  quiet();
  document.getElementById("type").focus();
});

addEventListener("click", async (event) => {
  const button = event.target.closest("[data-test]");
  if (!button) return;
  event.preventDefault();
  const said = button.textContent;
  button.setAttribute("aria-busy", "true");
  button.textContent = "Testing";
  try {
    const fresh = await send("test");
    if (fresh.querySelector(".faults")) {
      // What has to be mended stands at its field.
      const next = fresh.getElementById("monitor-form");
      document.getElementById("monitor-form").replaceChildren(...next.childNodes);
      quiet();
      document.querySelector("[aria-invalid]")?.focus();
      return;
    }
    take(fresh, "trial");
  } finally {
    button.removeAttribute("aria-busy");
    button.textContent = said;
  }
});

// The button that loads another kind's fields is not needed where this runs.
function quiet() {
  for (const button of document.querySelectorAll("[data-kind]")) button.hidden = true;
}

quiet();
document.querySelector("[aria-invalid]")?.focus();
