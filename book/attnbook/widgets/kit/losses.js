// Losses of a margin m = y f and their slopes, stable in both tails; squared errors.
// NumPy twins: the losses of attnlab.models.

// log(1 + e^x)
export const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

// 1 / (1 + e^-x), and its logarithm
export const sigmoid = (x) => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));
export const logSigmoid = (x) => -softplus(-x);

export const LOSSES = {
  logistic: { value: (m) => softplus(-m), slope: (m) => -sigmoid(-m) },
  exponential: { value: (m) => Math.exp(-m), slope: (m) => -Math.exp(-m) },
  correlation: { value: (m) => -m, slope: () => -1 },
};

// sum (f - y)^2; networks have a factor of their own before it
export const squares = (f, y) => f.reduce((sum, value, n) => sum + (value - y[n]) ** 2, 0);
