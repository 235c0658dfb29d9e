// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// An engine with a low-rank adapter beside its weights: honest ones, which round or do not round
// between its products, are within; one that leaves the adapter out or scales it otherwise is
// convicted and named; files that are no adapter of the model are refused.
#include "audit/sinkproof.h"
#include "model/adapter.h"
#include "model/safetensors.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKENS = 5, LAYERS = 2, RANK_MOST = 8, WIDEST = 4096 };
static const int32_t tokens_n[TOKENS] = {3, 1, 4, 1, 5};
static sinkproof_error error;

// The report as a comment, line by line.
static void note_ruling(const sinkproof_ruling *ruling) {
    const char *c = ruling != NULL ? sinkproof_ruling_text(ruling) : error.text;
    printf("# ");
    for (; *c != '\0'; c++) printf(*c == '\n' ? "\n# " : "%c", *c);
    printf("\n");
}

// ---- the adapter's files

typedef struct adapter_files {
    char directory[64];
    size_t rank;
    double alpha;
    bool by_root, short_numbers; // bfloat16, else float32
    unsigned slots;
} adapter_files;

static const struct module {
    const char *name;
    sinkproof_slot slot;
} modules[] = {
    {"q", SINKPROOF_W_Q}, {"k", SINKPROOF_W_K}, {"v", SINKPROOF_W_V}, {"o", SINKPROOF_W_O}};
enum { MODULES = sizeof modules / sizeof modules[0] };

static uint64_t state = 12345;
static double draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / 0x1p23 - 1;
}

static void write_text(const char *directory, const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    must(file != NULL && fputs(text, file) >= 0);
    fclose(file);
}

static void write_config(const adapter_files *f, const char *more) {
    char text[512];
    snprintf(text, sizeof text,
             "{\"peft_type\": \"LORA\", \"r\": %zu, \"lora_alpha\": %g, \"use_rslora\": %s, "
             "\"bias\": \"none\", \"use_dora\": false, \"target_modules\": [\"q_proj\"]%s}",
             f->rank, f->alpha, f->by_root ? "true" : "false", more);
    write_text(f->directory, "adapter_config.json", text);
}

static void put_numbers(sinkproof_safetensors_writer *out, size_t n, double size,
                        bool short_numbers) {
    for (size_t i = 0; i < n; i++) {
        float x =
            (float)sinkproof_round(short_numbers ? SINKPROOF_BF16 : SINKPROOF_F32, draw() * size);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint16_t high = (uint16_t)(bits >> 16);
        must(short_numbers ? sinkproof_safetensors_writer_bytes(out, &high, sizeof high, &error)
                           : sinkproof_safetensors_writer_bytes(out, &bits, sizeof bits, &error));
    }
}

// Writes both files; B has rows_more rows too many.
static void write_adapter(adapter_files *f, const sinkproof_model *model, size_t rows_more) {
    char name[128], path[128];
    const sinkproof_config *c = sinkproof_model_config(model);
    sinkproof_dtype dtype = f->short_numbers ? SINKPROOF_DTYPE_BF16 : SINKPROOF_DTYPE_F32;
    sinkproof_safetensors_writer *out = sinkproof_safetensors_writer_new();
    strcpy(f->directory, "/tmp/sinkproof-adapter-XXXXXX");
    must(mkdtemp(f->directory) != NULL);
    write_config(f, "");
    for (int writing = 0; writing < 2; writing++) {
        snprintf(path, sizeof path, "%s/adapter_model.safetensors", f->directory);
        if (writing) must(sinkproof_safetensors_writer_begin(out, path, &error));
        for (size_t l = 0; l < LAYERS; l++)
            for (int m = 0; m < MODULES; m++) {
                size_t count, rows, cols;
                if ((f->slots >> modules[m].slot & 1) == 0) continue;
                sinkproof_slot_shape(modules[m].slot, c, &count, &rows, &cols);
                const size_t a[2] = {f->rank, cols}, b[2] = {rows + rows_more, f->rank};
                for (int of_b = 0; of_b < 2; of_b++) {
                    const size_t *shape = of_b ? b : a;
                    snprintf(name, sizeof name,
                             "base_model.model.model.layers.%zu.self_attn.%s_proj.lora_%c.weight",
                             l, modules[m].name, of_b ? 'B' : 'A');
                    if (writing)
                        put_numbers(out, shape[0] * shape[1], of_b ? 0.4 : 1 / sqrt((double)cols),
                                    f->short_numbers);
                    else
                        sinkproof_safetensors_writer_declare(out, name, dtype, 2, shape);
                }
            }
    }
    must(sinkproof_safetensors_writer_finish(out, &error));
    sinkproof_safetensors_writer_free(out);
}

static void remove_adapter(const adapter_files *f) {
    char path[128];
    snprintf(path, sizeof path, "%s/adapter_config.json", f->directory);
    unlink(path);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", f->directory);
    unlink(path);
    rmdir(f->directory);
}

// ---- an engine

// What it stores between its products, in the format of the results, and where it scales.
enum { STORES_T = 1, STORES_U = 2, CONVERTS = 4, SCALES_FIRST = 8, SCALES_B = 16, KEEPS_BASE = 32 };

typedef struct engine {
    const sinkproof_adapter *adapter;
    sinkproof_format format;
    int habits;
    double scale, mistaken_scale;
    unsigned mistaken; // slots
    sinkproof_slot slot;
} engine;

static double kept(const engine *e, bool stored, double x) {
    return sinkproof_round(stored ? e->format : SINKPROOF_F32, x);
}

// W x and its bias in float32, of an engine that does not store it first.
static double base_unrounded(const engine *e, const sinkproof_call *call, size_t r, const double *x,
                             double *row) {
    sinkproof_matrix w = sinkproof_model_slot(call->model, call->layer, e->slot),
                     b = sinkproof_model_slot(call->model, call->layer, e->slot + 1);
    double sum = 0;
    sinkproof_matrix_row(&w, r, row);
    for (size_t c = 0; c < w.cols; c++) sum += row[c] * x[c];
    if (b.count > 0) sinkproof_matrix_row(&b, 0, row), sum += row[r];
    return sinkproof_round(SINKPROOF_F32, sum);
}

static bool adapted(void *context, const sinkproof_call *call, double *values,
                    sinkproof_error *why) {
    const engine *e = context;
    const sinkproof_adapter_part *p;
    const double *x_ic = sinkproof_call_input(call, e->slot == SINKPROOF_W_O ? "A11" : "A1");
    (void)why;
    if (sinkproof_adapter_parts(e->adapter, call->layer, e->slot, &p) == 0) return true;
    size_t rank = p->a.rows, rows = p->b.rows, cols = p->a.cols;
    static double row[WIDEST];
    bool wrong = e->mistaken >> e->slot & 1, converts = e->habits & CONVERTS;
    double s = wrong ? e->mistaken_scale : e->scale;
    must(cols <= WIDEST && rows <= WIDEST && rank <= RANK_MOST);
    for (size_t i = 0; i < call->n; i++) {
        double t[RANK_MOST];
        for (size_t k = 0; k < rank; k++) {
            float sum = 0;
            sinkproof_matrix_row(&p->a, k, row);
            for (size_t c = 0; c < cols; c++)
                sum += (float)(kept(e, converts, row[c]) * x_ic[i * cols + c]);
            t[k] = kept(e, e->habits & STORES_T, sum);
            if (e->habits & SCALES_FIRST) t[k] = kept(e, e->habits & STORES_T, s * t[k]);
        }
        for (size_t r = 0; r < rows; r++) {
            float sum = 0;
            sinkproof_matrix_row(&p->b, r, row);
            for (size_t k = rank; k-- > 0;) {
                double b = kept(e, converts, row[k]);
                if ((e->habits & SCALES_B) && !(e->habits & SCALES_FIRST))
                    b = kept(e, converts, s * b);
                sum += (float)(b * t[k]);
            }
            double u = kept(e, e->habits & STORES_U, sum);
            if (!(e->habits & (SCALES_FIRST | SCALES_B))) u = kept(e, e->habits & STORES_U, s * u);
            double y = values[i * rows + r];
            if (e->habits & KEEPS_BASE) y = base_unrounded(e, call, r, &x_ic[i * cols], row);
            values[i * rows + r] =
                sinkproof_round(e->format, sinkproof_round(SINKPROOF_F32, y + u));
        }
    }
    return true;
}

static sinkproof_trace *traced(const sinkproof_model *model, const char *policy,
                               const engine *how) {
    static const char *const points[MODULES] = {"A2.q", "A2.k", "A2.v", "A12"};
    sinkproof_run *run;
    sinkproof_trace *trace;
    engine of[MODULES];
    must(sinkproof_run_new(model, "ref", policy, NULL, &run, &error));
    for (int m = 0; m < MODULES; m++) {
        of[m] = *how, of[m].slot = modules[m].slot;
        must(sinkproof_run_replace(run, points[m], m < 3 ? "A1" : "A11", adapted, &of[m], &error));
    }
    must(sinkproof_run_trace(run, TOKENS, tokens_n, NULL, NULL, &trace, &error));
    sinkproof_run_free(run);
    return trace;
}

static sinkproof_ruling *ruled(const sinkproof_model *model, const sinkproof_trace *trace,
                               const char *policy, const char *directory) {
    sinkproof_ruling *ruling = NULL;
    const sinkproof_trial_options how = {
        .size = sizeof how, .policy = policy, .adapter = directory, .local = true, .no_hint = true};
    if (!sinkproof_judge_trace(model, trace, &how, &ruling, &error)) return NULL;
    return ruling;
}

static const struct policy {
    const char *name;
    sinkproof_format format;
} policies[] = {{"f32", SINKPROOF_F32},
                {"bf16", SINKPROOF_BF16},
                {"f16", SINKPROOF_F16},
                {"hf-bf16", SINKPROOF_BF16}};

// Honest engines: none of the habits, all of them, and mixtures.
static void check_honest(const sinkproof_model *model, adapter_files *f,
                         const sinkproof_adapter *a) {
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        int within = 0, all = 0, last = -1;
        static const int some[] = {0, 21, 23, 42, 54, 63};
        for (size_t h = 0; h < sizeof some / sizeof some[0]; h++, all++) {
            const int habits = some[h];
            const engine how = {a, policies[p].format, habits, f->alpha / (double)f->rank, 0, 0, 0};
            sinkproof_trace *trace = traced(model, policies[p].name, &how);
            sinkproof_ruling *r = ruled(model, trace, policies[p].name, f->directory);
            bool good = r != NULL && sinkproof_ruling_exit(r) == 0;
            within += good;
            if (!good) last = habits, note_ruling(r);
            sinkproof_ruling_free(r);
            sinkproof_trace_close(trace);
        }
        ok(within == all,
           "rank %zu, alpha %g, %s under %s: %d of %d honest engines within (last outside: %d)",
           f->rank, f->alpha, f->short_numbers ? "bfloat16" : "float32", policies[p].name, within,
           all, last);
    }
}

static void check_mistake(const sinkproof_model *model, const adapter_files *f,
                          const sinkproof_adapter *a, size_t p, double scale, unsigned slots,
                          const char *id) {
    const engine how = {a,
                        policies[p].format,
                        STORES_T | STORES_U,
                        f->alpha / (f->by_root ? sqrt((double)f->rank) : (double)f->rank),
                        scale,
                        slots,
                        0};
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", id);
    sinkproof_trace *trace = traced(model, policies[p].name, &how);
    sinkproof_ruling *r = ruled(model, trace, policies[p].name, f->directory);
    ok(r != NULL && sinkproof_ruling_exit(r) == 1 &&
           strstr(sinkproof_ruling_json(r), quoted) != NULL,
       "%s under %s: convicted at %s, and named", id, policies[p].name,
       r != NULL && sinkproof_ruling_first(r) != NULL ? sinkproof_ruling_first(r) : "nothing");
    if (r != NULL && strstr(sinkproof_ruling_json(r), quoted) == NULL) note_ruling(r);
    sinkproof_ruling_free(r);
    sinkproof_trace_close(trace);
}

#define OF(slot) (1u << SINKPROOF_##slot)
#define ALL      (OF(W_Q) | OF(W_K) | OF(W_V) | OF(W_O))

static sinkproof_adapter *written(adapter_files *f, const sinkproof_model *model) {
    sinkproof_adapter *adapter;
    write_adapter(f, model, 0);
    must(sinkproof_adapter_open(f->directory, model, &adapter, &error));
    return adapter;
}

static void check_refused(const sinkproof_model *model, const sinkproof_trace *trace) {
    static const struct {
        const char *more, *says;
        size_t rank, rows_more;
    } wrong[] = {
        {"", "expected a matrix of", 4, 1},
        {", \"use_dora\": true", "use_dora", 4, 0},
        {", \"modules_to_save\": [\"embed_tokens\"]", "modules_to_save", 4, 0},
        {", \"init_lora_weights\": \"pissa\"", "keeps the weights of the base model", 4, 0},
        {", \"target_parameters\": [\"mlp.experts.down_proj\"]", "target_parameters", 4, 0},
        {", \"alpha_pattern\": {\"q_proj\": 3}", "alpha_pattern", 4, 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        adapter_files f = {.rank = wrong[i].rank, .alpha = 8, .slots = ALL};
        write_adapter(&f, model, wrong[i].rows_more);
        char config[256];
        snprintf(config, sizeof config, "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8%s}",
                 wrong[i].more);
        write_text(f.directory, "adapter_config.json", config);
        sinkproof_ruling *r = ruled(model, trace, "f32", f.directory);
        ok(r == NULL && strstr(error.text, wrong[i].says) != NULL, "refused: %s", error.text);
        sinkproof_ruling_free(r);
        remove_adapter(&f);
    }
    sinkproof_ruling *r = ruled(model, trace, "f32", "/tmp/sinkproof-no-such-adapter");
    ok(r == NULL && strstr(error.text, "adapter_config.json") != NULL, "refused: %s", error.text);
}

int main(void) {
    sinkproof_model *model;
    must(sinkproof_model_open("synthetic:tiny,layers=2", &model, &error));
    adapter_files even = {.rank = 4, .alpha = 8, .short_numbers = true, .slots = ALL},
                  odd = {.rank = 6, .alpha = 10, .slots = ALL},
                  root = {.rank = 8, .alpha = 16, .by_root = true, .slots = ALL};
    sinkproof_adapter *a = written(&even, model), *b = written(&odd, model),
                      *c = written(&root, model);
    check_honest(model, &even, a);
    check_honest(model, &odd, b);
    check_mistake(model, &even, a, 1, 0, ALL, "adapter-left-out");
    check_mistake(model, &odd, b, 0, 0, OF(W_V), "adapter-left-out-v");
    check_mistake(model, &even, a, 1, 1, ALL, "adapter-unscaled");
    check_mistake(model, &odd, b, 3, 100. / 36, ALL, "adapter-scaled-twice");
    check_mistake(model, &even, a, 0, 8, OF(W_O), "adapter-by-alpha-o");
    check_mistake(model, &root, c, 1, 2, ALL, "adapter-by-rank");
    check_mistake(model, &odd, b, 1, 20. / 6, OF(W_Q), "adapter-twice-q");
    const engine honest = {b, SINKPROOF_F32, 0, odd.alpha / 6, 0, 0, 0};
    sinkproof_trace *trace = traced(model, "f32", &honest);
    sinkproof_ruling *r = ruled(model, trace, "f32", NULL);
    ok(r != NULL && sinkproof_ruling_exit(r) == 1, "without the adapter its engine is convicted");
    sinkproof_ruling_free(r);
    r = ruled(model, trace, "f32,ranks=2", odd.directory);
    ok(r == NULL && strstr(error.text, "without ranks") != NULL, "refused: %s", error.text);
    sinkproof_ruling_free(r);
    check_refused(model, trace);
    sinkproof_trace_close(trace);
    sinkproof_adapter_close(a), sinkproof_adapter_close(b), sinkproof_adapter_close(c);
    remove_adapter(&even), remove_adapter(&odd), remove_adapter(&root);
    sinkproof_model_close(model);
    return tap_done();
}
