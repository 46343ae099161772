// Keeps a page as live as it says it is. What changed is swapped in place and marked for a moment;
// nothing is moved under the pointer; a stream that is lost is told, and the page not called live.

const LOST_AFTER_MS = 60_000; // the stream pings every 25 s
const RETRY_MS = 5_000;
const GATHER_MS = 250;
const TINT_MS = 1_600;
const ROWS_MOST = 50;

const page = document.body.dataset;
const banner = document.getElementById("stream");
const wanted = new Set();
let source = null;
let heardAt = Date.now();
let shownAt = page.at;
let lostAt = 0;
let retryAt = 0;
let gathering = 0;
let asking = false;
let wholly = false; // the next look is at all of the page, whoever asks for it
let ended = false; // signed out: there is nothing to try again
let waiting = null; // what is held back while the pointer is over what it would move

function connect() {
  retryAt = 0;
  source?.close();
  source = new EventSource(page.events);
  source.onopen = () => {
    heardAt = Date.now();
    const wasLost = lostAt !== 0;
    lostAt = 0;
    refresh(true).then((changed) => wasLost && sayAgain(changed));
    showState();
  };
  source.onerror = () => lose();
  source.addEventListener("ping", () => {
    heardAt = Date.now();
    refresh(true);
  });
  source.addEventListener("status", (event) => {
    heardAt = Date.now();
    const data = JSON.parse(event.data);
    if (data.project_id !== page.project) return;
    if (page.monitor && data.monitor_id !== page.monitor) return;
    wanted.add(data.monitor_id);
    gathering ||= setTimeout(() => refresh(false), GATHER_MS);
  });
}

function lose() {
  if (ended) return;
  source?.close();
  source = null;
  lostAt ||= Date.now();
  retryAt ||= Date.now() + RETRY_MS;
  showState();
}

setInterval(() => {
  if (source && Date.now() - heardAt > LOST_AFTER_MS) lose();
  if (!source && retryAt && Date.now() >= retryAt) connect();
  if (lostAt) showState();
}, 1_000);

function seconds(ms) {
  const all = Math.max(Math.round(ms / 1_000), 0);
  return all < 100 ? `${all}\u202fs` : `${Math.floor(all / 60)}\u202fmin`;
}

function showState() {
  const live = !ended && lostAt === 0 && source?.readyState === EventSource.OPEN;
  for (const spot of document.querySelectorAll("[data-stream]")) {
    spot.classList.toggle("on", live);
    const time = spot.querySelector("time");
    if (time) spot.replaceChildren(live ? "Live · " : "As of ", time);
  }
  if (!lostAt) return;
  const text = document.createElement("span");
  const strong = document.createElement("b");
  strong.textContent = `Live updates lost ${seconds(Date.now() - lostAt)} ago.`;
  const next = retryAt ? `Reconnecting in ${seconds(retryAt - Date.now())}.` : "Reconnecting.";
  text.append(strong, ` The data shown is from ${shownAt} UTC. ${next}`);
  const now = document.createElement("button");
  now.className = "button";
  now.type = "button";
  now.textContent = "Reconnect now";
  now.addEventListener("click", connect);
  show("lost", text, banner.querySelector("button") ?? now);
}

function sayAgain(changed) {
  const strong = document.createElement("b");
  strong.textContent = "Live updates restored.";
  const many = changed === 1 ? "1 thing changed" : `${changed} things changed`;
  show("again", strong, changed ? ` ${many} while updates were lost; marked.` : "");
  setTimeout(() => lostAt || hide(), 6_000);
}

function show(kind, ...parts) {
  banner.className = `banner ${kind}`;
  banner.hidden = false;
  // A reader is told once, and not each second anew.
  banner.setAttribute("aria-live", banner.dataset.kind === kind ? "off" : "polite");
  banner.dataset.kind = kind;
  banner.replaceChildren(...parts);
}

function hide() {
  banner.hidden = true;
  banner.dataset.kind = "";
  banner.replaceChildren();
}

// Fetches what changed, or the whole page; answers how many stamps changed.
async function refresh(whole) {
  clearTimeout(gathering);
  gathering = 0;
  wholly ||= whole;
  if (asking) return 0; // who asks now looks once more when it has its answer
  asking = true;
  try {
    const ids = [...wanted];
    const some = !wholly && page.rows && ids.length <= ROWS_MOST;
    wanted.clear();
    wholly = false;
    const query = ids.map((id) => `monitor=${id}`).join("&");
    const answer = await fetch(some ? `${page.rows}?${query}` : location.href, {
      headers: { Accept: "text/html" },
    });
    if (new URL(answer.url).pathname === "/sign-in") return signedOut();
    if (!answer.ok) return answer.status === 404 ? sayGone() : 0;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!some) compare(fresh);
    return swap(fresh);
  } catch {
    return 0; // the stream says so itself
  } finally {
    asking = false;
    if (wholly || wanted.size > 0) gathering ||= setTimeout(() => refresh(false), GATHER_MS);
  }
}

function signedOut() {
  source?.close();
  source = null;
  ended = true;
  lostAt = 0;
  retryAt = 0;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Sign in again";
  show("lost", `You are signed out. The data shown is from ${shownAt} UTC. `, link);
  showState();
  return 0;
}

// Rows that came or went: they are told and not inserted, as that would move all below them. What
// is no longer there keeps its place, and no longer looks like something that is watched.
function compare(fresh) {
  const mine = [...document.querySelectorAll("tr[data-live]")];
  const theirs = [...fresh.querySelectorAll("tr[data-live]")];
  for (const row of mine) row.classList.toggle("gone", !fresh.getElementById(row.id));
  const came = theirs.some((row) => !document.getElementById(row.id));
  if ((came || mine.some((row) => row.classList.contains("gone"))) && !lostAt) {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Reload list";
    show("changes", "The list has changed. ", link);
  }
}

// The whole page is about something that was deleted meanwhile, or is hidden from us now.
function sayGone() {
  ended = true;
  source?.close();
  source = null;
  show("lost", `It was deleted. The data shown is from ${shownAt} UTC.`);
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
  if (time) shownAt = time.textContent.replace(" UTC", "");
  showState();
  return changed;
}

// Whether swapping would move what the pointer is over.
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

// Makes one element like another, keeping every part that is the same: focus, what is unfolded and
// what the pointer is over stay.
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

addEventListener("pagehide", () => source?.close());
addEventListener("pageshow", (event) => event.persisted && connect());
connect();
