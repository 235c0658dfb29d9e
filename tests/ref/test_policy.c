// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Policies: the tables, the overrides, the refusals, and that the published ones differ only where
// they are documented to.
#include "ref/tensor_core.h"
#include "tests/shared/reference.h"

static void test_names(void) {
    const char *const *names = sinkproof_policy_names();
    for (size_t i = 0; names[i] != NULL; i++) {
        sinkproof_policy p;
        sinkproof_error e;
        bool good = sinkproof_policy_parse(names[i], &p, &e) && strcmp(p.name, names[i]) == 0;
        for (size_t f = 0; good && f < SINKPROOF_FUNCTION_COUNT; f++) good = p.ulp[f] >= 0.5;
        ok(good, "policy %s is known", names[i]);
    }
}

// Every point that differs is in `expected`, and each of those differs.
static void test_difference(const char *a, const char *b, const char *expected) {
    sinkproof_policy p = policy_of(a), q = policy_of(b);
    char found[512] = "";
    for (size_t i = 0; i < AT_POINTS; i++) {
        if (p.at[i].format == q.at[i].format && p.at[i].optional == q.at[i].optional) continue;
        strcat(strcat(found, sinkproof_point_name((sinkproof_point)i)), " ");
    }
    ok(strcmp(found, expected) == 0 && p.inside == q.inside && p.yarn_truncate == q.yarn_truncate,
       "%s and %s differ at: %s", a, b, found);
}

static void test_tables(void) {
    sinkproof_policy real = policy_of("real-f64"), f32 = policy_of("f32");
    sinkproof_policy openai = policy_of("openai-bf16"), bf16 = policy_of("bf16");
    bool none = true, narrow = true, fixed = true, general = true;
    for (size_t i = 0; i < AT_POINTS; i++) {
        none = none && real.at[i].format == SINKPROOF_REAL && !real.at[i].optional;
        narrow =
            narrow && (f32.at[i].format == SINKPROOF_F32 || f32.at[i].format == SINKPROOF_REAL);
        fixed = fixed && !openai.at[i].optional;
        // Whatever the published reference rounds, the generic policy may round as coarsely.
        general = general && bf16.at[i].format >= openai.at[i].format;
    }
    ok(none && real.inside == SINKPROOF_F64, "real-f64 rounds nowhere");
    ok(narrow, "f32 rounds to float32 or not at all");
    ok(fixed && bf16.at[AT_A5].optional, "openai-bf16 leaves no rounding open; bf16 is generic");
    ok(general, "bf16 admits every rounding of openai-bf16");
    for (int f = 0; f < 2; f++) {
        sinkproof_policy wide = policy_of(f == 0 ? "bf16" : "f16");
        sinkproof_format stored = f == 0 ? SINKPROOF_BF16 : SINKPROOF_F16;
        bool norms = true;
        for (int p = AT_A1_NORM; p <= AT_F1_NORM; p++)
            if (p == AT_A1_NORM || p == AT_M1_NORM || p == AT_F1_NORM)
                norms = norms && wide.at[p].format == stored && wide.at[p].optional;
        ok(norms, "%s may round a norm before its weight", wide.name);
    }
    ok(openai.at[AT_M8_ALPHA].format == SINKPROOF_F32 &&
           bf16.at[AT_M8_ALPHA].format == SINKPROOF_F32,
       "1.702 is nowhere rounded to bf16 unless an override says so");
}

static void test_overrides(void) {
    sinkproof_policy p = policy_of("openai-bf16,M8.alpha=bf16,M9=real,A5=f32?,exp=4ulp,pow=1.5,"
                                   "inside=f64,yarn=truncate");
    ok(p.at[AT_M8_ALPHA].format == SINKPROOF_BF16, "M8.alpha=bf16");
    ok(p.at[AT_M9].format == SINKPROOF_REAL && !p.at[AT_M9].optional, "M9=real");
    ok(p.at[AT_A5].format == SINKPROOF_F32 && p.at[AT_A5].optional, "A5=f32?");
    ok(p.ulp[SINKPROOF_EXP] == 4 && p.ulp[SINKPROOF_POW] == 1.5, "exp=4ulp, pow=1.5");
    ok(p.inside == SINKPROOF_F64 && p.yarn_truncate, "inside=f64, yarn=truncate");
    ok(p.ulp[SINKPROOF_DIV] == 0.5 && p.ulp[SINKPROOF_RCP] == 0.5,
       "quotients and reciprocals are correctly rounded unless a policy says so");
    p = policy_of("f32,div=2ulp,rcp=1");
    ok(p.ulp[SINKPROOF_DIV] == 2 && p.ulp[SINKPROOF_RCP] == 1 && p.ulp[SINKPROOF_EXP] == 2,
       "div=2ulp, rcp=1");
    p = policy_of("flash-bf16");
    ok(p.ulp[SINKPROOF_DIV] == 2 && p.ulp[SINKPROOF_RCP] == 1, "flash-bf16 divides as GPUs do");
    p = policy_of("openai-bf16,M8.alpha=bf16,M9=real,A5=f32?");
    ok(round_at(&p, AT_M8_ALPHA, 1.702) == 1.703125, "1.702 in bf16 is 1.703125");
    ok(round_at(&p, AT_M9, 1.702) == 1.702, "an absent point rounds nothing");
}

// Exact policies fix the form of every stage, generic ones admit every form that is known, but for
// those of A4, which are asked for by name.
static const struct forms_of_policy {
    const char *name, *forms[SINKPROOF_FORMED_COUNT]; // NULL: the definition
} forms_of_policies[] = {
    {"openai-bf16", {NULL}},
    {"hf-bf16", {NULL}},
    {"hf-llama-bf16", {NULL}},
    {"llama-cpp", {[SINKPROOF_FORM_OF_A4_FREQ] = "powers|running-product"}},
    {"llama-cpp-flash",
     {[SINKPROOF_FORM_OF_A4_FREQ] = "powers|running-product",
      [SINKPROOF_FORM_OF_A9] = "running-max"}},
    {"mlx", {[SINKPROOF_FORM_OF_A4] = "scaled-first"}},
    {"vllm-bf16",
     {[SINKPROOF_FORM_OF_A9] = "definition|running-max",
      [SINKPROOF_FORM_OF_M4] = "any",
      [SINKPROOF_FORM_OF_M8] = "any"}},
    {"flash-bf16",
     {[SINKPROOF_FORM_OF_A9] = "definition|base-2|running-max",
      [SINKPROOF_FORM_OF_M4] = "any",
      [SINKPROOF_FORM_OF_M8] = "any"}},
    {"flash-f16",
     {[SINKPROOF_FORM_OF_A9] = "definition|base-2|running-max",
      [SINKPROOF_FORM_OF_M4] = "any",
      [SINKPROOF_FORM_OF_M8] = "any"}},
};

static bool has_forms(const sinkproof_policy *p, const struct forms_of_policy *known) {
    bool good = true;
    for (int f = 0; f < SINKPROOF_FORMED_COUNT; f++) {
        const char *stage = sinkproof_formed_name((sinkproof_formed)f);
        bool named = f == SINKPROOF_FORM_OF_A4_FREQ || f == SINKPROOF_FORM_OF_A4;
        const char *forms = known != NULL ? known->forms[f] : named ? NULL : "any";
        char text[80];
        snprintf(text, sizeof text, "f32,%s=%s", stage,
                 forms != NULL ? forms : sinkproof_form_name((sinkproof_formed)f, 0));
        good = good && p->forms[f] == policy_of(text).forms[f];
    }
    return good;
}

static void test_forms(void) {
    const char *const *names = sinkproof_policy_names();
    sinkproof_error e;
    for (size_t i = 0; names[i] != NULL; i++) {
        const struct forms_of_policy *known = NULL;
        for (size_t k = 0; k < sizeof forms_of_policies / sizeof *forms_of_policies; k++)
            if (strcmp(names[i], forms_of_policies[k].name) == 0) known = &forms_of_policies[k];
        sinkproof_policy p = policy_of(names[i]);
        ok(has_forms(&p, known), "%s admits %s", names[i],
           known != NULL ? "its own forms alone" : "every form, and of A4 the definition");
    }
    sinkproof_policy p = policy_of("openai-bf16,A9.form=base-2|lse-gated,M8.form=tanh|tanh");
    ok(p.forms[SINKPROOF_FORM_OF_A9] ==
               (1u << SINKPROOF_A9_BASE_2 | 1u << SINKPROOF_A9_LSE_GATED) &&
           p.forms[SINKPROOF_FORM_OF_M4] == 1 && p.forms[SINKPROOF_FORM_OF_M8] == 2,
       "forms are sets: %x %x %x", p.forms[SINKPROOF_FORM_OF_A9], p.forms[SINKPROOF_FORM_OF_M4],
       p.forms[SINKPROOF_FORM_OF_M8]);
    ok(!sinkproof_policy_admits_all(&p, sinkproof_definitions, &e) &&
           strstr(e.text, "A9.form=definition") != NULL,
       "the reference does not stand for other forms: %s", e.text);
    for (int flash = 0; flash < 2; flash++) {
        p = policy_of(flash ? "llama-cpp-flash" : "llama-cpp");
        ok(p.forms[SINKPROOF_FORM_OF_A9] == (flash ? 1u << SINKPROOF_A9_RUNNING_MAX : 1) &&
               p.forms[SINKPROOF_FORM_OF_A4_FREQ] == 3 && p.forms[SINKPROOF_FORM_OF_A4] == 1 &&
               p.forms[SINKPROOF_FORM_OF_M4] == 1 && p.forms[SINKPROOF_FORM_OF_M8] == 1,
           "%s: angles by a running product or not, %s, the definitions elsewhere", p.name,
           flash ? "a running maximum" : "the softmax as defined");
    }
    p = policy_of("f32,A9.form=any");
    ok(p.forms[SINKPROOF_FORM_OF_A9] == 31, "any is all five forms of A9");
}

// What the next operation may read unrounded, an exponential that errs more the larger its
// argument.
static void test_freedoms(void) {
    sinkproof_policy p = policy_of("bf16,unrounded=A13|M12,exp=3ulp+0.62|x|");
    size_t named = 0, any = 0;
    for (int at = 0; at < AT_POINTS; at++) named += p.unrounded[at];
    ok(named == 2 && p.unrounded[AT_A13] && p.unrounded[AT_M12] && p.ulp[SINKPROOF_EXP] == 3 &&
           p.exp_growth == 0.62,
       "A13 and M12 may be read unrounded, and exp errs by 3 ulp and 0.62 for each unit");
    p = policy_of("bf16,unrounded=any,unrounded=none,exp=3ulp+0.62|x|,exp=2");
    ok(!sinkproof_policy_reads_unrounded(&p) && p.exp_growth == 0,
       "none is none, and an error without growth has none");
    p = policy_of("bf16,unrounded=any");
    for (int at = 0; at < AT_POINTS; at++) any += p.unrounded[at];
    ok(any == 20 && !p.unrounded[AT_A4_COS] && !p.unrounded[AT_M5] && !p.unrounded[AT_A1_NORM],
       "any is every point of a trace but M5 and M9: %zu", any);
    p = policy_of("vllm-bf16");
    ok(p.unrounded[AT_A13] && p.unrounded[AT_M12] && !p.unrounded[AT_A1],
       "vllm-bf16 adds the residual and takes the norm in one kernel");
    p = policy_of("onnxruntime");
    ok(p.unrounded[AT_A13] && p.unrounded[AT_M12] && p.at[AT_A13].format == SINKPROOF_F16 &&
           !p.at[AT_A2].optional && p.at[AT_A4_PROD].format == SINKPROOF_F32,
       "so does onnxruntime, in binary16");
}

// Operands that meet a stored weight may be read in blocks, or in the weight's own type; nothing
// else may.
static void test_operands(void) {
    sinkproof_policy p = policy_of("f32,M5.in=q8_0,M9.in=weight?,A2.in=bf16,A11.acc=f16?");
    ok(p.at[AT_M5_IN].format == SINKPROOF_Q8_0 && !p.at[AT_M5_IN].optional &&
           p.at[AT_M9_IN].format == SINKPROOF_OF_WEIGHT && p.at[AT_M9_IN].optional &&
           p.at[AT_A2_IN].format == SINKPROOF_BF16 && p.at[AT_A11_ACC].format == SINKPROOF_F16 &&
           p.at[AT_A11_ACC].optional,
       "M5.in=%s M9.in=%s? A2.in=bf16 A11.acc=f16?", sinkproof_format_name(p.at[AT_M5_IN].format),
       sinkproof_format_name(p.at[AT_M9_IN].format));
    size_t blocks = 0, numbers = 0;
    for (int i = 0; i < AT_POINTS; i++) {
        char text[64];
        sinkproof_error e;
        const char *name = sinkproof_point_name((sinkproof_point)i);
        snprintf(text, sizeof text, "f32,%s=q8_0", name);
        bool read = strlen(name) > 3 && strcmp(name + strlen(name) - 3, ".in") == 0;
        blocks += sinkproof_policy_parse(text, &p, &e) == read;
        snprintf(text, sizeof text, "f32,%s=f16", name);
        numbers += sinkproof_policy_parse(text, &p, &e);
    }
    ok(blocks == AT_POINTS && numbers == AT_POINTS,
       "q8_0 is read at points .in alone, f16 at all %d", (int)AT_POINTS);
    sinkproof_policy llama = policy_of("llama-cpp"), flash = policy_of("llama-cpp-flash");
    ok(llama.yarn_truncate && flash.yarn_truncate &&
           llama.at[AT_A11_WEIGHTS].format == SINKPROOF_F16 &&
           flash.at[AT_A11_ACC].format == SINKPROOF_F16 && !flash.at[AT_A11_ACC].optional,
       "llama-cpp truncates YaRN's range");
}

static bool parses(const char *text) {
    sinkproof_policy p;
    sinkproof_error e;
    return sinkproof_policy_parse(text, &p, &e);
}

static bool is_read(sinkproof_rounding r, sinkproof_format format, sinkproof_scale scale,
                    double stated, bool optional) {
    return r.format == format && r.scale == scale && !(r.stated < stated) && !(r.stated > stated) &&
           r.optional == optional;
}

// What a product reads in eight bits or four, and TF32: with a scale, or none, where a product
// reads, and nowhere else.
static void test_read_formats(void) {
    sinkproof_policy p = policy_of(
        "bf16,A5.k=e4m3(head),A11.v=int8(token-head)?,A2.in=nvfp4(tensor),M5.in=mxfp8-up,"
        "A5.q=e5m2-inf(0.125),A11.weights=e4m3(0x1p-8),A9.unnorm=tf32-cut?,F2.in=e4m3-nan,"
        "weights=tf32");
    ok(is_read(p.at[AT_A5_K], SINKPROOF_E4M3, SINKPROOF_SCALE_OF_HEAD, 0, false) &&
           is_read(p.at[AT_A11_V], SINKPROOF_INT8, SINKPROOF_SCALE_OF_TOKEN_HEAD, 0, true) &&
           is_read(p.at[AT_A2_IN], SINKPROOF_NVFP4, SINKPROOF_SCALE_OF_TENSOR, 0, false) &&
           is_read(p.at[AT_M5_IN], SINKPROOF_MXFP8_UP, SINKPROOF_SCALE_NONE, 0, false) &&
           is_read(p.at[AT_A5_Q], SINKPROOF_E5M2_INF, SINKPROOF_SCALE_STATED, 0.125, false) &&
           is_read(p.at[AT_A11_WEIGHTS], SINKPROOF_E4M3, SINKPROOF_SCALE_STATED, 0x1p-8, false) &&
           is_read(p.at[AT_A9_UNNORM], SINKPROOF_TF32_CUT, SINKPROOF_SCALE_NONE, 0, true) &&
           is_read(p.at[AT_F2_IN], SINKPROOF_E4M3_NAN, SINKPROOF_SCALE_NONE, 0, false) &&
           p.weights == SINKPROOF_TF32,
       "bound.scaled e4m3(head), int8(token-head)?, nvfp4(tensor), mxfp8-up, a stated scale");
    size_t said = 0, numbers = 0, apart = 0;
    for (int i = 0; i < AT_POINTS; i++) {
        sinkproof_rounding r = p.at[i], other = r;
        char text[64];
        const char *name = sinkproof_point_name((sinkproof_point)i);
        snprintf(text, sizeof text, "bf16,%s=%s", name, sinkproof_rounding_say(r).text);
        said += sinkproof_rounding_same(policy_of(text).at[i], r);
        other.scale = SINKPROOF_SCALE_OF_TOKEN, apart += !sinkproof_rounding_same(other, r);
        other = r, other.stated += 1, apart += !sinkproof_rounding_same(other, r);
        snprintf(text, sizeof text, "f32,%s=tf32", name);
        numbers += parses(text);
    }
    ok(said == AT_POINTS && apart == 2 * (size_t)AT_POINTS && numbers == 11,
       "bound.scaled a printed rounding is parsed as itself; %zu points may read tf32", numbers);
    static const char *const refused[] = {"A2.in=e4m3(head)",     "A2.in=e4m3(token-head)",
                                          "M5.in=e4m3(tensor)",   "M9.in=nvfp4(tensor)",
                                          "A11.weights=mxfp8",    "A11.weights=e4m3(token)",
                                          "A9.unnorm=e4m3(2)",    "A5.k=int8",
                                          "A5.k=mxfp8(head)",     "A5.k=tf32(head)",
                                          "A5.k=bf16(head)",      "A5.k=e4m3(0)",
                                          "A5.k=e4m3(-1)",        "A5.k=e4m3(nan)",
                                          "A5.k=e4m3(1e300)",     "A5.k=e4m3(heads)",
                                          "A5.k=e4m3(head",       "A5.k=e4m3()",
                                          "A5.k=e4m3(head)x",     "A5.k=q8_0",
                                          "A5.acc=e4m3",          "A4=tf32",
                                          "weights=e4m3",         "weights=mxfp8",
                                          "A12.acc=ranks(2,e4m3)"};
    size_t refusals = 0, count = sizeof refused / sizeof refused[0];
    for (size_t k = 0; k < count; k++) {
        char text[64];
        snprintf(text, sizeof text, "f32,%s", refused[k]);
        refusals += !parses(text);
    }
    ok(refusals == count, "bound.scaled %zu of %zu wrong words are refused", refusals, count);
}

// Refused, with a sentence that contains `word`, and the result untouched.
static bool is_unit(sinkproof_rounding r, int bits, int block, int parts) {
    return r.format == SINKPROOF_TENSOR_CORE && !r.optional && r.bits == bits && r.block == block &&
           r.parts == parts;
}

// Matrix units: numbers in parentheses, whose commas part no overrides; names; all sums at once.
static void test_units(void) {
    sinkproof_policy limited =
        policy_of("bf16,A2.acc=tensor-core(25,16),M5.acc=tensor-core(13,32,4),A8=f32");
    ok(is_unit(limited.at[AT_A2_ACC], 25, 16, 0) && is_unit(limited.at[AT_M5_ACC], 13, 32, 4) &&
           limited.at[AT_A5_ACC].format == SINKPROOF_REAL &&
           limited.at[AT_A8].format == SINKPROOF_F32,
       "A2.acc=tensor-core(25,16), M5.acc=tensor-core(13,32,4)");
    sinkproof_policy p = policy_of("bf16,acc=hopper,F2.acc=f32");
    size_t units = 0;
    for (int at = 0; at < AT_POINTS; at++) units += is_unit(p.at[at], 25, 16, 0);
    ok(units == 7 && p.at[AT_F2_ACC].format == SINKPROOF_F32, "acc=hopper is of every running sum");
    ok(strcmp(sinkproof_rounding_say(p.at[AT_A2_ACC]).text, "tensor-core(25,16)") == 0 &&
           strcmp(sinkproof_rounding_say(limited.at[AT_M5_ACC]).text, "tensor-core(13,32,4)") == 0,
       "a unit is said as it is read");
    for (const sinkproof_core_name *core = core_names; core->name != NULL; core++) {
        char text[40];
        snprintf(text, sizeof text, "f32,A2.acc=%s", core->name);
        p = policy_of(text);
        ok(is_unit(p.at[AT_A2_ACC], core->bits, core->block, 0), "%s is a unit", core->name);
    }
}

static bool is_split(sinkproof_rounding r, sinkproof_format format, int parts, int block,
                     sinkproof_format part, bool optional) {
    return r.format == format && r.parts == parts && r.block == block && r.part == part &&
           r.optional == optional;
}

static void test_parts(void) {
    sinkproof_policy p = policy_of("bf16,A12.acc=ranks(4,f16)?,F2.acc=blocks(8,bf16)");
    ok(is_split(p.at[AT_A12_ACC], SINKPROOF_RANKS, 4, 0, SINKPROOF_F16, true) &&
           is_split(p.at[AT_F2_ACC], SINKPROOF_BLOCKS, 0, 8, SINKPROOF_BF16, false),
       "A12.acc=ranks(4,f16)?, F2.acc=blocks(8,bf16)");
    ok(strcmp(sinkproof_rounding_say(p.at[AT_A12_ACC]).text, "ranks(4,f16)?") == 0 &&
           strcmp(sinkproof_rounding_say(p.at[AT_F2_ACC]).text, "blocks(8,bf16)") == 0,
       "parts are said as they are read");
    p = policy_of("f16,ranks=8");
    size_t ranks = 0;
    for (int at = 0; at < AT_POINTS; at++)
        ranks += is_split(p.at[at], SINKPROOF_RANKS, 8, 0, SINKPROOF_F16, true);
    ok(ranks == 4 && p.at[AT_M11_SUM].format == SINKPROOF_RANKS &&
           p.at[AT_M11_PART].format == SINKPROOF_RANKS,
       "ranks=8 is of four sums");
    p = policy_of("bf16,slices=4"), ranks = 0;
    for (int at = 0; at < AT_POINTS; at++)
        ranks += is_split(p.at[at], SINKPROOF_RANKS, 4, 0, SINKPROOF_BF16, true);
    ok(ranks == 2 && p.at[AT_A12_ACC].format == SINKPROOF_RANKS &&
           p.at[AT_M11_PART].format == SINKPROOF_RANKS,
       "slices=4 is of two sums");
    p = policy_of("bf16,A11.part=levels(3,f16)?");
    sinkproof_rounding part = p.at[AT_A11_PART];
    ok(part.format == SINKPROOF_F16 && part.parts == 3 && part.optional &&
           strcmp(sinkproof_rounding_say(part).text, "levels(3,f16)?") == 0,
       "bound.parts-merged three levels are read, and said as they are read");
}

static void test_refusal(const char *text, const char *word) {
    sinkproof_policy p = policy_of("f32"), before = p;
    sinkproof_error e = {{0}};
    bool refused = !sinkproof_policy_parse(text, &p, &e);
    ok(refused && strstr(e.text, word) != NULL && memcmp(&p, &before, sizeof p) == 0,
       "'%.30s' is refused: %s", text, e.text);
}

// A policy in a file: every point is stated, once; what is missing or unknown is named.
static void test_file(void) {
    const char *path = "/tmp/sinkproof-test-policy";
    sinkproof_policy p;
    sinkproof_error e;
    FILE *file = fopen(path, "w");
    fprintf(file, "# as openai-bf16, but for one point\n");
    sinkproof_policy openai = policy_of("openai-bf16");
    for (size_t i = 0; i < AT_POINTS; i++)
        fprintf(file, "%s = %s  # %s\n", sinkproof_point_name((sinkproof_point)i),
                i == AT_A9 ? "f32?" : sinkproof_format_name(openai.at[i].format),
                sinkproof_point_what((sinkproof_point)i));
    fprintf(file, "exp=3ulp\nrsqrt=2ulp\nsincos=2\npow=2ulp\nlog=2\ntanh=2ulp\ndiv=2ulp\nrcp="
                  "1\ninside=f32\n");
    fprintf(file,
            "A9.form=definition|running-max\nM4.form=any\nM8.form=tanh\nftz=none\nweights=f16\n"
            "A4.freq.form=powers\nA4.form=scaled-first\n");
    fclose(file);
    ok(!sinkproof_policy_parse("@/tmp/sinkproof-test-policy", &p, &e) &&
           strstr(e.text, "yarn is missing") != NULL,
       "a file that leaves out a key is refused: %s", e.text);
    file = fopen(path, "a");
    fprintf(file, "yarn=config\nunrounded=none\n");
    fclose(file);
    bool good = sinkproof_policy_parse("@/tmp/sinkproof-test-policy,M8.alpha=bf16", &p, &e);
    ok(good && p.at[AT_A9].optional && p.at[AT_A9].format == SINKPROOF_F32 &&
           p.ulp[SINKPROOF_EXP] == 3 && p.forms[SINKPROOF_FORM_OF_A9] == 5 &&
           p.forms[SINKPROOF_FORM_OF_M4] == 3 && p.forms[SINKPROOF_FORM_OF_M8] == 2 && !p.ftz &&
           p.forms[SINKPROOF_FORM_OF_A4] == 2 && !sinkproof_policy_reads_unrounded(&p) &&
           p.weights == SINKPROOF_F16 && p.at[AT_A13].format == SINKPROOF_BF16 &&
           p.at[AT_M8_ALPHA].format == SINKPROOF_BF16,
       "a complete file is read, and overrides refine it");
    file = fopen(path, "a");
    fprintf(file, "A13=bf16\n");
    fclose(file);
    ok(!sinkproof_policy_parse("@/tmp/sinkproof-test-policy", &p, &e) &&
           strstr(e.text, "A13 is stated twice") != NULL,
       "a point stated twice is refused: %s", e.text);
    ok(!sinkproof_policy_parse("@/tmp/sinkproof-no-such-policy", &p, &e),
       "a file that is not there is refused: %s", e.text);
    remove(path);
}

// An override of each point, as far as a name has room for: every one of them is read.
static void test_every_point(void) {
    char text[SINKPROOF_POLICY_NAME] = "f32";
    sinkproof_policy policy;
    sinkproof_error error = {{0}};
    for (int p = 0; p < AT_POINTS; p++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, ",%s=bf16", sinkproof_point_name(p));
    }
    bool read = sinkproof_policy_parse(text, &policy, &error);
    size_t other = 0;
    for (int p = 0; read && p < AT_POINTS; p++) other += policy.at[p].format != SINKPROOF_BF16;
    ok(read && other == 0 && strcmp(policy.name, text) == 0,
       "a policy of %zu characters, an override of each of %d points: %s", strlen(text), AT_POINTS,
       read ? "read" : error.text);
}

int main(void) {
    test_names();
    test_tables();
    test_difference("openai-bf16", "hf-bf16", "A9.max M11.prod M11.sum ");
    test_difference("hf-bf16", "hf-llama-bf16",
                    "A1.norm A3.norm A9.max M1.norm M8.sigmoid F1.norm ");
    test_difference("f32", "bf16-operands", "A1 A2 A4 A11 M1 M8 F1 ");
    test_difference("bf16-operands", "f32,A1=bf16,A2=bf16,A4=bf16,A11=bf16,M1=bf16,M8=bf16,F1=bf16",
                    "");
    test_difference("openai-bf16", "openai-bf16,M8.alpha=bf16", "M8.alpha ");
    test_difference("f32,yarn=truncate", "llama-cpp",
                    "A2.in A2.product A5.q A5.k A5 A11.weights A11.v A12.in A12.product "
                    "M2.product M5.in M5 M9.in M9 F2.in ");
    test_difference("llama-cpp", "llama-cpp-flash", "A11.weights A11.acc ");
    test_difference("bf16", "bf16,yarn=config", "");
    test_difference("bf16", "flash-bf16", "A5 A6 A8 A9.max A9 A11.part ");
    test_difference("f16", "flash-f16", "A5 A6 A8 A9.max A9 A11.part ");
    test_overrides();
    test_forms();
    test_freedoms();
    test_operands();
    test_read_formats();
    test_units();
    test_parts();
    test_refusal("bf17", "openai-bf16");
    test_refusal("", "known are");
    test_refusal("f32,A99=bf16", "A4.freq");
    test_refusal("f32,A9=bf17", "bf16");
    test_refusal("f32,A9=q8_0", "real, f64, f32, f16, bf16; ?");
    test_refusal("f32,A2.in=q8_2", "q8_0, q8_1, q8_k, weight");
    test_refusal("f32,A2.acc=tensor-core(25)", "1 to 64 products");
    test_refusal("f32,A2.acc=tensor-core(0,16)", "1 to 64 products");
    test_refusal("f32,A2.acc=tensor-core(25,65)", "1 to 64 products");
    test_refusal("f32,A2.acc=tensor-core(25,16,0)", "1 to 64 products");
    test_refusal("f32,A2.acc=tensor-core(25,16,256)", "1 to 64 products");
    test_refusal("f32,A2.acc=tensor-core(25,16)x", "1 to 64 products");
    test_refusal("f32,A2.acc=tensor-core(25,16", "1 to 64 products");
    test_refusal("f32,A2.acc=hoper", "the nearest known is hopper");
    test_refusal("f32,A9=hopper", "for A9");
    test_refusal("f32,acc=ampare", "the nearest known is ampere");
    test_refusal("f32,ranks=1", "from 2 to 64");
    test_refusal("f32,ranks=two", "from 2 to 64");
    test_refusal("f32,A5.acc=ranks(2,bf16)", "unknown format");
    test_refusal("f32,A12.acc=ranks(2,q8_0)", "ranks(R,FORMAT), blocks(N,FORMAT)");
    test_refusal("f32,A5.k=e4m3(heads)", "e4m3(token-head)");
    test_refusal("f32,M5.in=e4m3(tensor)", "e4m3(token)");
    test_refusal("f32,weights=tf23", "tf32-cut");
    test_refusal("f32,A12.acc=blocks(0,bf16)", "ranks(R,FORMAT), blocks(N,FORMAT)");
    test_refusal("f32,A12.acc=ranks(2,bf16)!", "unknown format");
    test_refusal("f32,M11.sum=blocks(8,bf16)", "a mixture has ranks");
    test_refusal("f32,A11.part=levels(1,bf16)", "levels(L,FORMAT)");
    test_refusal("f32,A11.part=levels(17,bf16)", "levels(L,FORMAT)");
    test_refusal("f32,A11.part=levels(2,real)", "levels(L,FORMAT)");
    test_refusal("f32,A11=levels(2,bf16)", "unknown format");
    test_refusal("f32,M11.part=blocks(8,bf16)", "a mixture has ranks");
    test_refusal("f32,slices=65", "'slices=65' is not a number of ranks from 2 to 64");
    test_refusal("f32,A9", "POINT=FORMAT");
    test_refusal("f32,", "POINT=FORMAT");
    test_refusal("f32,exp=fourulp", "ulp");
    test_refusal("f32,exp=nan", "ulp");
    test_refusal("f32,exp=0", "ulp");
    test_refusal("f32,inside=bf16", "inside");
    test_refusal("f32,yarn=floor", "yarn");
    test_refusal("f32,ftz=on", "ftz=allowed");
    test_refusal("f16,weights=real", "weights=stored");
    test_refusal("f32,A9.form=flash", "lse-subtracted");
    test_refusal("f32,A9.form=", "running-max");
    test_refusal("f32,A9.form=base-2|", "base-2");
    test_refusal("f32,M4.form=sigmoid", "softmax-after");
    test_refusal("f32,A6.form=any", "M8.form");
    test_refusal("f32,tanh=0", "ulp");
    test_refusal("f32,exp=2ulp+|x|", "2ulp+0.5|x|");
    test_refusal("f32,exp=2ulp+0.5", "2ulp+0.5|x|");
    test_refusal("f32,exp=2ulp+nan|x|", "2ulp+0.5|x|");
    test_refusal("f32,exp=2ulp+1001|x|", "1000");
    test_refusal("f32,tanh=2ulp+0.5|x|", "ulp");
    test_refusal("f32,div=0.25ulp", "'div=0.25ulp' is not an error from 0.5ulp");
    test_refusal("f32,div=2ulp+0.5|x|", "ulp");
    test_refusal("f32,rcp=", "ulp");
    test_refusal("f32,div=2000000ulp", "1000000ulp");
    test_refusal("f32,rec=2ulp", "rcp");
    test_refusal("f32,unrounded=M5", "M12");
    test_refusal("f32,unrounded=A4.cos", "A13");
    test_refusal("f32,unrounded=", "any");
    test_refusal("f32,A4.freq.form=table", "running-product");
    test_refusal("f32,A4.form=twice", "scaled-first");
    char longer[SINKPROOF_POLICY_NAME + 1];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    test_refusal(longer, "characters");
    test_every_point();
    test_file();
    return tap_done();
}
