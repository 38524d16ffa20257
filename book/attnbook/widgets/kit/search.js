// Searching: where a condition sets in, and which of a list is next to a number.

// [low, high] around the point from which on `met` holds, after halving so many times.
export function bisect(low, high, met, rounds) {
  for (let round = 0; round < rounds; round++) {
    const middle = (low + high) / 2;
    if (met(middle)) high = middle;
    else low = middle;
  }
  return [low, high];
}

// Index of the entry nearest to a number, as `scale` (Math.log for instance) measures it.
export function nearest(list, value, scale = Number) {
  const away = list.map((entry) => Math.abs(scale(entry) - scale(value)));
  return away.indexOf(Math.min(...away));
}
