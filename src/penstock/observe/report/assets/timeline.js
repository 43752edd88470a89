// The timeline: spans on lanes, drawn on a canvas. Only what is in view is looked at, and what is narrower than a pixel
// is drawn once for the pixel: a hundred thousand spans move as smoothly as ten.

const ROW = 18, GAP = 4, AXIS = 24, SCROLL = 14;

function drawTimeline(place, spec) {
  const first = !place.view;
  if (first) unpack(place, spec);
  const view = place.view, canvas = place.querySelector("canvas");
  const ratio = Math.min(3, window.devicePixelRatio || 1) * (document.documentElement.dataset.print ? 2 : 1);
  const width = place.clientWidth, height = place.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const [ink, soft, line, paper, faint] = ["--ink", "--soft", "--line", "--paper", "--faint"].map(css);
  const fills = {};
  for (const kind of spec.kinds) fills[kind] = css(`--k-${kind}`);
  const gutter = (view.gutter = width < 520 ? 66 : 92), wide = (view.wide = width - gutter);
  const scale = wide / (view.to - view.from), at = (time) => gutter + (time - view.from) * scale;
  pen.font = "11.5px system-ui, sans-serif";
  pen.textBaseline = "middle";

  const step = niceStep((view.to - view.from) / 1e6, Math.max(2, wide / 90));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const unit = view.to / 1e6 < 1 ? ["ms", 1e3, Math.max(0, digits - 3)] : ["s", 1, digits];
  for (let k = Math.ceil(view.from / 1e6 / step); k * step <= view.to / 1e6; k++) {
    const x = at(k * step * 1e6);
    pen.fillStyle = line;
    pen.fillRect(Math.round(x), AXIS - 4, 1, height - AXIS - SCROLL + 4);
    pen.fillStyle = soft;
    const words = `${(k * step * unit[1]).toFixed(unit[2])} ${unit[0]}`;
    pen.fillText(words, Math.min(x + 4, width - pen.measureText(words).width), 10);
  }
  let lane = "";
  view.rows.forEach((row, k) => {
    const y = AXIS + k * (ROW + GAP);
    if (row.lane !== lane) {
      lane = row.lane;
      pen.fillStyle = ink;
      pen.fillText(lane.length > 14 ? `${lane.slice(0, 13)}…` : lane, 0, y + ROW / 2 + 1, gutter - 8);
    }
    pen.save();
    pen.beginPath();
    pen.rect(gutter, y, wide, ROW);
    pen.clip();
    spans(pen, row, view, at, y, fills, spec, paper, ink);
    pen.restore();
  });
  const track = height - 8;
  pen.fillStyle = line;
  pen.fillRect(gutter, track, wide, 4);
  pen.fillStyle = faint;
  pen.fillRect(gutter + (view.from / spec.end) * wide, track, Math.max(6, ((view.to - view.from) / spec.end) * wide), 4);
  place.dataset.from = view.from / 1e6;
  place.dataset.to = view.to / 1e6;
  if (first) handle(place, spec);
}

// Columns with differences become columns with times; they are as good as sorted by their ends, too.
function unpack(place, spec) {
  const rows = spec.rows.map((row) => {
    const begin = new Float64Array(row.begin.length), end = new Float64Array(row.begin.length);
    let time = 0;
    row.begin.forEach((more, i) => { time += more; begin[i] = time; end[i] = time + row.length[i]; });
    return { ...row, begin, end };
  });
  place.view = { from: 0, to: spec.end, rows, gutter: 92, wide: 1 };
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  place.replaceChildren(canvas);
}

function firstAfter(row, time) {
  let low = 0, high = row.end.length;
  while (low < high) { const middle = (low + high) >> 1; if (row.end[middle] < time) low = middle + 1; else high = middle; }
  return low;
}

function spans(pen, row, view, at, y, fills, spec, paper, ink) {
  // A run of pixels with spans narrower than a pixel, all of a kind, is one rectangle.
  let from = 0, to = -1, there = "";
  const flush = () => { if (to > from) { pen.fillStyle = fills[there]; pen.fillRect(from, y, to - from, ROW); } to = -1; };
  for (let i = firstAfter(row, view.from); i < row.begin.length && row.begin[i] <= view.to; i++) {
    const left = at(row.begin[i]), right = at(row.end[i]), kind = spec.kinds[row.name[i]];
    if (right - left < 1) {
      const pixel = Math.floor(left);
      if (pixel < to) continue; // the pixel is taken
      if (kind === there && pixel === to) to = pixel + 1;
      else { flush(); from = pixel; to = pixel + 1; there = kind; }
      continue;
    }
    flush();
    const start = Math.max(left, view.gutter - 2);
    pen.fillStyle = fills[kind];
    pen.fillRect(start, y, Math.max(1, right - start - (right - left > 3 ? 0.8 : 0)), ROW);
    if (right - start > 34 && kind !== "wait") {
      pen.fillStyle = kind === "cached" || kind === "phase" || kind === "chunks" ? ink : paper;
      const words = spec.names[row.name[i]], room = Math.floor((Math.min(right, at(view.to)) - start - 10) / 6);
      if (room > 2) pen.fillText(words.length > room ? `${words.slice(0, room - 1)}…` : words, start + 5, y + ROW / 2 + 1);
    }
  }
  flush();
}

function handle(place, spec) {
  const view = place.view, least = Math.max(5, spec.end / 1e6), pointers = new Map();
  let waiting = false, dragged = null, along = false;
  function draw() {
    if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; drawTimeline(place, spec); }); }
  }
  function set(from, to) {
    const span = Math.min(spec.end, Math.max(least, to - from));
    view.from = Math.max(0, Math.min(spec.end - span, from));
    view.to = view.from + span;
    draw();
  }
  const zoom = (factor, share = 0.5) => {
    const span = view.to - view.from, middle = view.from + span * share;
    set(middle - span * factor * share, middle + span * factor * (1 - share));
  };
  const move = (share) => { const by = (view.to - view.from) * share; set(view.from + by, view.to + by); };
  const whole = () => set(0, spec.end);
  const share = (event) => Math.max(0, Math.min(1, (event.clientX - place.getBoundingClientRect().left - view.gutter) / view.wide));

  const tools = document.createElement("div");
  tools.className = "tools";
  for (const [words, label, act] of [["−", "Zoom out", () => zoom(1.6)], ["+", "Zoom in", () => zoom(1 / 1.6)], ["All", "Show everything", whole]]) {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = words; button.setAttribute("aria-label", label); button.onclick = act;
    tools.append(button);
  }
  const caption = place.closest("figure").querySelector("figcaption");
  (matchMedia("(max-width: 40rem)").matches ? caption : place).append(tools);

  place.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    // A page must scroll on under the pointer: only who has clicked into the timeline zooms with the wheel alone.
    if (!sideways && !event.ctrlKey && !event.metaKey && document.activeElement !== place) return;
    event.preventDefault();
    if (sideways) move((event.deltaX || event.deltaY) / view.wide);
    else zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) / 300), share(event));
  }, { passive: false });

  const keys = {
    "+": () => zoom(1 / 1.5), "=": () => zoom(1 / 1.5), w: () => zoom(1 / 1.5), "-": () => zoom(1.5), "_": () => zoom(1.5), s: () => zoom(1.5),
    ArrowLeft: () => move(-0.15), a: () => move(-0.15), ArrowRight: () => move(0.15), d: () => move(0.15),
    PageUp: () => move(-0.9), PageDown: () => move(0.9), 0: whole, Escape: hush,
    Home: () => set(0, view.to - view.from), End: () => set(spec.end - (view.to - view.from), spec.end),
  };
  place.addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
    if (!act || event.target !== place) return;
    event.preventDefault();
    act();
    if (event.key !== "Escape") place.setAttribute("aria-description", `${seconds(view.from / 1e6)} to ${seconds(view.to / 1e6)}`);
  });

  place.addEventListener("pointerdown", (event) => {
    if (event.target.closest(".tools")) return;
    pointers.set(event.pointerId, event.clientX);
    place.setPointerCapture(event.pointerId);
    along = event.clientY - place.getBoundingClientRect().top > place.clientHeight - SCROLL;
    dragged = { x: event.clientX, from: view.from, to: view.to, apart: apart(pointers) };
    hush();
  });
  place.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return hover(event);
    pointers.set(event.pointerId, event.clientX);
    if (pointers.size === 2 && dragged.apart > 8) {
      const span = (dragged.to - dragged.from) * (dragged.apart / Math.max(8, apart(pointers))), middle = (dragged.from + dragged.to) / 2;
      set(middle - span / 2, middle + span / 2);
    } else if (pointers.size === 1) {
      const by = ((event.clientX - dragged.x) / view.wide) * (along ? spec.end : dragged.from - dragged.to);
      set(dragged.from + by, dragged.to + by);
    }
  });
  for (const name of ["pointerup", "pointercancel"]) {
    place.addEventListener(name, (event) => {
      pointers.delete(event.pointerId);
      for (const x of pointers.values()) dragged = { x, from: view.from, to: view.to, apart: 0 };
    });
  }
  place.addEventListener("dblclick", (event) => { if (!event.target.closest(".tools")) zoom(1 / 2.5, share(event)); });
  place.addEventListener("pointerleave", hush);

  function hover(event) {
    const box = place.getBoundingClientRect(), row = view.rows[Math.floor((event.clientY - box.top - AXIS) / (ROW + GAP))];
    const within = event.clientX - box.left - view.gutter;
    if (!row || within < 0) return hush();
    const time = view.from + (within / view.wide) * (view.to - view.from), slack = (view.to - view.from) / view.wide;
    const i = firstAfter(row, time - slack);
    if (i >= row.begin.length || row.begin[i] > time + slack) return hush();
    const told = [["at", seconds(row.begin[i] / 1e6)], ["took", seconds((row.end[i] - row.begin[i]) / 1e6)]];
    if (row.times && row.times[i] > 1) told.push(["spans", SAY.count(row.times[i])]);
    if (row.bytes && row.bytes[i]) {
      told.push(["moved", size(row.bytes[i])]);
      if (row.end[i] > row.begin[i]) told.push(["rate", SAY.rate(row.bytes[i] / ((row.end[i] - row.begin[i]) / 1e6))]);
    }
    for (const [name, value] of Object.entries((row.args && row.args[i]) || {})) {
      told.push([name.replaceAll("_", " "), typeof value !== "number" ? String(value) : name.startsWith("bytes") ? size(value) : Number.isInteger(value) ? SAY.count(value) : number(value)]);
    }
    tell(`${spec.names[row.name[i]]}, ${row.lane}`, told, event.clientX, event.clientY);
  }
}

function apart(pointers) {
  const [a, b] = pointers.values();
  return b === undefined ? 0 : Math.abs(a - b);
}
