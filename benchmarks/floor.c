/* What one core can do: normalized descent in W (n samples, T tokens of d entries), trials side by
   side in the lanes of a vector, everything of a group of trials in the first-level cache.
   Compiled by contenders.py with N, T and D; arrays have the trials last. A yardstick, no part of
   the package. */
#include <math.h>
#include <string.h>

#define L 16 /* trials in a group: two vectors of eight */
#define EACH for (int l = 0; l < L; l++)

static void group(int steps, double eta, double X[N][T][D][L], double z[N][D][L],
                  double score[N][T][L], double W[D][D][L])
{
    for (int k = 0; k < steps; k++) {
        double G[D][D][L], square[L];
        memset(G, 0, sizeof G);
        for (int i = 0; i < N; i++) {
            double r[D][L], e[T][L], top[L], sum[L], u[L], slope[L], P[D][L];
            for (int a = 0; a < D; a++) {
                double s[L] = {0};
                for (int b = 0; b < D; b++) EACH s[l] += W[a][b][l] * z[i][b][l];
                EACH r[a][l] = s[l];
            }
            EACH top[l] = -1e300, sum[l] = 0, u[l] = 0;
            for (int t = 0; t < T; t++) {
                double s[L] = {0};
                for (int a = 0; a < D; a++) EACH s[l] += X[i][t][a][l] * r[a][l];
                EACH e[t][l] = s[l], top[l] = s[l] > top[l] ? s[l] : top[l];
            }
            for (int t = 0; t < T; t++) {
                EACH e[t][l] = exp(e[t][l] - top[l]);
                EACH sum[l] += e[t][l], u[l] += e[t][l] * score[i][t][l];
            }
            EACH u[l] /= sum[l];
            EACH slope[l] = -1 / ((1 + exp(u[l])) * sum[l] * N);
            memset(P, 0, sizeof P);
            for (int t = 0; t < T; t++) {
                double c[L];
                EACH c[l] = e[t][l] * (score[i][t][l] - u[l]) * slope[l];
                for (int a = 0; a < D; a++) EACH P[a][l] += c[l] * X[i][t][a][l];
            }
            for (int a = 0; a < D; a++)
                for (int b = 0; b < D; b++) EACH G[a][b][l] += P[a][l] * z[i][b][l];
        }
        EACH square[l] = 0;
        for (int a = 0; a < D; a++)
            for (int b = 0; b < D; b++) EACH square[l] += G[a][b][l] * G[a][b][l];
        EACH square[l] = eta / (sqrt(square[l]) + 2.220446049250313e-16);
        for (int a = 0; a < D; a++)
            for (int b = 0; b < D; b++) EACH W[a][b][l] -= square[l] * G[a][b][l];
    }
}

/* Rows of B trials; the last group is filled up with copies of the first trial. */
static void pick(double *to, const double *from, int rows, int B, int first)
{
    for (int r = 0; r < rows; r++)
        EACH to[r * L + l] = from[(long)r * B + (first + l < B ? first + l : 0)];
}

void train(int B, int steps, double eta, const double *X, const double *z, const double *score,
           double *W)
{
    static double x[N][T][D][L], q[N][D][L], s[N][T][L], w[D][D][L];
    for (int first = 0; first < B; first += L) {
        pick(&x[0][0][0][0], X, N * T * D, B, first);
        pick(&q[0][0][0], z, N * D, B, first);
        pick(&s[0][0][0], score, N * T, B, first);
        pick(&w[0][0][0], W, D * D, B, first);
        group(steps, eta, x, q, s, w);
        for (int r = 0; r < D * D; r++)
            EACH if (first + l < B) W[(long)r * B + first + l] = (&w[0][0][0])[r * L + l];
    }
}
