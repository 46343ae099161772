// Crosshair, selection and zoom of the latency plot. The server sends the exact values of each step
// with the plot; without scripts they are in the table under it.

const tip = document.getElementById("lat-tip");
const bar = document.getElementById("lat-sel");
const TOP = 18;
const HEIGHT = 200;
const LEAST_STEPS = 2;
let at = -1; // step under the crosshair
let chosen = null; // first and last selected step
let dragged = -1;

function plot() {
  const box = document.querySelector("[data-lat]");
  if (!box) return null;
  const steps = box.dataset.values.split(";");
  const svg = box.querySelector("svg[role]");
  return { box, svg, steps, from: Number(box.dataset.from), step: Number(box.dataset.step) };
}

function timeOf(p, step) {
  const { zone: timeZone, hours } = document.documentElement.dataset;
  const hour12 = hours === "12";
  const form = { timeZone, hour12, hour: hour12 ? "numeric" : "2-digit", minute: "2-digit" };
  if (p.steps.length * p.step > 86_400_000) Object.assign(form, { day: "numeric", month: "short" });
  if (p.step < 60_000) form.second = "2-digit";
  return new Date(p.from + step * p.step).toLocaleString("en-GB", form);
}

function line(name, value) {
  const row = document.createElement("span");
  const em = document.createElement("em");
  em.textContent = value;
  row.append(`${name} `, em);
  return row;
}

function showTip(p) {
  if (at < 0 || at >= p.steps.length) return hideTip(p);
  const text = p.steps[at];
  const [p50, p95, good, bad] = text.split(" ").map(Number);
  const measured = text !== "" && !Number.isNaN(p50);
  const title = document.createElement("b");
  title.textContent = `${timeOf(p, at)} to ${timeOf(p, at + 1)}`;
  const all = good + bad;
  const rows = measured
    ? [
        line("p50", `${p50.toLocaleString("en")}\u202fms`),
        line("p95", `${p95.toLocaleString("en")}\u202fms`),
        line(`${all} ${all === 1 ? "check" : "checks"}`, bad ? `${bad} failed` : "all up"),
      ]
    : [line(text || "no check was due", "")];
  tip.replaceChildren(title, ...rows);
  tip.hidden = false;
  p.box.append(tip);
  const whole = p.box.getBoundingClientRect();
  const drawn = p.svg.getBoundingClientRect();
  const share = (at + 0.5) / p.steps.length;
  const x = drawn.left - whole.left + share * drawn.width;
  const left = share > 0.5 ? x - tip.offsetWidth - 12 : x + 12;
  tip.style.left = `${Math.max(left, 0)}px`;
  const cross = p.svg.querySelector("[data-cross]");
  const mark = cross.querySelector("line");
  for (const name of ["x1", "x2"]) mark.setAttribute(name, `${share * 100}%`);
  const dot = cross.querySelector("circle");
  dot.setAttribute("cx", `${share * 100}%`);
  dot.setAttribute("cy", measured ? TOP + HEIGHT - (HEIGHT * p50) / Number(p.svg.dataset.top) : 0);
  dot.setAttribute("visibility", measured ? "inherit" : "hidden");
  cross.setAttribute("visibility", "visible");
}

function hideTip(p) {
  at = -1;
  tip.hidden = true;
  p.svg.querySelector("[data-cross]").setAttribute("visibility", "hidden");
}

function showChosen(p) {
  const brush = p.svg.querySelector(".brush");
  bar.hidden = chosen === null;
  brush.setAttribute("visibility", chosen === null ? "hidden" : "visible");
  if (chosen === null) return;
  const [first, last] = [Math.min(...chosen), Math.max(...chosen)];
  brush.setAttribute("x", `${(first / p.steps.length) * 100}%`);
  brush.setAttribute("width", `${((last + 1 - first) / p.steps.length) * 100}%`);
  bar.querySelector("span").textContent = `Selected ${timeOf(p, first)} to ${timeOf(p, last + 1)}.`;
  const iso = (step) => new Date(p.from + step * p.step).toISOString().replace(".000Z", "Z");
  const query = new URLSearchParams({ from: iso(first), to: iso(last + 1) });
  bar.querySelector("a").href = `${location.pathname}?${query}#latency`;
}

function stepAt(p, event) {
  const drawn = p.svg.getBoundingClientRect();
  const share = (event.clientX - drawn.left) / drawn.width;
  return Math.min(Math.max(Math.floor(share * p.steps.length), 0), p.steps.length - 1);
}

function under(event) {
  return event.target.closest?.("[data-lat]") ? plot() : null;
}

addEventListener("pointermove", (event) => {
  const p = dragged >= 0 ? plot() : under(event);
  if (!p) return;
  at = stepAt(p, event);
  if (dragged >= 0 && Math.abs(at - dragged) >= LEAST_STEPS - 1) chosen = [dragged, at];
  showTip(p);
  showChosen(p);
});

addEventListener("pointerdown", (event) => {
  const p = event.button === 0 ? under(event) : null;
  if (!p || event.pointerType === "touch") return;
  chosen = null;
  dragged = stepAt(p, event);
  showChosen(p);
  event.preventDefault(); // no text is selected
  p.box.focus({ preventScroll: true });
});

addEventListener("pointerup", () => (dragged = -1));
document.addEventListener("pointerout", (event) => {
  const p = under(event);
  if (p && dragged < 0 && !p.box.contains(event.relatedTarget)) hideTip(p);
});

addEventListener("keydown", (event) => {
  const p = event.target.matches?.("[data-lat]") ? plot() : null;
  if (!p || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = p.steps.length - 1;
  const before = at < 0 ? last : at;
  const next = { ArrowLeft: before - 1, ArrowRight: before + 1, Home: 0, End: last }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    at = Math.min(Math.max(next, 0), last);
    chosen = event.shiftKey ? [chosen ? chosen[0] : before, at] : null;
    showTip(p);
    showChosen(p);
  } else if (event.key === "Enter" && chosen) location.assign(bar.querySelector("a").href);
  else if (event.key === "Escape") {
    chosen = null;
    showChosen(p);
    hideTip(p);
  }
});

// A live update restores the attributes of the server, so the crosshair and the selection are drawn
// again.
if (bar) {
  bar.querySelector("button").addEventListener("click", () => {
    chosen = null;
    showChosen(plot());
  });
  new MutationObserver(() => {
    const p = plot();
    if (at >= 0 && p.svg.querySelector("[data-cross]").getAttribute("visibility") === "hidden") {
      showTip(p);
    }
    if (chosen && p.svg.querySelector(".brush").getAttribute("visibility") === "hidden") {
      showChosen(p);
    }
  }).observe(document.getElementById("latency"), { attributes: true, subtree: true });
}
