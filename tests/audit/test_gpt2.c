// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// GPT-2 from end to end (gpt2.forward): its checkpoint with and without the prefix that
// transformers writes, what is refused, the length of its context; honest engines within under
// every policy, whatever part of their trace is kept; the mistakes that such a model invites
// convicted where they happen; the truth beside the reference.
#include "model/container.h"
#include "proofs/truth/forward.h"
#include "tests/shared/judged_engine.h"
#include "tests/shared/opened.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

static const sinkproof_stages *const ref = &sinkproof_reference_stages;
static char folder[64] = "/tmp/sinkproof-gpt2-XXXXXX";

static const char *path_of(const char *name) {
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

// ---- the checkpoint

static char *text_of(const char *path, size_t *length) {
    FILE *in = fopen(path, "rb");
    char *text = malloc(1 << 20);
    must(in != NULL && text != NULL);
    *length = fread(text, 1, 1 << 20, in);
    fclose(in);
    text[*length] = '\0';
    return text;
}

static void put_text(const char *path, const char *text, size_t length) {
    FILE *out = fopen(path, "wb");
    must(out != NULL && fwrite(text, 1, length, out) == length);
    must(fclose(out) == 0);
}

// The file with "transformer." before every name, as transformers writes it. The header's length
// stands first, in 8 bytes.
static void add_prefix(const char *from, const char *to) {
    size_t length, header = 0, used = 8;
    char *text = text_of(from, &length), *out = malloc(2 * length + 8);
    must(out != NULL);
    for (size_t i = 0; i < 8; i++) header |= (size_t)(unsigned char)text[i] << 8 * i;
    for (size_t i = 8; i < 8 + header; i++) {
        out[used++] = text[i];
        bool name = text[i] == '"' &&
                    (strncmp(text + i + 1, "h.", 2) == 0 || strncmp(text + i + 1, "wte", 3) == 0 ||
                     strncmp(text + i + 1, "wpe", 3) == 0 || strncmp(text + i + 1, "ln_f", 4) == 0);
        if (name) used += (size_t)sprintf(out + used, "transformer.");
    }
    while (used % 8 != 0) out[used++] = ' ';
    for (size_t i = 0; i < 8; i++) out[i] = (char)((used - 8) >> 8 * i);
    memcpy(out + used, text + 8 + header, length - 8 - header);
    put_text(to, out, used + length - 8 - header);
    free(text);
    free(out);
}

// config.json with one text replaced by another.
static void change_config(const char *from, const char *to, const char *what, const char *by) {
    size_t length;
    char *text = text_of(from, &length), *at = strstr(text, what), changed[4096];
    must(at != NULL);
    int used = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, by,
                        at + strlen(what));
    put_text(to, changed, (size_t)used);
    free(text);
}

static bool same_logits(const sinkproof_model *a, const sinkproof_model *b) {
    enum { N = 5, VOCAB = 211 };
    static double x[2][N * VOCAB];
    const sinkproof_model *both[2] = {a, b};
    int32_t tokens[N];
    sinkproof_policy policy;
    must(sinkproof_policy_parse("real-f64", &policy, NULL));
    some_tokens(N, VOCAB, 3, tokens);
    for (int i = 0; i < 2; i++) {
        sinkproof_session *s = sinkproof_session_new(both[i], &policy);
        must(sinkproof_forward(s, N, tokens, x[i], NULL, NULL));
        sinkproof_session_free(s);
    }
    return memcmp(x[0], x[1], sizeof x[0]) == 0;
}

static void test_checkpoint(const sinkproof_model *made) {
    const sinkproof_container *hf = sinkproof_container_named("hf");
    const sinkproof_writing how = {.dequantize = false};
    sinkproof_error error = {""};
    uint64_t a = 0, b = 1;
    must(hf->write(hf, made, path_of("plain"), &how, &error));
    sinkproof_model *plain = open_model(path_of("plain"));
    ok(same_logits(made, plain) && sinkproof_model_fingerprint(made, &a, &error) &&
           sinkproof_model_fingerprint(plain, &b, &error) && a == b &&
           sinkproof_model_odd_count(plain) == 0,
       "gpt2.forward model.config what is written is read");
    must(mkdir(path_of("prefixed"), 0777) == 0);
    add_prefix(path_of("plain/model.safetensors"), path_of("prefixed/model.safetensors"));
    change_config(path_of("plain/config.json"), path_of("prefixed/config.json"), "gelu_new",
                  "gelu_new");
    sinkproof_model *prefixed = open_model(path_of("prefixed"));
    ok(same_logits(made, prefixed) && sinkproof_model_odd_count(prefixed) == 0,
       "gpt2.forward model.config names with \"transformer.\" are the same weights");
    sinkproof_model_close(plain);
    sinkproof_model_close(prefixed);
}

static void test_refused(void) {
    static const struct {
        const char *what, *by, *said;
    } changes[] = {
        {"\"gelu_new\"", "\"gelu\"", "\"activation_function\" to be \"gelu_new\""},
        {"\"scale_attn_weights\": true", "\"scale_attn_weights\": false",
         "\"scale_attn_weights\" to be true"},
        {"inverse_layer_idx\": false", "inverse_layer_idx\": true",
         "\"scale_attn_by_inverse_layer_idx\" to be false"},
        {"upcast_attn\": false", "upcast_attn\": true", "\"reorder_and_upcast_attn\" to be false"},
        {"\"n_head\": 6", "\"quantization_config\": {\"quant_method\": \"gptq\"}, \"n_head\": 6",
         "\"quantization_config\" to be absent, since it is read for GPT-OSS alone"},
        {"\"n_head\": 6", "\"n_head\": 7", "7 heads to divide the width 96"},
        {"\"n_inner\": 128", "\"n_inner\": 64", "expected shape"},
        {"\"n_positions\": 64", "\"n_positions\": 65", "expected shape"},
        {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", "lm_head.weight"},
    };
    char kept[128];
    snprintf(kept, sizeof kept, "%s", path_of("prefixed/config.json"));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        sinkproof_model *model = NULL;
        sinkproof_error error = {""};
        change_config(path_of("plain/config.json"), kept, changes[i].what, changes[i].by);
        bool opened = sinkproof_model_open(path_of("prefixed"), &model, &error);
        ok(!opened && strstr(error.text, changes[i].said) != NULL,
           "gpt2.forward model.config refused: %s", error.text);
        sinkproof_model_close(model);
    }
}

// ---- honest engines

static void test_honest(const sinkproof_model *model) {
    static const char *const policies[] = {"real-f64", "f32", "hf-bf16", "bf16", "llama-cpp"};
    static const char *const points[] = {NULL, "A1,A2,A6,A10,A11,A12,A13,M1,M6,M8,M10,M12,F1,F2",
                                         "T0,M12,F2", "A2,A11,M6,M10"};
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++)
        for (size_t k = 0; k < (p == 1 || p == 2 ? 4 : 1); k++) {
            char what[120];
            snprintf(what, sizeof what, "gpt2.forward bound.layernorm bound.gelu %s%s%s",
                     policies[p], points[k] != NULL ? ", kept " : "",
                     points[k] != NULL ? points[k] : "");
            sinkproof_judgement j = judged(model, ref, policies[p], policies[p], 12,
                                           k % 2 == 0 ? 0 : 7, 3 + p, points[k]);
            ok_within(&j, what, 12);
        }
}

// The midpoints of the truth, judged as an engine of binary64: every point is what it must be from
// what was given to it.
static void show_midpoints(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    const sinkproof_observer *observer = context;
    size_t count = 1;
    for (size_t d = 0; d < place->rank; d++) count *= place->shape[d];
    double *mid = malloc(count * sizeof *mid);
    must(mid != NULL);
    for (size_t i = 0; i < count; i++) mid[i] = arf_get_d(arb_midref(values + i), ARF_RND_NEAR);
    observer->see(observer->context, place->name, place->rank, place->shape, mid);
    free(mid);
}

static bool run_truth(void *of, const sinkproof_model *model, const sinkproof_policy *policy,
                      size_t n, const int32_t *tokens_n, const sinkproof_observer *observer,
                      sinkproof_error *error) {
    (void)of;
    (void)policy;
    sinkproof_observer shown = *observer;
    sinkproof_truth_hooks hooks = {.see = show_midpoints, .context = &shown};
    const sinkproof_truth_request request = {
        .model = model, .n = n, .tokens_n = tokens_n, .bits = 128, .hooks = &hooks};
    sinkproof_truth_result truth;
    if (!sinkproof_truth_forward(&request, &truth, error)) return false;
    sinkproof_truth_result_clear(&truth);
    return true;
}

// A residual is one exact rounding of its two terms, which here are rounded apart: not asked.
static void test_truth(const sinkproof_model *model) {
    sinkproof_judgement j = judged_run(model, run_truth, NULL, "real-f64", "real-f64", 4, 5, NULL);
    size_t outside = 0, points = 0;
    double worst = 0;
    for (size_t i = 0; i < j.n_reports; i++) {
        const sinkproof_point_report *r = &j.reports[i];
        if (sinkproof_trace_point_is_stream(r->point) && r->point != TRACE_T0) continue;
        points++, outside += r->outside;
        worst = sinkproof_keep_worst(worst, r->share_worst);
    }
    ok(points == 29 && outside == 0,
       "gpt2.forward layernorm.forward gelu.tanh the truth's midpoints at %zu points, %zu outside "
       "worst=%.3g bound=1",
       points, outside, worst);
    sinkproof_judgement_free(&j);
}

// ---- what is too long

static void test_context(const sinkproof_model *model) {
    enum { N = 65 };
    int32_t tokens[N];
    sinkproof_policy policy;
    sinkproof_error error = {""}, second = {""};
    sinkproof_truth_result truth;
    must(sinkproof_policy_parse("f32", &policy, NULL));
    some_tokens(N, 211, 5, tokens);
    sinkproof_session *s = sinkproof_session_new(model, &policy);
    const sinkproof_truth_request request = {
        .model = model, .n = N, .tokens_n = tokens, .bits = 64};
    ok(!sinkproof_forward(s, N, tokens, NULL, NULL, &error) &&
           strstr(error.text, "65 tokens exceed the model's context of 64") != NULL &&
           sinkproof_session_length(s) == 0 &&
           !sinkproof_truth_forward(&request, &truth, &second) &&
           strcmp(error.text, second.text) == 0,
       "gpt2.forward refused: %s", error.text);
    sinkproof_session_free(s);
}

// ---- mistakes

static void no_shift(const sinkproof_policy *p, sinkproof_point point,
                     const sinkproof_matrix *scale, const sinkproof_matrix *shift, double eps,
                     size_t n, const double *x, double *out, double *work) {
    (void)shift;
    sinkproof_rmsnorm(p, point, scale, eps, n, x, out, work);
}

static void exact_gelu(const sinkproof_policy *p, size_t n, const double *x, double *y) {
    for (size_t i = 0; i < n; i++) y[i] = round_at(p, AT_M8, x[i] / 2 * (1 + erf(x[i] / sqrt(2))));
}

static void unscaled(const sinkproof_policy *p, const sinkproof_block *block, const double *q,
                     const double *k, double *s_ij) {
    sinkproof_block wider = *block;
    ref->scores(p, block, q, k, s_ij);
    for (size_t i = 0; i < wider.rows * wider.keys; i++) s_ij[i] *= sqrt((double)wider.head_dim);
}

// Weights that an engine reads wrongly, of the checkpoint on disk.
typedef enum reading { SWAPPED, STORED, NEXT_POSITION, READINGS } reading;
static const sinkproof_model *source;
static void misread(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *weight) {
    reading how = *(const reading *)context;
    if (how == SWAPPED && (slot == SINKPROOF_W_Q || slot == SINKPROOF_W_K))
        *weight =
            sinkproof_model_slot(source, l, slot == SINKPROOF_W_Q ? SINKPROOF_W_K : SINKPROOF_W_Q);
    if (how == STORED && slot == SINKPROOF_W_O) {
        size_t rows = weight->row_stride;
        weight->row_stride = weight->col_stride, weight->col_stride = rows;
    }
    if (how == NEXT_POSITION && slot == SINKPROOF_POSITIONS)
        weight->data += weight->cols * 2, weight->rows--;
}

static void convicted(sinkproof_judgement *j, const char *what, const char *policy,
                      const char *at) {
    const char *found = j->first != NULL ? j->first->name : "nowhere";
    ok(strcmp(found, at) == 0, "gpt2.forward %s under %s: %s at %s, expected a bug at %s", what,
       policy, sinkproof_verdict_name(j->verdict), found, at);
    sinkproof_judgement_free(j);
}

static void test_mistakes(const sinkproof_model *model, const char *policy) {
    static const struct {
        const char *name, *at;
        sinkproof_stages stages;
    } planted[] = {{"RMSNorm for LayerNorm", "00.A1", {.layernorm = no_shift}},
                   {"the exact GELU", "00.M8", {.gelu = exact_gelu}},
                   {"scores not scaled", "00.A6", {.scores = unscaled}},
                   {"a sink of logit 0", "00.A9", {.sink_logits = logits_zero}}};
    static const struct {
        const char *name, *at;
    } readings[READINGS] = {{"query and key swapped", "00.A2.q"},
                            {"a matrix as it is stored", "00.A12"},
                            {"positions from 1 on", "T0"}};
    for (size_t m = 0; m < sizeof planted / sizeof *planted; m++) {
        sinkproof_stages stages = *ref;
        if (planted[m].stages.layernorm != NULL) stages.layernorm = planted[m].stages.layernorm;
        if (planted[m].stages.gelu != NULL) stages.gelu = planted[m].stages.gelu;
        if (planted[m].stages.scores != NULL) stages.scores = planted[m].stages.scores;
        if (planted[m].stages.sink_logits != NULL)
            stages.sink_logits = planted[m].stages.sink_logits;
        sinkproof_judgement j = judged(model, &stages, policy, policy, 10, 0, 7, NULL);
        convicted(&j, planted[m].name, policy, planted[m].at);
    }
    source = model;
    for (int r = 0; r < READINGS; r++) {
        reading how = (reading)r;
        sinkproof_model *other =
            sinkproof_model_edited(model, sinkproof_model_config(model), misread, &how);
        must(other != NULL);
        sinkproof_judgement j =
            judged_run(model, run_other_model, other, policy, policy, 10, 7, NULL);
        convicted(&j, readings[r].name, policy, readings[r].at);
        sinkproof_model_close(other);
    }
}

static void remove_all(void) {
    static const char *const names[] = {
        "plain/config.json",    "plain/model.safetensors",    "plain",
        "prefixed/config.json", "prefixed/model.safetensors", "prefixed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) remove(path_of(names[i]));
    remove(folder);
}

int main(void) {
    must(mkdtemp(folder) != NULL);
    sinkproof_model *made = open_model("synthetic:tiny-gpt2,layers=2");
    test_checkpoint(made);
    test_refused();
    test_honest(made);
    test_truth(made);
    test_context(made);
    sinkproof_model *stored = open_model(path_of("plain"));
    test_mistakes(stored, "f32");
    test_mistakes(stored, "hf-bf16");
    sinkproof_model_close(stored);
    sinkproof_model_close(made);
    remove_all();
    return tap_done();
}
