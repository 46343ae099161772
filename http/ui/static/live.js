// Keeps a screen current in every role of the server: it asks for what it shows every few seconds,
// with the tag of its last answer (304: nothing changed). The event stream has only what its own
// process stores, so it only makes the screen ask sooner. What changed is swapped in place and
// marked; nothing is moved under the pointer. A screen that gets no answer says so.

const ASK_MS = 3_000;
const SOON_MS = 250; // gathers the events of one moment
const APART_MS = 1_000; // the least time between two asks
const RETRY_MS = 5_000;
const STREAM_RETRY_MS = 30_000;
const TINT_MS = 1_600;
const ROWS_MOST = 100;

const page = document.body.dataset;
const shown = document.documentElement.dataset; // zone and clock of the user
const banner = document.getElementById("stream");
const known = new Map(); // status of monitors, as the stream told it
let source = null;
let tag = "-"; // matches no tag
let askedAt = 0;
let answered = false;
let shownAt = page.at;
let lostAt = 0;
let nextAt = 0;
let timer = 0;
let asking = false;
let again = false;
let ended = false; // signed out: there is nothing to try again
let waiting = null; // what is held back while the pointer is over what it would move

// Asks after a time, or at the time that is already set if that is sooner.
function askIn(ms) {
  if (ended || document.hidden) return;
  if (asking) {
    again ||= ms < ASK_MS;
    return;
  }
  const at = Math.max(Date.now() + ms, askedAt + APART_MS);
  if (timer && nextAt <= at) return;
  clearTimeout(timer);
  nextAt = at;
  timer = setTimeout(ask, at - Date.now());
}

function listen() {
  if (ended || document.hidden || source) return;
  const stream = new EventSource(page.events);
  source = stream;
  stream.onopen = showState;
  stream.onerror = () => {
    askIn(SOON_MS); // whether the server still answers
    if (stream.readyState !== EventSource.CLOSED) return; // the browser connects again
    if (source === stream) source = null;
    setTimeout(listen, STREAM_RETRY_MS);
  };
  stream.addEventListener("status", (event) => {
    const { project_id, monitor_id, status } = JSON.parse(event.data);
    if (project_id !== page.project) return;
    if (page.monitor && monitor_id !== page.monitor) return;
    // On a list, results that change no status wait for the next ask.
    const row = document.getElementById(`r-${monitor_id}`);
    const before = row?.dataset.stamp?.split(" ")[0] ?? known.get(monitor_id) ?? "up";
    known.set(monitor_id, status);
    if (!page.rows || before !== status) askIn(SOON_MS);
  });
  // Somebody wrote something of this project, or of any one that the screen of several shows.
  stream.addEventListener("edit", (event) => {
    if (!page.project || JSON.parse(event.data).project_id === page.project) askIn(SOON_MS);
  });
}

function rest() {
  source?.close();
  source = null;
  clearTimeout(timer);
  timer = 0;
}

function wake() {
  listen();
  askIn(0);
}

function lose() {
  if (ended || document.hidden) return;
  lostAt ||= Date.now();
  showState();
}

setInterval(() => lostAt && !document.hidden && showState(), 1_000);

function seconds(ms) {
  const all = Math.max(Math.round(ms / 1_000), 0);
  return all < 100 ? `${all}\u202fs` : `${Math.floor(all / 60)}\u202fmin`;
}

function showState() {
  const live = !ended && lostAt === 0 && (answered || source?.readyState === EventSource.OPEN);
  for (const spot of document.querySelectorAll("[data-stream]")) {
    spot.classList.toggle("on", live);
    const time = spot.querySelector("time");
    if (time) spot.replaceChildren(live ? "Live · " : "As of ", time);
  }
  if (!lostAt) return;
  const text = document.createElement("span");
  const strong = document.createElement("b");
  strong.textContent = `Live updates lost ${seconds(Date.now() - lostAt)} ago.`;
  const next = asking ? "Reconnecting." : `Reconnecting in ${seconds(nextAt - Date.now())}.`;
  text.append(strong, ` The data shown is from ${shownAt}. ${next}`);
  const now = document.createElement("button");
  now.className = "btn";
  now.type = "button";
  now.textContent = "Reconnect now";
  now.addEventListener("click", ask);
  show("lost", text, banner.querySelector("button") ?? now);
}

function sayAgain(changed) {
  const strong = document.createElement("b");
  strong.textContent = "Live updates restored.";
  const many = changed === 1 ? "1 thing changed" : `${changed} things changed`;
  show("again", strong, changed ? ` ${many} while updates were lost; marked.` : "");
  setTimeout(() => banner.dataset.kind === "again" && hide(), 6_000);
}

function show(kind, ...parts) {
  banner.className = `banner ${kind}`;
  banner.hidden = false;
  // A screen reader announces it once, not every second.
  banner.setAttribute("aria-live", banner.dataset.kind === kind ? "off" : "polite");
  banner.dataset.kind = kind;
  banner.replaceChildren(...parts);
}

function hide() {
  banner.hidden = true;
  banner.dataset.kind = "";
  banner.replaceChildren();
}

// The URL of the list with its filter, order and page, and the shown rows. The answer also contains
// shown rows that are on another page now; a row that it lacks was deleted.
function address() {
  const rows = [...document.querySelectorAll("tr[data-live], tr[data-shown]")].slice(0, ROWS_MOST);
  const query = new URLSearchParams(location.search);
  for (const row of rows) {
    const key = row.dataset.key ? `~${row.dataset.key}` : "";
    query.append("shown", row.id.slice(2) + key);
  }
  return `${page.rows ?? location.pathname}?${query}`;
}

async function ask() {
  if (asking || ended) return;
  clearTimeout(timer);
  timer = 0;
  asking = true;
  again = false;
  askedAt = Date.now();
  let next = ASK_MS;
  try {
    const answer = await fetch(address(), {
      headers: { Accept: "text/html", "If-None-Match": tag },
      cache: "no-store",
    });
    if (answer.status === 404) return sayGone();
    if (new URL(answer.url).pathname.endsWith("/sign-in")) return signedOut();
    // Another screen does not contain the rows of this one.
    if (answer.redirected) throw new Error("redirected");
    if (answer.status !== 304 && !answer.ok) throw new Error(`${answer.status}`);
    const wasLost = lostAt !== 0;
    answered = true;
    lostAt = 0;
    const changed = answer.status === 304 ? stay(answer) : take(await answer.text());
    tag = answer.headers.get("ETag") ?? "-";
    if (wasLost) sayAgain(changed);
    showState();
  } catch {
    next = RETRY_MS;
    tag = "-";
    lose();
  } finally {
    asking = false;
    askIn(again ? SOON_MS : next);
    if (lostAt) showState();
  }
}

function take(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  compare(fresh);
  return swap(fresh);
}

// Nothing changed: the data shown is that of the time of this answer.
function stay(answer) {
  const at = new Date(answer.headers.get("Date") ?? NaN);
  if (!Number.isNaN(at.getTime())) {
    const iso = at.toISOString();
    shownAt = `${clockOf(at)} ${shown.zoneWord}`;
    for (const time of document.querySelectorAll("[data-stream] time")) {
      time.dateTime = iso;
      time.textContent = shownAt;
    }
  }
  return 0;
}

// The time in the zone and with the clock of the user, as the server writes it.
function clockOf(at) {
  const [hour12, digits] = [shown.hours === "12", "2-digit"];
  const parts = { hour: hour12 ? "numeric" : digits, minute: digits, second: digits };
  return at.toLocaleTimeString("en-GB", { ...parts, hour12, timeZone: shown.zone });
}

function signedOut() {
  rest();
  ended = true;
  lostAt = 0;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Sign in again";
  show("lost", `You are signed out. The data shown is from ${shownAt}. `, link);
  showState();
  return 0;
}

// Offers to reload the list if rows are new, deleted or on another page. Rows are not inserted, as
// that would move all rows below them. A deleted row keeps its place, with another style.
function compare(fresh) {
  const mine = [...document.querySelectorAll("tr[data-live]")];
  const { listed, elsewhere } = listing(fresh);
  for (const row of mine) {
    row.classList.toggle("gone", !listed.has(row.id) && !elsewhere.has(row.id));
  }
  const came = [...listed].some((id) => !document.getElementById(id));
  const left = mine.some((row) => !listed.has(row.id));
  if (came || left) {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Reload list";
    show("changes", "The list has changed. ", link);
  } else if (banner.dataset.kind === "changes") hide();
}

// The rows of the page of the list, and shown rows that are on another page. An answer with the
// changed rows only names them.
function listing(fresh) {
  const named = fresh.querySelector("[data-listed]")?.dataset;
  if (named) {
    const ids = (text) => new Set(text.split(" ").map((uid) => `r-${uid}`));
    return { listed: named.listed ? ids(named.listed) : new Set(), elsewhere: ids(named.elsewhere) };
  }
  const rows = [...fresh.querySelectorAll("tr[data-live]")];
  const away = rows.filter((row) => row.closest("#elsewhere"));
  return {
    listed: new Set(rows.filter((row) => !away.includes(row)).map((row) => row.id)),
    elsewhere: new Set(away.map((row) => row.id)),
  };
}

// The object of the screen was deleted, or the user cannot see it any more.
function sayGone() {
  rest();
  ended = true;
  lostAt = 0;
  show("lost", `It was deleted. The data shown is from ${shownAt}.`);
  showState();
  return 0;
}

function swap(fresh) {
  let changed = 0;
  document.title = fresh.title || document.title;
  for (const next of fresh.querySelectorAll("[data-live]")) {
    const old = document.getElementById(next.id);
    if (!old) continue;
    if ("calm" in old.dataset && moves(old, next)) {
      waiting = fresh;
      continue;
    }
    const before = old.dataset.stamp;
    morph(old, next);
    if (before !== undefined && before !== next.dataset.stamp) {
      changed += 1;
      old.classList.add("changed");
      setTimeout(() => old.classList.remove("changed"), TINT_MS);
    }
  }
  const time = document.querySelector("[data-stream] time");
  if (time) shownAt = time.textContent;
  showState();
  return changed;
}

// Returns whether a swap would move the element under the pointer.
function moves(old, next) {
  return document.querySelector("main .panel:hover") !== null && old.innerHTML !== next.innerHTML;
}

document.querySelector("main").addEventListener("pointerout", () => {
  requestAnimationFrame(() => {
    if (waiting && !document.querySelector("main .panel:hover")) {
      const fresh = waiting;
      waiting = null;
      for (const next of fresh.querySelectorAll("[data-calm]")) {
        const old = document.getElementById(next.id);
        if (old) morph(old, next);
      }
    }
  });
});

// Changes an element to equal another one and keeps all equal parts, so that the focus, unfolded
// parts and the element under the pointer stay.
function morph(old, next) {
  for (const { name } of [...old.attributes]) {
    if (name !== "open" && name !== "class" && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const olds = [...old.childNodes];
  const nexts = [...next.childNodes];
  nexts.forEach((node, index) => {
    const twin = olds[index];
    if (!twin) old.append(node);
    else if (twin.nodeType !== node.nodeType || twin.nodeName !== node.nodeName) {
      twin.replaceWith(node);
    } else if (twin.nodeType === Node.ELEMENT_NODE) morph(twin, node);
    else if (twin.data !== node.data) twin.data = node.data;
  });
  for (const extra of olds.slice(nexts.length)) extra.remove();
}

// A hidden tab does not ask.
document.addEventListener("visibilitychange", () => (document.hidden ? rest() : wake()));
addEventListener("pagehide", rest);
addEventListener("pageshow", (event) => event.persisted && wake());
listen();
askIn(ASK_MS);
