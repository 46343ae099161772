// Returns the texts of a page whose contrast is too low: see layout_audit.py.
() => {
  const found = new Set();
  const channels = (text) => {
    const parts = text.match(/[\d.]+%?/g).map((p) => (p.endsWith('%') ? parseFloat(p) / 100 : +p));
    // color(srgb r g b / a) has shares, rgb() and rgba() have bytes.
    const scale = text.startsWith('color(') ? 1 : 255;
    return [...parts.slice(0, 3).map((p) => p / scale), parts[3] ?? 1];
  };
  const over = (top, below) => {
    const [a, b] = [top[3], below[3] * (1 - top[3])];
    const alpha = a + b;
    if (!alpha) return [0, 0, 0, 0];
    return [0, 1, 2].map((i) => (top[i] * a + below[i] * b) / alpha).concat(alpha);
  };
  const light = (color) => {
    const linear = color.slice(0, 3).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const grounds = new Map();
  // The color behind the content of an element. Background images, which are lines and arrows, do
  // not count.
  const ground = (e) => {
    if (!e) return [1, 1, 1, 1];
    if (!grounds.has(e)) {
      const own = channels(getComputedStyle(e).backgroundColor);
      grounds.set(e, own[3] === 1 ? own : over(own, ground(e.parentElement)));
    }
    return grounds.get(e);
  };
  const opacities = new Map();
  const opacity = (e) => {
    if (!e) return 1;
    if (!opacities.has(e)) {
      opacities.set(e, +getComputedStyle(e).opacity * opacity(e.parentElement));
    }
    return opacities.get(e);
  };
  const hasText = (e) =>
    e.matches('input:not([type=hidden], [type=checkbox], [type=radio]), textarea, select')
      ? e.value
      : [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  for (const e of document.body.querySelectorAll('*')) {
    if (e.closest('svg, option, .vh, :disabled, [aria-disabled=true]') || !hasText(e)) continue;
    if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const behind = ground(e);
    const style = getComputedStyle(e);
    const color = channels(style.color);
    color[3] *= opacity(e);
    const [a, b] = [light(over(color, behind)), light(behind)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700) ? 3 : 4.5;
    if (ratio < least) {
      const text = (e.textContent || e.value).trim().replace(/\s+/g, ' ').slice(0, 60);
      found.add(`contrast ${ratio.toFixed(2)}: ${e.tagName.toLowerCase()}.${e.className} "${text}"`);
    }
  }
  return [...found].slice(0, 30);
}
