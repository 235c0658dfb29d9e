// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// False alarms of the forms: the reference with its attention weights from a float32 kernel of each
// form, and its experts' weights renormalised over all experts, judged under the generic policies:
// whole traces and traces that lack the scores and the weights. None may be outside, none
// suspicious.
#include "tests/forms_engine.h"
#include "tests/judged.h"

static const uint64_t SEED = 20260213;
static const kernel *form;
static uint64_t state;

// A7 to A10 by the kernel; the scores as float32 holds them.
static void softmax_by_form(const sinkproof_policy *policy, const sinkproof_block *block,
                            double sink, const double *s_ij, double *alpha_ij) {
    static row r;
    static float alpha[MOST + 1];
    r.scale = (float)(1 / sqrt((double)block->head_dim));
    r.b = (float)sinkproof_round_at(policy, SINKPROOF_AT_A8, sink);
    for (size_t i = 0; i < block->rows; i++) {
        size_t last = block->first + i, first = sinkproof_mask_first(block->window, last);
        double *out = alpha_ij + i * (block->keys + 1);
        memset(out, 0, block->keys * sizeof *out);
        r.n = last + 1 - first;
        for (size_t j = 0; j < r.n; j++) {
            r.z[j] = (float)s_ij[i * block->keys + first + j];
            r.raw[j] = r.z[j] / r.scale;
        }
        machine f = draw_machine(&state);
        form->run(&f, &r, alpha);
        for (size_t j = 0; j < r.n; j++)
            out[first + j] = sinkproof_round_at(policy, SINKPROOF_AT_A9, alpha[j]);
        out[block->keys] = sinkproof_round_at(policy, SINKPROOF_AT_A9, alpha[r.n]);
    }
}

// M4: a softmax over all experts, the chosen over their sum.
static void router_renormalised(const sinkproof_policy *policy, const sinkproof_layer *layer,
                                size_t n, size_t n_chosen, const double *t_nc, double *logits_ne,
                                int32_t *chosen_nk, double *weights_nk, double *work) {
    size_t experts = layer->w_router.rows;
    sinkproof_router(policy, layer, n, n_chosen, t_nc, logits_ne, chosen_nk, weights_nk, work);
    for (size_t t = 0; t < n; t++) {
        const double *g = logits_ne + t * experts;
        const int32_t *chosen = chosen_nk + t * n_chosen;
        float sum = 0, kept = 0, p[SINKPROOF_MAX_CHOSEN], top = (float)g[chosen[0]];
        for (size_t e = 0; e < experts; e++) sum += expf((float)g[e] - top);
        for (size_t k = 0; k < n_chosen; k++) kept += p[k] = expf((float)g[chosen[k]] - top) / sum;
        for (size_t k = 0; k < n_chosen; k++)
            weights_nk[t * n_chosen + k] = sinkproof_round_at(policy, SINKPROOF_AT_M4, p[k] / kept);
    }
}

static const char *const kept[] = {NULL, "A4,A11,A13,M1,M2,M3,M8,M12", "T0,A13,M2,M3,M12,F1,F2"};
static const size_t lengths[] = {1, 9, 33, 61};

static void honest(const sinkproof_stages *stages, const char *policy, const char *what) {
    size_t runs = 0, outside = 0, unlikely = 0, wrong = 0;
    double share = 0, drift = 0;
    for (uint64_t run = 0; run < 6; run++) {
        sinkproof_model *model;
        sinkproof_error error;
        char spec[64];
        snprintf(spec, sizeof spec, "synthetic:tiny,seed=%d", (int)run + 1);
        if (!sinkproof_model_open(spec, &model, &error)) abort();
        sinkproof_judgement j =
            judged(model, stages, policy, policy, lengths[run % 4], 0, SEED + run, kept[run % 3]);
        for (size_t i = 0; i < j.n_reports; i++) {
            const sinkproof_point_report *r = &j.reports[i];
            outside += r->outside, unlikely += r->unlikely;
            share = fmax(share, r->share_worst);
            if (r->drift.bin >= 0) drift = fmax(drift, fabs(r->drift.gain) / r->drift.limit);
            if (r->verdict > SINKPROOF_VERDICT_WITHIN)
                note("%s: %s in run %d", r->name, sinkproof_verdict_name(r->verdict), (int)run);
        }
        wrong += j.verdict > SINKPROOF_VERDICT_WITHIN;
        runs++;
        sinkproof_judgement_free(&j);
        sinkproof_model_close(model);
    }
    ok(wrong == 0 && outside == 0 && unlikely == 0,
       "%s: %zu honest runs under %s, %zu outside, %zu unlikely worst=%.3g bound=1 (drift %.3g of "
       "1)",
       what, runs, policy, outside, unlikely, share, drift);
}

int main(void) {
    static const char *const policies[] = {"f32", "bf16"};
    char what[120];
    for (size_t p = 0; p < 2; p++) {
        for (size_t k = 0; k < KERNELS; k++) {
            sinkproof_stages stages = sinkproof_reference_stages;
            form = &kernels[k], state = SEED;
            stages.softmax_sink = softmax_by_form;
            snprintf(what, sizeof what, "%s %s", form->id, form->name);
            honest(&stages, policies[p], what);
        }
        sinkproof_stages stages = sinkproof_reference_stages;
        stages.router = router_renormalised;
        honest(&stages, policies[p], "bound.form-router renormalised over all experts");
    }
    return tap_done();
}
