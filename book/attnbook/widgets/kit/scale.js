// Scales and their ticks, straight or logarithmic.

export function ticks([low, high], { log = false, count = 5 } = {}) {
  if (log) {
    const every = Math.max(1, Math.ceil(Math.log10(high / low) / count));
    const found = [];
    for (let p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; p += every) found.push(10 ** p);
    return found;
  }
  const rough = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((value) => value >= rough * (1 - 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

// From [low, high] to [from, to]; what lies far outside is held, so that paths stay finite.
export function scale([low, high], [from, to], log = false) {
  const share = log
    ? (value) => Math.log(Math.max(value, 1e-300) / low) / Math.log(high / low)
    : (value) => (value - low) / (high - low);
  return (value) => Math.max(-1e4, Math.min(1e4, from + share(value) * (to - from)));
}
