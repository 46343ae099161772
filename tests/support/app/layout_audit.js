// Returns the faults of a page's layout: see layout_audit.py.
([longest, touch, isPhone]) => {
  const found = [];
  const looks = new Map();
  const look = (e) =>
    e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    !e.closest('.vh, [hidden], .defs, .menu:not([open]) > .pop');
  const seen = (e) => {
    if (!looks.has(e)) looks.set(e, look(e));
    return looks.get(e);
  };
  const name = (e) => {
    const text = (e.textContent || '').trim().replace(/\s+/g, ' ').slice(0, 60);
    return `${e.tagName.toLowerCase()}.${e.getAttribute('class') || ''} "${text}"`;
  };
  const scrolls = (e) => e.closest('.scroll, pre, .copy, .log, [role=listbox], .toasts, dialog');

  if (document.documentElement.scrollWidth > innerWidth) {
    found.push(`the page scrolls by ${document.documentElement.scrollWidth - innerWidth} px`);
  }
  // A word in two lines, other than a long one.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const unread = 'svg, script, style, textarea, option, code, .mono';
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const of = node.parentElement;
    if (!node.data.trim() || !of || of.closest(unread) || !seen(of)) continue;
    for (const match of node.data.matchAll(/[^\s\-\/.@_,:=?&]+/g)) {
      if (match[0].length < 2 || match[0].length > longest) continue;
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const rects = [...range.getClientRects()].filter((r) => r.width > 0);
      if (rects.length > 1 && Math.abs(rects[0].top - rects[rects.length - 1].top) > 4) {
        found.push(`broken word ${match[0]} in ${name(of)}`);
      }
    }
  }
  // Text that is cut and has no full text on hover.
  for (const e of document.querySelectorAll('main *, .side *')) {
    if (!seen(e) || scrolls(e) || e.closest('svg')) continue;
    const style = getComputedStyle(e);
    if (style.overflowX === 'visible' || style.overflowX === 'auto') continue;
    if (!['INPUT', 'SELECT', 'TEXTAREA'].includes(e.tagName) && e.scrollWidth > e.clientWidth + 1) {
      const full = e.closest('[title]') || e.querySelector('[title]');
      if (!full && e.innerText.trim()) found.push(`cut text in ${name(e)}`);
    }
  }
  // Content outside its card.
  for (const card of document.querySelectorAll('.panel, .empty, .fact, .dlg')) {
    if (!seen(card)) continue;
    const box = card.getBoundingClientRect();
    for (const e of card.querySelectorAll('*')) {
      if (e.closest('svg') || !seen(e) || scrolls(e) || e.closest('.pop')) continue;
      const own = e.getBoundingClientRect();
      if (own.width && (own.right > box.right + 1 || own.left < box.left - 1)) {
        if (!e.closest('table.bleed, .data, .clipped')) found.push(`outside its card: ${name(e)}`);
      }
    }
  }
  // Neighbours that overlap.
  for (const parent of document.querySelectorAll('main *')) {
    if (parent.closest('svg, .toasts, .bulk, dialog') || !seen(parent)) continue;
    const boxes = [...parent.children]
      .filter((e) => !e.closest('svg') && seen(e) && e.textContent.trim())
      .filter((e) => !['absolute', 'fixed', 'sticky'].includes(getComputedStyle(e).position))
      .map((e) => [e, e.getBoundingClientRect()])
      .filter(([e, r]) => r.width > 1 && r.height > 1 && getComputedStyle(e).display !== 'inline');
    for (let i = 0; i + 1 < boxes.length && i < 400; i += 1) {
      const [a, ra] = boxes[i];
      const [b, rb] = boxes[i + 1];
      const x = Math.min(ra.right, rb.right) - Math.max(ra.left, rb.left);
      const y = Math.min(ra.bottom, rb.bottom) - Math.max(ra.top, rb.top);
      if (x > 2 && y > 2) found.push(`overlap of ${name(a)} and ${name(b)}`);
    }
  }
  if (isPhone) {
    const controls = 'button, select, summary, a.btn, nav a, input:not([type=hidden])';
    for (const e of document.querySelectorAll(controls)) {
      if (!seen(e) || e.closest('p, td small')) continue;
      const label = e.matches('[type=checkbox], [type=radio]') ? e.closest('label, .check, .ck') : null;
      const box = (label || e).getBoundingClientRect();
      if (box.height && Math.round(box.height) < touch) {
        found.push(`${Math.round(box.height)} px high: ${name(e)} ${e.name || ''}`);
      }
    }
  }
  return [...new Set(found)].slice(0, 30);
}
