// Puts every drawing into its place, again when the place or the colours change, and says what is under the pointer.

const tip = document.getElementById("tip");

function tell(head, rows, x, y) {
  tip.replaceChildren();
  const title = document.createElement("b");
  title.textContent = head;
  tip.append(title);
  for (const [name, value] of rows) {
    const line = document.createElement("div");
    for (const words of [name, value]) { const part = document.createElement("span"); part.textContent = words; line.append(part); }
    tip.append(line);
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), room = document.documentElement;
  const left = x + 14 + box.width > room.clientWidth ? x - box.width - 14 : x + 14;
  tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, Math.min(y + 14, room.clientHeight - box.height - 4))}px)`;
}

function hush() { tip.hidden = true; }

function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function colour(name) {
  const digits = css(name).slice(1);
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

const drawings = JSON.parse(document.getElementById("data").textContent);
const draw = { xy: drawPlot, heat: drawHeat, timeline: drawTimeline };
const places = [...document.querySelectorAll("[data-chart]")];

function drawOne(place) {
  const spec = drawings[place.dataset.chart];
  if (!spec || !place.clientWidth) return;
  draw[spec.kind](place, spec);
  place.dataset.done = "true";
}

const drawAll = () => places.forEach(drawOne);
for (const place of places) if (drawings[place.dataset.chart]?.square) place.classList.add("square");
drawAll();
const widths = new Map(places.map((place) => [place, place.clientWidth]));
const watcher = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (widths.get(target) !== target.clientWidth) { widths.set(target, target.clientWidth); drawOne(target); }
  }
});
places.forEach((place) => watcher.observe(place));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// Paper is light, and as wide as it is.
addEventListener("beforeprint", () => { document.documentElement.dataset.print = "true"; drawAll(); });
addEventListener("afterprint", () => { delete document.documentElement.dataset.print; drawAll(); });
addEventListener("scroll", hush, { passive: true });
