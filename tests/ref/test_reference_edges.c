// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where a helper of the reference begins and ends: ends of ranges and of formats, the last group of
// tokens, the last block of a row. Arrays end where the next page must not be read, or before a
// number that nothing may write; what is computed is written out a second time and compared bit for
// bit. 0.1 CPU seconds.
#include "fast/lanes/stages.h"
#include "ref/metrics.h"
#include "ref/operands.h"
#include "ref/terms.h"
#include "ref/variants/variant.h"
#include "tests/shared/reference.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t SEED = 20261201;
enum { KEPT = 77 };

static void say(const char *ids, const char *what, size_t apart, size_t values) {
    ok(apart == 0 && values > 0, "%s %s, bit for bit: worst=%zu bound=0 values=%zu seed=%llu", ids,
       what, apart, values, (unsigned long long)SEED);
}

static size_t unlike(double found, double want) {
    return differing(1, &found, &want);
}

// n doubles, NaN all of them, before a page that nothing may read.
static double *fenced(size_t n) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (n * sizeof(double) + page - 1) / page * page;
    uint8_t *at =
        mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED && mprotect(at + bytes, page, PROT_NONE) == 0);
    double *x = (double *)(void *)(at + bytes) - n;
    for (size_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

// ---- formats
// -------------------------------------------------------------------------------------

static const struct shape {
    sinkproof_format format;
    int bits, emin, emax;
} shapes[] = {{SINKPROOF_F32, 24, -126, 127},
              {SINKPROOF_F16, 11, -14, 15},
              {SINKPROOF_BF16, 8, -126, 127},
              {SINKPROOF_F64, 53, -1022, 1023}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

// The exponent of the last place at 2^e.
static int last_place(const struct shape *s, int e) {
    return (e < s->emin ? s->emin : e > s->emax ? s->emax : e) - (s->bits - 1);
}

static double rounded(const struct shape *s, double x, int e) {
    double beyond = ldexp(2 - ldexp(1, -s->bits), s->emax);
    if (s->bits == 53) return x;
    if (fabs(x) >= beyond) return x < 0 ? -INFINITY : INFINITY;
    return ldexp(rint(ldexp(x, -last_place(s, e))), last_place(s, e));
}

static void formats(void) {
    static const double heads[] = {1, 1.25, 1.5, 1 + 0x1p-30, 2 - 0x1p-8, 2 - 0x1p-50};
    size_t apart = 0, values = 0;
    for (size_t f = 0; f < SHAPES; f++) {
        const struct shape *s = &shapes[f];
        double ends[] = {INFINITY, -INFINITY};
        for (int e = -1022; e <= 1023; e++)
            for (size_t h = 0; h < 12; h++, values++) {
                double x = ldexp(h % 2 ? -heads[h / 2] : heads[h / 2], e);
                apart += unlike(sinkproof_round(s->format, x), rounded(s, x, e));
                apart += unlike(sinkproof_ulp(s->format, x), ldexp(1, last_place(s, e)));
            }
        for (size_t k = 0; k < 2; k++) {
            apart += unlike(sinkproof_round(s->format, ends[k]), ends[k]);
            apart += unlike(sinkproof_ulp(s->format, ends[k]), INFINITY);
        }
        apart += !isnan(sinkproof_round(s->format, NAN)) || !isnan(sinkproof_ulp(s->format, NAN));
        apart += unlike(sinkproof_ulp(s->format, 0), ldexp(1, s->emin - (s->bits - 1)));
        double half = s->bits == 53 ? 0x1p-1074 : ldexp(1, s->emin - s->bits);
        apart += unlike(sinkproof_format_underflow(s->format), half);
        double most = ldexp(ldexp(1, s->bits) - 1, s->emax - (s->bits - 1));
        apart += unlike(sinkproof_format_largest(s->format), most);
    }
    say("bf16.round", "rounding, last places and ends of four formats", apart, values);
}

// ---- rotary positions ---------------------------------------------------------------------------

static double end_of_ramp(const sinkproof_config *c, double rotations) {
    double turns = (double)c->rotation.original_context / (rotations * 6.283185307179586);
    return (double)c->head_dim * log(turns) / (2 * log(c->rotation.theta));
}

static void ramps(void) {
    static const struct {
        double fast, slow, theta;
        size_t context;
    } cases[] = {{32, 1, 150000, 4096}, // inside
                 {32, 1, 150000, 64},   // begins before the first pair
                 {32, 1, 10, 4096},     // ends behind the last coordinate
                 {4, 4, 150000, 4096}}; // has one end
    enum { CASES = sizeof cases / sizeof *cases };
    sinkproof_config c;
    size_t apart = 0, values = 0, first = 0, last = 0, one = 0;
    must(sinkproof_config_named("gpt-oss-20b", &c));
    for (size_t k = 0; k < 2 * CASES; k++, values += 2) {
        bool truncate = k >= CASES;
        c.rotation.beta_fast = cases[k % CASES].fast, c.rotation.beta_slow = cases[k % CASES].slow;
        c.rotation.theta = cases[k % CASES].theta,
        c.rotation.original_context = cases[k % CASES].context;
        double low = KEPT, high = KEPT, least = (double)c.head_dim - 1;
        double from = end_of_ramp(&c, c.rotation.beta_fast),
               to = end_of_ramp(&c, c.rotation.beta_slow);
        if (truncate) from = floor(from), to = ceil(to);
        first += from<0, last += to> least;
        if (from < 0) from = 0;
        if (to > least) to = least;
        if (from == to) to = to + 0.001, one++;
        sinkproof_yarn_range(&c, truncate, &low, &high);
        apart += unlike(low, from) + unlike(high, to);
    }
    apart += first != 2 || last != 2 || one != 1;
    say("yarn.ramp yarn.truncate", "ends of ramps within the head, and apart", apart, values);
}

static void angles(void) {
    enum { TOKENS = 5, FIRST = 1000, HALF = 6 };
    static const char *const names[] = {"real-f64", "real-f64,A4.conc=bf16",
                                        "real-f64,A4.angle=bf16"};
    sinkproof_config c;
    double freq_d[HALF + 1], cos_nd[TOKENS * HALF + 1], sin_nd[TOKENS * HALF + 1], low, high;
    size_t apart = 0, values = 0;
    must(sinkproof_config_named("gpt-oss-20b", &c));
    c.head_dim = 2 * HALF; // whose exponents, sixths, are no numbers of a format
    sinkproof_policy f32 = policy_of("real-f64,A4.freq=f32");
    sinkproof_yarn_range(&c, false, &low, &high);
    freq_d[HALF] = KEPT;
    sinkproof_yarn_frequencies(&f32, &c, freq_d);
    for (size_t d = 0; d < HALF; d++, values++) {
        float period = (float)pow(150000, (float)d / HALF);
        float ramp = ((float)d - (float)low) / (float)(high - low);
        float keep = 1 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp);
        apart += unlike(freq_d[d], 1 / (32 * period) * (1 - keep) + 1 / period * keep);
    }
    for (size_t p = 0; p < 3; p++) {
        sinkproof_policy policy = policy_of(names[p]);
        double times = 0.1 * log(c.rotation.factor) + 1;
        if (p == 1) times = sinkproof_round(SINKPROOF_BF16, times);
        cos_nd[TOKENS * HALF] = sin_nd[TOKENS * HALF] = KEPT;
        sinkproof_rope_table(&policy, &c, freq_d, FIRST, TOKENS, cos_nd, sin_nd);
        for (size_t i = 0; i < TOKENS * HALF; i++, values++) {
            double angle = (double)(FIRST + i / HALF) * freq_d[i % HALF];
            if (p == 2) angle = sinkproof_round(SINKPROOF_BF16, angle);
            apart += unlike(cos_nd[i], cos(angle) * times) + unlike(sin_nd[i], sin(angle) * times);
        }
        apart += unlike(cos_nd[TOKENS * HALF], KEPT) + unlike(sin_nd[TOKENS * HALF], KEPT);
    }
    apart += unlike(freq_d[HALF], KEPT);
    say("yarn.ramp yarn.concentration", "frequencies in float32, angles and their table", apart,
        values);
}

// ---- products -----------------------------------------------------------------------------------

static void products(void) {
    static const char *const names[] = {"real-f64", "real-f64,A2.acc=f32", "real-f64,A2.term=f32"};
    static const size_t shape[][2] = {{3, 10}, {10, 3}, {4, 4}};
    uint64_t state = SEED;
    size_t apart = 0, values = 0;
    for (size_t n = 1; n <= 20; n++)
        for (size_t k = 0; k < 3; k++) {
            size_t rows = shape[k][0], cols = shape[k][1], groups = n / 8 + (n % 8 > 0);
            size_t room = (rows > cols ? rows : cols) + 8 * groups * cols;
            double *w_rc = fenced(rows * cols), *b_r = fenced(rows), *x_nc = fenced(n * cols);
            double *y_nr = fenced(n * rows), *work = fenced(room);
            apart += sinkproof_linear_work(n, rows, cols) != room;
            fill_integers(&state, 9, rows * cols, w_rc);
            fill_integers(&state, 9, rows, b_r);
            fill_integers(&state, 9, n * cols, x_nc);
            sinkproof_matrix w = matrix_of(w_rc, 1, rows, cols), b = matrix_of(b_r, 1, 1, rows);
            sinkproof_policy policy = policy_of(names[(n + k) % 3]);
            sinkproof_linear(&policy, AT_A2, n, &w, n % 2 ? &b : NULL, x_nc, y_nr, work);
            for (size_t i = 0; i < n * rows; i++, values++) {
                double sum = n % 2 ? b_r[i % rows] : 0;
                for (size_t c = cols; c-- > 0;)
                    sum += w_rc[i % rows * cols + c] * x_nc[i / rows * cols + c];
                apart += y_nr[i] != sum; // of zeros there are two
            }
        }
    say("bound.operands bound.accumulator attn.qkv", "products of 1 to 20 tokens", apart, values);
}

static void operands(void) {
    static const struct {
        sinkproof_dtype dtype;
        sinkproof_format kept, want;
    } weights[] = {{SINKPROOF_DTYPE_BF16, SINKPROOF_REAL, SINKPROOF_BF16},
                   {SINKPROOF_DTYPE_F16, SINKPROOF_REAL, SINKPROOF_F16},
                   {SINKPROOF_DTYPE_F32, SINKPROOF_REAL, SINKPROOF_REAL},
                   {SINKPROOF_DTYPE_F64, SINKPROOF_REAL, SINKPROOF_REAL},
                   {SINKPROOF_DTYPE_MXFP4, SINKPROOF_REAL, SINKPROOF_Q8_0},
                   {SINKPROOF_DTYPE_Q8_0, SINKPROOF_REAL, SINKPROOF_Q8_0},
                   {SINKPROOF_DTYPE_Q4_0, SINKPROOF_REAL, SINKPROOF_Q8_0},
                   {SINKPROOF_DTYPE_Q4_1, SINKPROOF_REAL, SINKPROOF_Q8_1},
                   {SINKPROOF_DTYPE_Q5_1, SINKPROOF_REAL, SINKPROOF_Q8_1},
                   {SINKPROOF_DTYPE_Q4_1, SINKPROOF_F16, SINKPROOF_F16},
                   {SINKPROOF_DTYPE_Q4_K, SINKPROOF_REAL, SINKPROOF_Q8_K},
                   {SINKPROOF_DTYPE_Q6_K, SINKPROOF_REAL, SINKPROOF_Q8_K},
                   {SINKPROOF_DTYPE_MXFP4, SINKPROOF_F16, SINKPROOF_F16},
                   {SINKPROOF_DTYPE_BF16, SINKPROOF_F32, SINKPROOF_F32}};
    enum { WEIGHTS = sizeof weights / sizeof *weights, COLS = 96 };
    sinkproof_policy follows = policy_of("real-f64,A2.in=weight");
    size_t apart = 0;
    for (size_t k = 0; k < WEIGHTS; k++) {
        sinkproof_matrix w = {.dtype = weights[k].dtype, .kept = weights[k].kept, .cols = COLS};
        bool scaled = weights[k].dtype == SINKPROOF_DTYPE_MXFP4 && weights[k].kept == 0;
        apart += operand_format(&follows, AT_A2_IN, &w) != weights[k].want;
        apart += sinkproof_terms_together(&w) != (scaled ? 32 : COLS);
    }
    say("bound.operands", "what an operand is rounded to, and adds up with", apart, WEIGHTS);
    sinkproof_product_points f2 = sinkproof_product_points_at(AT_F2);
    apart =
        f2.in != AT_F2_IN || f2.term != AT_F2_TERM || f2.acc != AT_F2_ACC || f2.product != AT_F2;
    say("bound.operands", "the points of the last product", apart, 4);
}

// Blocks from the first number on; the last one may be short.
static void blocks(void) {
    static const size_t lengths[] = {1, 31, 32, 33, 64, 70, 4000};
    uint64_t state = SEED;
    size_t apart = 0, values = 0;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t n = lengths[k];
        double *x_c = fenced(n), *out_c = fenced(n);
        for (size_t c = 0; c < n; c++) x_c[c] = (float)next_real(&state, ldexp(1, (int)(c % 5)));
        sinkproof_operand_row((sinkproof_rounding){.format = SINKPROOF_Q8_0}, n, x_c, out_c);
        for (size_t first = 0; first < n; first += 32) {
            float most = 0;
            for (size_t c = first; c < n && c < first + 32; c++)
                most = fmaxf(most, fabsf((float)x_c[c]));
            float scale = most / 127;
            for (size_t c = first; c < n && c < first + 32; c++, values++) {
                double whole = roundf((float)x_c[c] * (1 / scale));
                apart += out_c[c] != sinkproof_round(SINKPROOF_F16, scale) * whole;
            }
        }
    }
    say("bound.operands", "rows of whole numbers with a scale", apart, values);
}

// ---- one stage at a time ------------------------------------------------------------------------

static void mixture(void) {
    enum { TOKENS = 3, CHOSEN = 3, HIDDEN = 4 };
    static const int32_t chosen_nk[] = {0, 5, 2, 5, 0, 2, 4, 1, 3};
    sinkproof_policy real = policy_of("real-f64"), bf16 = policy_of("real-f64,M11=bf16");
    const double beyond = 1 + 0x1p-20; // which a rounding would change
    double weights_nk[TOKENS * CHOSEN], down_nkc[TOKENS * CHOSEN * HIDDEN];
    double out_nc[TOKENS * HIDDEN + 1];
    uint64_t state = SEED;
    size_t apart = 0;
    fill_integers(&state, 9, TOKENS * CHOSEN, weights_nk);
    fill_integers(&state, 9, TOKENS * CHOSEN * HIDDEN, down_nkc);
    for (size_t k = 0; k < TOKENS * CHOSEN; k++) down_nkc[k * HIDDEN] = 0; // a sum of zeros
    for (int run = 0; run < 2; run++) {
        for (size_t i = 0; i <= TOKENS * HIDDEN; i++) out_nc[i] = beyond;
        sinkproof_mixture(run ? &bf16 : &real, TOKENS, CHOSEN, HIDDEN, chosen_nk, weights_nk,
                          down_nkc, out_nc);
        for (size_t i = 0; i < TOKENS * HIDDEN; i++) {
            double sum = 0;
            for (size_t k = 0; k < CHOSEN; k++) {
                size_t slot = i / HIDDEN * CHOSEN + k;
                sum += weights_nk[slot] * down_nkc[slot * HIDDEN + i % HIDDEN];
            }
            apart += out_nc[i] != (run ? sinkproof_round(SINKPROOF_BF16, sum) : sum);
        }
        apart += unlike(out_nc[TOKENS * HIDDEN], beyond);
    }
    say("moe.sum", "mixtures of whole numbers", apart, 2 * TOKENS * HIDDEN);
}

static void rows(void) {
    sinkproof_policy real = policy_of("real-f64");
    double x_n[] = {-1, 0.5, 2, NAN}, y_n[] = {KEPT, KEPT, KEPT, KEPT};
    sinkproof_gelu(&real, 3, x_n, y_n);
    size_t apart = unlike(y_n[3], KEPT);
    for (size_t i = 0; i < 3; i++) apart += unlike(y_n[i], sinkproof_gelu_one(&real, x_n[i]));
    say("gelu.tanh", "a row and nothing behind it", apart, 3);

    enum { ROWS = 3, FIRST = 2, KEYS = ROWS + FIRST, DIM = 4 };
    uint64_t state = SEED;
    double q_id[ROWS * DIM], key_d[DIM], b_i[ROWS + 1], s_ij[ROWS * KEYS];
    double alpha_ij[ROWS * (KEYS + 1)];
    sinkproof_block block = {ROWS, KEYS, FIRST, 2, DIM, DIM, DIM};
    fill_integers(&state, 9, ROWS * DIM, q_id);
    fill_integers(&state, 9, DIM, key_d);
    apart = 0;
    for (int kind = 0; kind < 2; kind++) {
        sinkproof_normaliser number = {.logit = 0.7}, key = {.logit = NAN, .key_d = key_d};
        for (size_t i = 0; i <= ROWS; i++) b_i[i] = KEPT;
        sinkproof_sink_logits(&real, &block, kind == 0 ? &number : &key, q_id, b_i);
        for (size_t i = 0; i < ROWS; i++) {
            double dot = 0;
            for (size_t d = 0; d < DIM; d++) dot += q_id[i * DIM + d] * key_d[d];
            apart += b_i[i] != (kind == 0 ? 0.7 : dot / 2);
        }
        apart += unlike(b_i[ROWS], KEPT);
    }
    say("sink.softmax1 sink.key-bias", "a logit for each row", apart, 2 * (ROWS + 1));

    apart = 0;
    for (size_t i = 0; i < ROWS * KEYS; i++) s_ij[i] = 1;
    for (size_t i = 0; i < ROWS; i++) b_i[i] = 1;
    for (size_t i = 0; i < ROWS * (KEYS + 1); i++) alpha_ij[i] = NAN;
    sinkproof_softmax_sink(&real, &block, b_i, s_ij, alpha_ij); // two keys and the sink: thirds
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j <= KEYS; j++) {
            bool seen = j == KEYS || j == FIRST + i || j + 1 == FIRST + i;
            apart += unlike(alpha_ij[i * (KEYS + 1) + j], seen ? 1.0 / 3 : 0);
        }
    say("sink.mass sink.alpha sink.alpha-sink", "no weight for what a window hides", apart,
        ROWS * (KEYS + 1));

    double bias_d[] = {1, 2, 3, 4}, rest_nd[DIM], bias_nd[DIM];
    sinkproof_terms_split(1, DIM, DIM, q_id, bias_d, NULL, bias_d, rest_nd, bias_nd);
    apart = differing(DIM, bias_nd, bias_d);
    for (size_t d = 0; d < DIM; d++) apart += rest_nd[d] != q_id[d] - bias_d[d];
    say("terms.split", "a row that no cosine turns", apart, 2 * DIM);
}

static void lanes(void) {
    enum { BLOCK = LANES_BLOCK, LANES = LANES_WIDTH, LENGTH = 40, STRIDE = 3 };
    double *from = fenced((LENGTH - 1) * STRIDE + 1);
    float to_c[BLOCK + 1], lane_l[LANES + 1], sum = 0;
    size_t apart = 0;
    for (size_t c = 0; c < LENGTH; c++) from[c * STRIDE] = (double)c;
    for (size_t b = 0; b < 2; b++) {
        to_c[BLOCK] = KEPT;
        lanes_gather_block(LENGTH, b, from, STRIDE, to_c);
        for (size_t c = 0; c < BLOCK; c++)
            apart += to_c[c] != (float)(b * BLOCK + c < LENGTH ? b * BLOCK + c : 0);
        apart += to_c[BLOCK] != KEPT;
    }
    for (size_t l = 0; l < LANES; l++) lane_l[l] = (float)(l * l), sum += lane_l[l];
    lane_l[LANES] = KEPT;
    apart += lanes_fold(lane_l) != sum;
    for (size_t l = LANES / 2; l < LANES; l++) apart += lane_l[l] != (float)(l * l); // added only
    say("lanes.linear lanes.attention", "blocks of a row that is not dense; lanes folded", apart,
        2 * BLOCK + LANES);
}

// ---- statistics ---------------------------------------------------------------------------------

static void medians(void) {
    enum { MANY = 400001 };
    double some[] = {NAN, 1, 2}, *x_i = calloc(MANY, sizeof *x_i);
    must(x_i != NULL);
    size_t apart = !isnan(metric_median(3, some));
    for (int down = 0; down < 2; down++) { // in order already: steps that grow as n, not as n n
        for (size_t i = 0; i < MANY; i++) x_i[i] = (double)(down ? MANY - 1 - i : i);
        apart += metric_median(MANY, x_i) != (MANY - 1) / 2;
    }
    free(x_i);
    say("metric.massive metric.value-drain", "medians of ordered numbers", apart, 3);
}

// Keys of length 1, a coordinate of the first so small that nothing may be added to it.
static void directions(void) {
    enum { ROWS = 2, DIM = 2 };
    const double small = 0x1p-1031 + 0x1p-1074;
    double *q_nd = fenced(ROWS * DIM), *k_nd = fenced(ROWS * DIM);
    double *work = fenced((ROWS + 1) * (DIM + 1));
    k_nd[0] = 1, k_nd[1] = small, k_nd[2] = 0.5, k_nd[3] = 0;
    q_nd[0] = 0, q_nd[1] = 1, q_nd[2] = 0, q_nd[3] = 4;
    sinkproof_geometry g = sinkproof_metric_geometry(ROWS, DIM, 0, DIM, q_nd, DIM, k_nd, work);
    size_t apart = unlike(g.first, small) + unlike(g.others, 0);
    say("metric.key-geometry", "a cosine that is hardly one", apart, 2);
}

// ---- designs ------------------------------------------------------------------------------------

// A bucket for each distance below 16; from there on 16 more by each factor of 8.
static void buckets(void) {
    enum { MOST = 2000 };
    size_t apart = 0;
    for (size_t distance = 0; distance < MOST; distance++) {
        size_t bucket = distance < 16 ? distance : 16;
        for (int k = 1; distance >= 16 && k < 16; k++)
            bucket += 16 * logl((long double)distance / 16) >= k * logl(8);
        apart += t5_bucket(distance) != bucket;
    }
    say("place.added attn.softmax", "buckets of distances", apart, MOST);
    sinkproof_variant first = {.seen = SINKPROOF_SEEN_FIRST_RECENT, .prefix = 3};
    apart = 0;
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 6; j++)
            apart += sinkproof_variant_sees(&first, NULL, i, j) != (j <= i && j < 3);
    say("mask.prefix mask.packed", "the first keys and no recent one", apart, 36);
}

static void gates(void) {
    enum { TOKENS = 6, HIDDEN = 5, DIM = 4 };
    uint64_t state = SEED;
    double x_nc[TOKENS * HIDDEN], w_cd[4][HIDDEN * DIM];
    sinkproof_variant variant = {.gate = SINKPROOF_GATE_ELEMENT, .unscaled = true};
    sinkproof_variant_head head = {.n = TOKENS, .hidden = HIDDEN, .dim = DIM, .x_nc = x_nc};
    sinkproof_policy policy = policy_of("real-f64,A11=bf16");
    sinkproof_variant_result out;
    size_t apart = 0;
    head.wq_cd = w_cd[0], head.wk_cd = w_cd[1], head.wv_cd = w_cd[2], head.gate_cd = w_cd[3];
    fill_reals(&state, 1, TOKENS * HIDDEN, x_nc);
    for (size_t k = 0; k < 4; k++) fill_reals(&state, 1, HIDDEN * DIM, w_cd[k]);
    must(sinkproof_variant_attend(&policy, &variant, &head, &out, NULL));
    for (size_t i = 0; i < TOKENS; i++) {
        for (size_t d = 0; d < DIM; d++) {
            double g = 0;
            for (size_t c = 0; c < HIDDEN; c++) g += x_nc[i * HIDDEN + c] * w_cd[3][c * DIM + d];
            g = sinkproof_round(SINKPROOF_BF16, 1 / (1 + exp(-g))) * out.o_id[i * DIM + d];
            apart += unlike(out.gated_id[i * DIM + d], sinkproof_round(SINKPROOF_BF16, g));
        }
        for (size_t j = 0; j <= i; j++) {
            double dot = 0;
            for (size_t d = 0; d < DIM; d++) dot += out.q_id[i * DIM + d] * out.k_jd[j * DIM + d];
            apart += unlike(out.s_ij[i * (TOKENS + 1) + j], dot);
        }
    }
    sinkproof_variant_result_free(&out);
    say("attn.softmax kernel.identity", "unscaled scores, and results behind a gate", apart,
        TOKENS * DIM + TOKENS * (TOKENS + 1) / 2);
}

static double star(const char *policy, const sinkproof_variant *variant,
                   const sinkproof_variant_head *head, const double *q_d, double *work) {
    sinkproof_policy p = policy_of(policy);
    return variant_star_score(&p, variant, head, q_d, work);
}

static double to_bf16(double x) {
    return sinkproof_round(SINKPROOF_BF16, x);
}

static void stars(void) {
    enum { DIM = 3, AHEAD = 4 };
    double whole[AHEAD + 3 * DIM + 1], *work = whole + AHEAD, one_dd[DIM * DIM], two_dd[DIM * DIM];
    double q_d[] = {1.1, 0.7, 1e300}, key_d[] = {0.3, 1.9, NAN}, inner_d[DIM], dot = 0;
    uint64_t state = SEED;
    sinkproof_variant key = {.star = SINKPROOF_STAR_KEY, .star_dims = 2};
    sinkproof_variant number = {.star = SINKPROOF_STAR_SCORE}, none = {.star = SINKPROOF_STAR_NONE};
    sinkproof_variant token = {.star = SINKPROOF_STAR_TOKEN}, zero = {.star = SINKPROOF_STAR_ZERO};
    sinkproof_variant_head head = {.dim = DIM, .key_d = key_d, .logit = 0.3};
    const double plain = q_d[0] * key_d[0] + q_d[1] * key_d[1], root = sqrt(DIM);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) whole[i] = KEPT;
    size_t apart = unlike(star("real-f64", &key, &head, q_d, work), plain / root);
    apart += unlike(star("real-f64,A5=bf16", &key, &head, q_d, work), to_bf16(plain) / root);
    apart += unlike(star("real-f64,A8=bf16", &key, &head, q_d, work), to_bf16(plain / root));
    apart += unlike(star("real-f64,A8=bf16", &number, &head, q_d, work), to_bf16(0.3));
    apart += unlike(star("real-f64", &number, &head, q_d, work), 0.3);
    apart += unlike(star("real-f64", &none, &head, q_d, work), -INFINITY);
    apart += unlike(star("real-f64", &token, &head, q_d, work), -INFINITY);
    apart += unlike(star("real-f64", &zero, &head, q_d, work), 0);
    // Features of the key, the others 0: W2 relu(W1 k).
    fill_integers(&state, 9, DIM * DIM, one_dd);
    fill_integers(&state, 9, DIM * DIM, two_dd);
    key.feature = SINKPROOF_FEATURE_MLP, key.unscaled = true;
    head.mlp_1_dd = one_dd, head.mlp_2_dd = two_dd;
    q_d[0] = 1, q_d[1] = -2, q_d[2] = 3, key_d[0] = 5, key_d[1] = 2;
    for (size_t f = 0; f < DIM; f++)
        inner_d[f] = fmax(one_dd[f * DIM] * key_d[0] + one_dd[f * DIM + 1] * key_d[1], 0);
    for (size_t i = 0; i < DIM * DIM; i++) dot += q_d[i / DIM] * two_dd[i] * inner_d[i % DIM];
    apart += star("real-f64", &key, &head, q_d, work) != dot || dot == 0;
    for (size_t i = 0; i < AHEAD; i++) apart += unlike(whole[i], KEPT);
    apart += unlike(work[3 * DIM], KEPT);
    say("attn.softmax kernel.identity", "scores of stars", apart, 9);
}

int main(void) {
    formats();
    ramps();
    angles();
    products();
    operands();
    blocks();
    mixture();
    rows();
    lanes();
    medians();
    directions();
    buckets();
    gates();
    stars();
    return tap_done();
}
