"use strict";
/* What every map does: zoom, move, name what is under the pointer or was reached by the arrow keys, list it as a table.
   The page that includes this says what there is: D.focus, D.scale, D.length, D.corner; lines(u), under(event), facts(i),
   mark(i), places() -> [[x, y], ...], heads, row(i), total. */
const D = JSON.parse(document.getElementById("data").textContent);
const svg = document.getElementById("map"), told = document.getElementById("told"), bar = document.getElementById("bar");
const home = svg.viewBox.baseVal, full = { x: 0, y: 0, w: home.width, h: home.height };
const start = { x: D.focus[0], y: D.focus[1], w: D.focus[2], h: D.focus[3] };
let view = { ...start }, drag = null, chosen = -1, known = null, paper = false;
const some = v => v.toLocaleString("en"), perPixel = () => Math.max(view.w / svg.clientWidth, view.h / svg.clientHeight);
const node = (name, text) => Object.assign(document.createElement(name), { textContent: text });
function show() {
  if (!svg.clientWidth || !svg.clientHeight) return;  /* opened out of sight: drawn when it has a size */
  home.x = view.x; home.y = view.y; home.width = view.w; home.height = view.h;
  const u = perPixel();
  lines(u);
  /* the scale is part of the drawing, so that it stays right on paper; on a screen it makes use of the room beside that */
  const [aside, below] = paper ? [0, 0] : [svg.clientWidth * u - view.w, svg.clientHeight * u - view.h].map(v => Math.max(v, 0) / 2);
  const want = 140 * u / D.scale, power = 10 ** Math.floor(Math.log10(want));
  const length = [5, 2, 1].map(m => m * power).find(v => v <= want), wide = length * D.scale, room = Math.max(wide, 92 * u);
  const left = D.corner === "right" ? view.x + view.w + aside - 16 * u - room : view.x - aside + 16 * u;
  const low = view.y + view.h + below - 18 * u, [back, line, text] = bar.children;
  const set = (to, values) => Object.entries(values).forEach(([name, value]) => to.setAttribute(name, value));
  text.textContent = (D.length === "km" && length < 1 ? Math.round(length * 1000) + " m" : some(length) + " " + D.length) + "   N ↑";
  set(text, { x: left, y: low - 6 * u, "font-size": 13 * u });
  set(line, { x: left, y: low, width: wide, height: 4 * u });
  set(back, { x: left - 7 * u, y: low - 22 * u, width: room + 14 * u, height: 33 * u });
}
function zoom(factor, x, y) {
  const f = Math.max(factor, full.w / 20000 / view.w);
  view = { x: x - (x - view.x) * f, y: y - (y - view.y) * f, w: view.w * f, h: view.h * f };
  if (view.w > 1.05 * full.w && view.h > 1.05 * full.h) view = { ...full };
  show();
}
function at(event) {
  const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [p.x, p.y];
}
const middle = () => [view.x + view.w / 2, view.y + view.h / 2];
function tell(i) {
  if (i === chosen) return;
  chosen = i;
  mark(i);
  if (i < 0) { told.textContent = ""; return; }
  const list = document.createElement("dl");
  for (const [name, value] of facts(i)) list.append(node("dt", name), node("dd", value));
  told.replaceChildren(list);
}
function beside(x, y) {
  known ??= places();
  const from = chosen < 0 ? middle() : known[chosen];
  let best = -1, least = Infinity;
  known.forEach((p, i) => {
    if (!p || i === chosen) return;
    const a = p[0] - from[0], b = p[1] - from[1], along = a * x + b * y, across = Math.abs(a * y) + Math.abs(b * x);
    const far = chosen < 0 ? Math.hypot(a, b) : along <= across / 2 ? Infinity : along + across;
    if (far < least) { least = far; best = i; }
  });
  if (best < 0) return;
  tell(best);
  const [a, b] = known[best];
  if (a < view.x || b < view.y || a > view.x + view.w || b > view.y + view.h) { view.x = a - view.w / 2; view.y = b - view.h / 2; show(); }
}
svg.addEventListener("keydown", e => {
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
  if (way && e.shiftKey) { view.x += way[0] * view.w / 8; view.y += way[1] * view.h / 8; show(); }
  else if (way) beside(...way);
  else if (e.key === "+" || e.key === "=") zoom(.6, ...(chosen < 0 || !known ? middle() : known[chosen]));
  else if (e.key === "-") zoom(1 / .6, ...middle());
  else if (e.key === "0") { view = { ...start }; show(); }
  else if (e.key === "Escape") tell(-1);
  else return;
  e.preventDefault();
});
svg.addEventListener("wheel", e => { e.preventDefault(); zoom(Math.exp(e.deltaY * .0015), ...at(e)); }, { passive: false });
svg.addEventListener("pointerdown", e => { drag = [e.clientX, e.clientY, view.x, view.y]; svg.setPointerCapture(e.pointerId); svg.classList.add("drag"); });
for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { drag = null; svg.classList.remove("drag"); });
svg.addEventListener("pointermove", e => {
  if (!drag) { tell(under(e)); return; }
  const s = perPixel();
  view.x = drag[2] - (e.clientX - drag[0]) * s; view.y = drag[3] - (e.clientY - drag[1]) * s;
  show();
});
document.getElementById("in").onclick = () => zoom(.6, ...middle());
document.getElementById("out").onclick = () => zoom(1 / .6, ...middle());
document.getElementById("all").onclick = () => { view = { ...full }; show(); };
document.getElementById("most").onclick = () => { view = { ...start }; show(); };
document.getElementById("list").addEventListener("toggle", e => {
  const place = e.target.querySelector("div");
  if (!e.target.open || place.firstChild) return;
  const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  for (const name of heads) head.append(Object.assign(node("th", name), { scope: "col" }));
  for (let i = 0; i < Math.min(total, 2000); i++) {
    const line = body.insertRow();
    row(i).forEach((value, j) => line.append(j ? node("td", value) : Object.assign(node("th", value), { scope: "row" })));
  }
  if (total > 2000) table.createCaption().textContent = "The first 2,000 of " + some(total) + "; the files written beside the map have all.";
  place.append(table);
});
new ResizeObserver(show).observe(svg);
addEventListener("beforeprint", () => { tell(-1); paper = true; show(); });
addEventListener("afterprint", () => { paper = false; show(); });
