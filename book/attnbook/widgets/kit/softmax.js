// Softmax, and how a mean under it moves with the logits. NumPy twins: attnlab.models.

// Logits become weights, in place.
export function weigh(a) {
  let top = -Infinity;
  for (let s = 0; s < a.length; s++) if (a[s] > top) top = a[s];
  let sum = 0;
  for (let s = 0; s < a.length; s++) {
    a[s] = Math.exp(a[s] - top);
    sum += a[s];
  }
  for (let s = 0; s < a.length; s++) a[s] /= sum;
  return a;
}

export const softmax = (a) => weigh(Array.from(a));

// The gradient in the logits of sum_s p_s values_s, which is (diag(p) - p p') values. It cancels
// at saturation: core.js forms its own from the tokens that are not in the lead.
export function meanSlope(p, values, out = new Array(p.length)) {
  let mean = 0;
  for (let s = 0; s < p.length; s++) mean += p[s] * values[s];
  for (let s = 0; s < p.length; s++) out[s] = p[s] * (values[s] - mean);
  return out;
}
