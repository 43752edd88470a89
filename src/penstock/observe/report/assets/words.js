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
// Along an axis there is less room, and what all ticks share need not be said: no ".0".
const TICK = {
  ...SAY,
  bytes: (value) => size(value).replace(".0 ", " "),
  rate: (value) => `${size(value).replace(".0 ", " ")}/s`,
  seconds: (value) => seconds(value).replace(/\.?0+ s$/, " s"),
  count: (value) => short(value),
};
