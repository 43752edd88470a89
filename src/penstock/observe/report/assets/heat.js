// The matrix as a picture: one dot for a range of rows and a range of columns, darker where there are more arcs.

function mixed(from, to, share) {
  return from.map((part, i) => Math.round(part + (to[i] - part) * share));
}

function drawHeat(place, spec) {
  const n = spec.size, shades = Uint8Array.from(atob(spec.shades), (letter) => letter.charCodeAt(0));
  const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
  canvas.width = canvas.height = n;
  canvas.style.imageRendering = n < place.clientWidth ? "pixelated" : "auto";
  canvas.setAttribute("aria-hidden", "true");
  const [paper, middle, dark] = ["--well", "--heat-mid", "--heat"].map(colour);
  const image = context.createImageData(n, n);
  for (let i = 0; i < n * n; i++) {
    const share = shades[i] / 255;
    // Even a single arc can be seen.
    const parts = !shades[i] ? paper : share < 0.5 ? mixed(paper, middle, 0.16 + share * 1.68) : mixed(middle, dark, share * 2 - 1);
    image.data.set([parts[0], parts[1], parts[2], 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  place.replaceChildren(canvas);

  let row = 0, column = 0;
  const range = (k) => `${SAY.count(Math.floor((k * spec.vertices) / n))} to ${SAY.count(Math.max(0, Math.ceil(((k + 1) * spec.vertices) / n) - 1))}`;
  function show(x, y) {
    const arcs = Math.expm1((shades[row * n + column] / 255) * Math.log1p(spec.most));
    const box = place.getBoundingClientRect();
    tell(`about ${SAY.count(arcs)} arcs`, [["from", range(row)], ["to", range(column)]],
      x ?? box.left + ((column + 0.5) / n) * box.width, y ?? box.top + ((row + 0.5) / n) * box.height);
  }
  place.onpointermove = (event) => {
    const box = place.getBoundingClientRect(), clamp = (value) => Math.max(0, Math.min(n - 1, Math.floor(value * n)));
    column = clamp((event.clientX - box.left) / box.width);
    row = clamp((event.clientY - box.top) / box.height);
    show(event.clientX, event.clientY);
  };
  place.onpointerleave = place.onblur = hush;
  place.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (event.key === "Escape") hush();
    if (!step) return;
    event.preventDefault();
    row = Math.max(0, Math.min(n - 1, row + step[0]));
    column = Math.max(0, Math.min(n - 1, column + step[1]));
    show();
  };
}
