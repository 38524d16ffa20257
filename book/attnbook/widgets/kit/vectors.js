// Vectors and matrices: lists of rows, and flat arrays with an offset where loops are hot.

export const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};

// The same for d numbers of a flat array each, from i and from j on.
export const dotAt = (a, i, b, j, d) => {
  let sum = 0;
  for (let k = 0; k < d; k++) sum += a[i + k] * b[j + k];
  return sum;
};

// Rows of d = out.length numbers of a flat matrix, times x, into `out`.
export const applyFlat = (A, x, out) => {
  for (let i = 0; i < out.length; i++) out[i] = dotAt(A, i * x.length, x, 0, x.length);
  return out;
};

export const apply = (A, x) => A.map((row) => dot(row, x));
export const transpose = (A) => A[0].map((_, j) => A.map((row) => row[j]));
export const times = (A, B) => {
  const columns = transpose(B);
  return A.map((row) => columns.map((column) => dot(row, column)));
};
export const combine = (a, A, b, B) => A.map((row, i) => row.map((x, j) => a * x + b * B[i][j]));
export const norm = (A) => Math.hypot(...A.flat());
const inner = (A, B) => dot(A.flat(), B.flat());
export const cosine = (A, B) => inner(A, B) / (norm(A) * norm(B));
export const zeros = (rows, columns) => Array.from({ length: rows }, () => Array(columns).fill(0));
export const unit = (A) => {
  const size = norm(A);
  return size > 0 ? A.map((row) => row.map((x) => x / size)) : A;
};

export const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

// p of y = c x^p, by least squares in logarithms.
export function exponent(xs, ys) {
  const [u, v] = [xs, ys].map((list) => list.map((value) => Math.log(value)));
  const [middle, level] = [mean(u), mean(v)];
  const away = u.map((value) => value - middle);
  return dot(away, v.map((value) => value - level)) / dot(away, away);
}
