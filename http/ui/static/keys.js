// Keys: they only lead where a pointer can lead too, and never act while somebody types.

const dialog = document.getElementById("keys");
let leader = 0;

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
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && typing?.closest(".find")) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (Date.now() - leader < 1_500) {
    leader = 0;
    go(event.key);
    return;
  }
  switch (event.key) {
    case "/":
      event.preventDefault();
      document.getElementById("search")?.focus();
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
