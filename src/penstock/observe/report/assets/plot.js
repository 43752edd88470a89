// Lines, bars, areas and points over two axes, in SVG. Colours are the page's, so that a change of theme needs no drawing.

const SPACE = "http://www.w3.org/2000/svg";

function shape(parent, name, attributes, words) {
  const made = document.createElementNS(SPACE, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (words !== undefined) made.textContent = words;
  parent.append(made);
  return made;
}

// Sums of the series below, where some are stacked on one another; x runs the same way in all of those.
function stacked(series) {
  const below = new Map();
  return series.map((each) => {
    if (!each.stack) return { ...each, base: null, top: each.y };
    const base = each.x.map((x) => below.get(x) || 0);
    const top = each.y.map((y, i) => base[i] + y);
    each.x.forEach((x, i) => below.set(x, top[i]));
    return { ...each, base, top };
  });
}

function extent(series, spec) {
  let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
  for (const each of series) {
    for (const x of each.edges || each.x) if (!spec.x.log || x > 0) { left = Math.min(left, x); right = Math.max(right, x); }
    for (const y of each.top) if (!spec.y.log || y > 0) { low = Math.min(low, y); high = Math.max(high, y); }
  }
  for (const mark of spec.marks || []) high = Math.max(high, mark.y);
  if (!isFinite(left)) [left, right] = [spec.x.log ? 1 : 0, spec.x.log ? 10 : 1];
  if (!isFinite(low)) [low, high] = [spec.y.log ? 1 : 0, spec.y.log ? 10 : 1];
  return { left, right, low, high };
}

// How far apart neighbouring bars stand.
function pitch(series, log) {
  const xs = [...new Set(series.flatMap((each) => (each.type === "bars" ? each.x : [])))].sort((a, b) => a - b);
  let least = Infinity;
  for (let i = 1; i < xs.length; i++) least = Math.min(least, log ? Math.log(xs[i] / xs[i - 1]) : xs[i] - xs[i - 1]);
  return isFinite(least) ? least : log ? 0.5 : 1;
}

function legend(svg, series, width) {
  if (series.length < 2) return 0;
  let x = 0, y = 8;
  series.forEach((each, place) => {
    const wide = 15 + breadth(each.name) + 18;
    if (x && x + wide > width) { x = 0; y += 18; }
    shape(svg, "rect", { x, y: y - 5, width: 10, height: 10, rx: 2, class: `fill s${place % 8}` });
    shape(svg, "text", { x: x + 15, y: y + 4 }, each.name);
    x += wide;
  });
  return y + 14;
}

function drawPlot(place, spec) {
  const width = place.clientWidth, height = place.clientHeight;
  if (!width || !height) return;
  place.replaceChildren();
  const svg = shape(place, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const series = stacked(spec.series), range = extent(series, spec);
  const top = (legend(svg, series, width) || (spec.y.label ? 12 : 0)) + 10, bottom = height - (spec.x.label ? 40 : 24);
  const bars = series.some((each) => each.type === "bars"), apart = pitch(series, spec.x.log);

  let { left, right, low, high } = range;
  if (bars) [left, right] = spec.x.log ? [left / Math.exp(apart / 2), right * Math.exp(apart / 2)] : [left - apart / 2, right + apart / 2];
  else if (spec.x.log && spec.series[0].type === "points") [left, right] = [left * 0.8, right * 1.25];
  if (left === right) [left, right] = spec.x.log ? [left / 2, right * 2] : [left - 0.5, right + 0.5];
  if (spec.y.log) [low, high] = [low / 1.6, high * 1.6];
  else { if (spec.y.zero || low > 0) low = 0; if (high === low) high = low + 1; high += (high - low) * 0.04; }

  const y = scaled({ ...spec.y, snap: !spec.y.log }, low, high, bottom, top, 34);
  const gutter = Math.ceil(Math.max(24, ...y.ticks.map((tick) => breadth(tick.say) + 10)));
  const x = scaled(spec.x, left, right, gutter, width - 8, spec.x.unit === "whole" ? 42 : 66);

  for (const tick of y.ticks) {
    const at = y.at(tick.value);
    shape(svg, "line", { x1: gutter, x2: width - 8, y1: at, y2: at, class: "rule" });
    shape(svg, "text", { x: gutter - 8, y: at + 4, "text-anchor": "end" }, tick.say);
  }
  for (const tick of x.ticks) {
    const at = x.at(tick.value), half = breadth(tick.say) / 2;
    shape(svg, "line", { x1: at, x2: at, y1: bottom, y2: bottom + 4, class: "axis" });
    const anchor = at + half > width ? "end" : "middle";
    shape(svg, "text", { x: anchor === "end" ? width : at, y: bottom + 17, "text-anchor": anchor }, tick.say);
  }
  shape(svg, "line", { x1: gutter, x2: width - 8, y1: bottom, y2: bottom, class: "axis" });
  if (spec.x.label) shape(svg, "text", { x: width - 8, y: height - 4, "text-anchor": "end" }, spec.x.label);
  if (spec.y.label && series.length < 2) shape(svg, "text", { x: 0, y: 9 }, spec.y.label);

  const frame = { x, y, bottom, top, gutter, width, apart, floor: spec.y.log ? y.low : Math.max(0, y.low) };
  series.forEach((each, at) => DRAW[each.type](shape(svg, "g", { class: `s${at % 8}` }), each, frame));
  for (const mark of spec.marks || []) {
    const at = y.at(mark.y);
    shape(svg, "line", { x1: gutter, x2: width - 8, y1: at, y2: at, class: "mark" });
    shape(svg, "text", { x: width - 10, y: at - 5, "text-anchor": "end", class: "mark-text" }, mark.label);
  }
  readable(place, svg, spec, series, frame);
}

const DRAW = {
  bars(group, each, { x, y, apart, floor, bottom }) {
    const d = [];
    for (let i = 0; i < each.x.length; i++) {
      if (each.y[i] <= 0) continue;
      const middle = each.x[i];
      const [a, b] = x.log ? [middle / Math.exp(apart * 0.38), middle * Math.exp(apart * 0.38)] : [middle - apart * 0.38, middle + apart * 0.38];
      let left = x.at(a), right = x.at(b);
      if (right - left < 1) right = left + 1;
      if (right - left > 44) [left, right] = [(left + right) / 2 - 22, (left + right) / 2 + 22];
      const foot = each.base && each.base[i] > 0 ? y.at(each.base[i]) : bottom, head = Math.min(foot - 0.5, y.at(each.top[i]));
      d.push(`M${left.toFixed(1)} ${foot.toFixed(1)}V${head.toFixed(1)}H${right.toFixed(1)}V${foot.toFixed(1)}Z`);
    }
    shape(group, "path", { d: d.join(""), class: "fill" });
  },
  bins(group, each, { x, y, bottom }) {
    const d = [];
    for (let i = 0; i < each.y.length; i++) {
      if (each.y[i] <= 0) continue;
      const left = x.at(each.edges[i]), right = Math.max(left + 1, x.at(each.edges[i + 1]) - 1);
      d.push(`M${left.toFixed(1)} ${bottom}V${Math.min(bottom - 1, y.at(each.y[i])).toFixed(1)}H${right.toFixed(1)}V${bottom}Z`);
    }
    shape(group, "path", { d: d.join(""), class: "fill" });
  },
  line(group, each, { x, y, bottom }) {
    const seen = each.x.map((value, i) => [x.at(value), each.y[i]]).filter(([, value]) => !y.log || value > 0).map(([at, value]) => [at.toFixed(1), y.at(value).toFixed(1)]);
    if (!seen.length) return;
    const d = "M" + seen.map((point) => point.join(" ")).join("L");
    if (each.fill) shape(group, "path", { d: `${d}V${bottom}H${seen[0][0]}Z`, class: "area" });
    shape(group, "path", { d, class: "line" });
    if (each.dots && seen.length <= 80) shape(group, "path", { d: seen.map(([a, b]) => `M${a} ${b}h.01`).join(""), class: "dots" });
  },
  area(group, each, { x, y, bottom }) {
    const up = [], down = [], at = (value) => Math.min(bottom, y.at(value)).toFixed(1);
    each.x.forEach((value, i) => {
      const next = x.at(i + 1 < each.x.length ? each.x[i + 1] : value).toFixed(1), here = x.at(value).toFixed(1);
      up.push(`${here} ${at(each.top[i])}`, `${next} ${at(each.top[i])}`);
      down.push(`${here} ${at(each.base[i])}`, `${next} ${at(each.base[i])}`);
    });
    shape(group, "path", { d: `M${up.join("L")}L${down.reverse().join("L")}Z`, class: "stack" });
  },
  points(group, each, { x, y }) {
    shape(group, "path", { d: each.x.map((value, i) => `M${x.at(value).toFixed(1)} ${y.at(each.y[i]).toFixed(1)}h.01`).join(""), class: "points" });
  },
};

// The value under the pointer, or one further with each arrow key.
function readable(place, svg, spec, series, { x, y, bottom, top }) {
  const spots = [...new Set(series.flatMap((each) => each.x))].sort((a, b) => a - b).filter((value) => !x.log || value > 0);
  const guide = shape(svg, "line", { y1: top, y2: bottom, class: "guide", visibility: "hidden" });
  const ring = shape(svg, "circle", { r: 4, class: "ring", visibility: "hidden" });
  let chosen = -1;
  const said = (value, each, i) => (each.edges ? `${number(each.edges[i])} to ${number(each.edges[i + 1])}` : (SAY[spec.x.unit] || number)(value));

  function show(spot, clientX, clientY) {
    chosen = spot;
    const value = spots[spot], at = x.at(value), rows = [];
    let head = "", height = null;
    for (const each of series) {
      const i = each.type === "area" ? lastUpTo(each.x, value) : each.x.indexOf(value);
      if (i < 0) continue;
      const name = spec.x.label || "";
      head = head || `${name} ${said(value, each, i)}${spec.labels ? `, ${spec.labels[i] || ""}` : ""}`;
      if (each.y[i] || series.length === 1) rows.push([each.name, (SAY[spec.y.unit] || number)(each.y[i])]);
      if (each.top[i] > 0 || !y.log) height = y.at(each.top[i]);
    }
    guide.setAttribute("x1", at); guide.setAttribute("x2", at); guide.setAttribute("visibility", "visible");
    if (height !== null) { ring.setAttribute("cx", at); ring.setAttribute("cy", height); }
    ring.setAttribute("visibility", height === null ? "hidden" : "visible");
    const box = place.getBoundingClientRect();
    tell(head, rows, clientX ?? box.left + at, clientY ?? box.top + (height ?? top));
  }
  function hide() {
    guide.setAttribute("visibility", "hidden"); ring.setAttribute("visibility", "hidden"); chosen = -1; hush();
  }
  place.onpointermove = (event) => {
    if (!spots.length) return;
    const across = event.clientX - place.getBoundingClientRect().left;
    let best = 0;
    for (let i = 1; i < spots.length; i++) if (Math.abs(x.at(spots[i]) - across) < Math.abs(x.at(spots[best]) - across)) best = i;
    show(best, event.clientX, event.clientY);
  };
  place.onpointerleave = place.onblur = hide;
  place.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step || !spots.length) return;
    event.preventDefault();
    show(Math.max(0, Math.min(spots.length - 1, chosen < 0 ? (step > 0 ? 0 : spots.length - 1) : chosen + step)));
  };
}

function lastUpTo(values, value) {
  let low = 0, high = values.length;
  while (low < high) { const middle = (low + high) >> 1; if (values[middle] <= value) low = middle + 1; else high = middle; }
  return low - 1;
}
