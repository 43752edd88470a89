// Figures as people read them, in the same words as the page around them.

function size(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  for (let k = 0; k < units.length; k++) {
    const shown = value / 1000 ** k, digits = k && shown < 100 ? 1 : 0;
    if (Number(shown.toFixed(digits)) < 1000 || k === units.length - 1) return `${shown.toFixed(digits)} ${units[k]}`;
  }
}

function seconds(value) {
  if (value === 0) return "0 s";
  if (value < 0.0009995) return `${Number((value * 1e6).toPrecision(3))} µs`;
  if (value < 0.9995) return `${Number((value * 1e3).toPrecision(3))} ms`;
  if (value < 59.95) return `${value.toFixed(value < 9.995 ? 2 : 1)} s`;
  const minutes = Math.floor(Math.round(value) / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${minutes} min ${Math.round(value) % 60} s`;
}

function short(value) {
  for (const [scale, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= scale) return `${Number((value / scale).toPrecision(3))} ${name}`;
  }
  return `${Number(value.toPrecision(3))}`;
}

function number(value) {
  if (value === 0) return "0";
  const large = Math.abs(value) >= 1e6, small = Math.abs(value) < 1e-3;
  if (!large && !small) return `${Number(value.toPrecision(4))}`;
  const [digits, power] = value.toExponential(3).split("e");
  return `${Number(digits)}e${Number(power)}`;
}

const SAY = {
  bytes: size, seconds, number,
  rate: (value) => `${size(value)}/s`,
  count: (value) => Math.round(value).toLocaleString("en"),
  whole: (value) => Math.round(value).toLocaleString("en"),
};

// Along an axis all ticks are told in the same unit and with the same digits.
const UNITS = {
  bytes: [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  rate: [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]],
  seconds: [[3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"]],
};

function tickWords(unit, values, step) {
  const units = UNITS[unit];
  if (!units) return values.map((value) => (unit === "count" || unit === "whole" ? short(value) : number(value)));
  const most = Math.max(...values.map(Math.abs)), [scale, name] = units.find(([each]) => most >= each) || units.at(-1);
  const digits = Math.max(0, Math.min(3, -Math.floor(Math.log10(step / scale) + 1e-9)));
  return values.map((value) => (value ? `${(value / scale).toFixed(digits)} ${name}` : `0 ${name}`));
}

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "11.5px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const breadth = (words) => ruler.measureText(words).width;
