// Selection in a list: the bar appears with the first ticked row, and Shift selects a range. Without
// scripts the bar is always visible.

const bar = document.getElementById("bulk");
const boxes = [...document.querySelectorAll("input[form=bulk][type=checkbox]")];
const everything = document.querySelector("[data-all]");
const allOf = bar?.querySelector("[name=all]");
let last = -1;

function show() {
  const many = boxes.filter((box) => box.checked).length;
  for (const box of boxes) box.closest("tr").classList.toggle("on", box.checked);
  if (everything) {
    everything.checked = many === boxes.length;
    everything.indeterminate = many > 0 && many < boxes.length;
  }
  if (allOf && many < boxes.length) allOf.checked = false;
  if (!bar) return;
  bar.hidden = many === 0;
  bar.querySelector("[data-count]").textContent = allOf?.checked ? bar.dataset.found : many;
}

boxes.forEach((box, index) => {
  box.addEventListener("click", (event) => {
    if (event.shiftKey && last >= 0) {
      const [from, to] = [Math.min(last, index), Math.max(last, index)];
      for (const other of boxes.slice(from, to + 1)) other.checked = box.checked;
    }
    last = index;
    show();
  });
});

everything?.addEventListener("change", () => {
  for (const box of boxes) box.checked = everything.checked;
  show();
});

allOf?.addEventListener("change", () => {
  if (allOf.checked) for (const box of boxes) box.checked = true;
  show();
});

bar?.querySelector("[data-clear]")?.addEventListener("click", (event) => {
  event.preventDefault();
  for (const box of boxes) box.checked = false;
  show();
});

// Enter in a field does what the first button beside it does. Without scripts it changes nothing: the
// first button of the form only shows the list.
bar?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches(".pad input")) return;
  event.preventDefault();
  event.target.closest(".pad").querySelector("button").click();
});

addEventListener("keydown", (event) => {
  if (event.target.closest?.("input:not([type=checkbox]), textarea, select")) return;
  if (event.key === "x") {
    const box = document.activeElement?.closest("tr")?.querySelector("input[form=bulk]");
    if (box) box.click();
  }
  if (event.key === "z") document.querySelector(".toast form button")?.click();
});

for (const select of document.querySelectorAll("[data-sends]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
for (const button of document.querySelectorAll("[data-noscript]")) button.hidden = true;

for (const toast of document.querySelectorAll(".toast")) {
  const close = () => toast.remove();
  toast.querySelector("[data-dismiss]")?.addEventListener("click", (event) => {
    event.preventDefault();
    close();
  });
  setTimeout(close, 10_000);
}
show();
