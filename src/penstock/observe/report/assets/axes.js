// Axes: from a range of values to pixels, and where the ticks stand.

function logTicks(low, high, most) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9), ticks = [];
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  for (let power = first; power <= last; power += step) ticks.push(10 ** power);
  if (ticks.length >= 2) return ticks;
  // Less than two powers of ten: the numbers between them have to do.
  for (const digit of [1, 2, 5]) {
    for (let power = first - 1; power <= last + 1; power++) {
      const value = digit * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001 && !ticks.includes(value)) ticks.push(value);
    }
  }
  return ticks.sort((a, b) => a - b);
}

function niceStep(span, most, whole) {
  const rough = span / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= rough * 0.999);
  return whole ? Math.max(1, Math.round(step)) : step;
}

// An axis: {unit, log, zero, whole} over values from low to high, in pixels from begin to end.
function scaled(axis, low, high, begin, end, room) {
  const most = Math.max(2, Math.floor(Math.abs(end - begin) / room)), whole = axis.unit === "whole" || axis.unit === "count";
  if (axis.log) {
    const a = Math.log(low), b = Math.log(high), wide = b - a || 1, ticks = logTicks(low, high, most);
    const at = (value) => begin + ((Math.log(value) - a) / wide) * (end - begin);
    const said = (value) => (axis.unit === "bytes" ? size(value) : axis.unit === "seconds" ? seconds(value) : tickWords(axis.unit, [value])[0]);
    return { at, low, high, log: true, ticks: ticks.map((value) => ({ value, say: said(value) })) };
  }
  const step = niceStep(high - low || 1, most, whole), values = [];
  if (axis.snap) high = Math.ceil(high / step - 1e-9) * step;
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-6; k++) values.push(k * step);
  const said = tickWords(axis.unit, values, step);
  const at = (value) => begin + ((value - low) / (high - low || 1)) * (end - begin);
  return { at, low, high, log: false, ticks: values.map((value, i) => ({ value, say: said[i] })) };
}
