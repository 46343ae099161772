// The page is loaded again each minute: the scroll position stays. Times can be in the local zone.

const PLACE = "leadline-scroll";
const ZONE = "leadline-local-times";

function stored(kind, name, value) {
  try {
    if (value === undefined) return kind.getItem(name);
    kind.setItem(name, value);
  } catch {
    // Storage is off: nothing is remembered.
  }
  return null;
}

const [path, top] = (stored(sessionStorage, PLACE) ?? "").split("|");
if (path === location.pathname && !location.hash) scrollTo(0, Number(top));
addEventListener("pagehide", () =>
  stored(sessionStorage, PLACE, `${location.pathname}|${Math.round(scrollY)}`),
);

const times = [...document.querySelectorAll("time[datetime]")];
const said = times.map((time) => time.textContent);
const button = document.querySelector("[data-local]");
const zone = document.querySelector("[data-zone]");

const inUtc = zone?.textContent;
const useLocal = button?.textContent;
const locale = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;

function show(isLocal) {
  const now = new Date();
  times.forEach((time, index) => {
    const at = new Date(time.dateTime);
    const clock = { hour: "2-digit", minute: "2-digit", timeZoneName: "short" };
    const day = at.toDateString() === now.toDateString() ? {} : { day: "numeric", month: "long" };
    time.textContent = isLocal ? at.toLocaleString(locale, { ...day, ...clock }) : said[index];
    const unit = time.nextSibling;
    if (unit?.nodeType === Node.TEXT_NODE && time.dataset.unit === undefined) {
      time.dataset.unit = unit.textContent.startsWith(" UTC") ? "1" : "";
    }
    if (time.dataset.unit) {
      const rest = unit.textContent.replace(/^ UTC/, "");
      unit.textContent = isLocal ? rest : ` UTC${rest}`;
    }
  });
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  zone.textContent = isLocal ? zone.dataset.localText.replace("%", name) : inUtc;
  button.textContent = isLocal ? button.dataset.utcText : useLocal;
}

if (button && times.length) {
  button.hidden = false;
  let isLocal = stored(localStorage, ZONE) === "1";
  if (isLocal) show(true);
  button.addEventListener("click", () => {
    isLocal = !isLocal;
    stored(localStorage, ZONE, isLocal ? "1" : "");
    show(isLocal);
  });
}
