// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The words that ask for interventions on GPT-2: what they mean, how it is named again, what is
// refused, by the words or by the model; and the rows that the control draws. With
// arguments it carries them out on another engine's numbers.
#include "audit/command/intervention_options.h"
#include "model/container.h"
#include "model/slots.h"
#include "tests/shared/intervened.h"

// ---- the control

static bool is_massive(size_t row) {
    for (size_t i = 0; i < MASSIVE; i++)
        if (massive_at[i] == row) return true;
    return false;
}

static void test_drawn(const sinkproof_model *model) {
    static const size_t first[] = {3, 21, 63, 70, 74};
    sinkproof_policy policy = policy_of("f32");
    size_t wrong = 0, n, drawn_c[HIDDEN] = {0}, left = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        sinkproof_interventions changes = CHANGES("zero-wk-rows 3,4");
        changes.n_random = 1 + seed % 20, changes.seed = seed;
        sinkproof_intervened *made = intervened(model, &changes, &policy);
        const size_t *rows = sinkproof_intervened_zero_rows(made, &n);
        wrong += n != changes.n_random + 2;
        for (size_t i = 0; i < n; i++) {
            wrong += is_massive(rows[i]) || (i > 0 && rows[i - 1] >= rows[i]) || rows[i] >= HIDDEN;
            drawn_c[rows[i]]++;
        }
        sinkproof_intervened_free(made);
    }
    for (size_t c = 0; c < HIDDEN; c++) left += drawn_c[c] == 0;
    ok(wrong == 0 && left == MASSIVE && drawn_c[3] == 100,
       "gpt2.forward the control: as many as asked, none massive, none twice, every other drawn in "
       "100 seeds, worst=%zu bound=0",
       wrong);
    sinkproof_interventions five = CHANGES("zero-wk-random 5"),
                            many = CHANGES("zero-wk-random 93,7");
    sinkproof_intervened *made = intervened(model, &five, &policy);
    const size_t *rows = sinkproof_intervened_zero_rows(made, &n);
    ok(n == 5 && memcmp(rows, first, sizeof first) == 0,
       "gpt2.forward the control: seed 1 draws rows %zu, %zu, %zu, %zu and %zu", rows[0], rows[1],
       rows[2], rows[3], rows[4]);
    sinkproof_intervened_free(made);
    made = intervened(model, &many, &policy);
    sinkproof_intervened_zero_rows(made, &n);
    ok(n == HIDDEN - MASSIVE,
       "gpt2.forward the control: all that are not massive, where so many are asked for");
    sinkproof_intervened_free(made);
}

// ---- words

static void test_read(void) {
    static const struct {
        const char *option, *argument, *said;
    } bad[] = {
        {"zero", NULL, "expected an intervention, found --zero"},
        {"zero-bq", "1", "--zero-bq: expected no argument, found 1"},
        {"swap-epe", NULL, "--swap-epe: expected A:B, found none"},
        {"swap-epe", "0:1",
         "--swap-epe: expected A:B, two different positions from 1 to 2147483647, found \"0:1\""},
        {"swap-epe", "1:0", "found \"1:0\""},
        {"move-epe", "2:2",
         "--move-epe: expected A:B, two different positions from 1 to 2147483647, found \"2:2\""},
        {"move-epe", "1:2:3", "found \"1:2:3\""},
        {"move-epe", "1", "found \"1\""},
        {"move-epe", " 1:2", "found \" 1:2\""},
        {"move-epe", "+1:2", "found \"+1:2\""},
        {"move-epe", "1:2147483648", "found \"1:2147483648\""},
        {"move-epe", "1:99999999999999999999999", "found"},
        {"move-epe", "3:7",
         "--move-epe: expected a position that has its own EPE yet, found 7 in \"3:7\""},
        {"swap-epe", "9:3",
         "--swap-epe: expected a position that has its own EPE yet, found 9 in \"9:3\""},
        {"zero-wk-rows", "",
         "--zero-wk-rows: expected auto, or coordinates from 0 to 2147483647 separated by commas, "
         "found \"\""},
        {"zero-wk-rows", "1,", "found \"1,\""},
        {"zero-wk-rows", ",1", "found \",1\""},
        {"zero-wk-rows", "1;2", "found \"1;2\""},
        {"zero-wk-rows", "-1", "found \"-1\""},
        {"zero-wk-rows", "auto,1", "found \"auto,1\""},
        {"zero-wk-rows", "5,6,5", "--zero-wk-rows: expected each coordinate once, found 5 twice"},
        {"zero-wk-random", "0",
         "--zero-wk-random: expected N or N,SEED, N being auto or a number from 1 to 2147483647, "
         "found \"0\""},
        {"zero-wk-random", "3,", "found \"3,\""},
        {"zero-wk-random", "3,-1", "found \"3,-1\""},
        {"zero-wk-random", "3,18446744073709551616", "found"},
        {"zero-wk-random", "automatic", "found \"automatic\""},
    };
    sinkproof_interventions kept = CHANGES("swap-epe 9:2", "move-epe 7:8"), c = kept;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sinkproof_error error = {""};
        bool read = sinkproof_intervention_read(bad[i].option, bad[i].argument, &c, &error);
        bool good =
            !read && strstr(error.text, bad[i].said) != NULL && memcmp(&c, &kept, sizeof c) == 0;
        if (!good)
            note("--%s %s: %s", bad[i].option, bad[i].argument != NULL ? bad[i].argument : "",
                 error.text);
        wrong += !good;
    }
    ok(wrong == 0, "words: %zu refused, each with its sentence, nothing changed",
       sizeof bad / sizeof *bad);
    c = CHANGES("zero-wk-random auto,18446744073709551615", "zero-wk-rows 138,0",
                "move-epe 2147483647:1");
    ok(c.n_random == SINKPROOF_AS_MASSIVE && c.seed == UINT64_MAX && c.n_rows == 2 &&
           c.row_n[0] == 138 && c.row_n[1] == 0 && c.n_moves == 1 &&
           c.move_n[0].from == 2147483646 && c.move_n[0].to == 0 && !c.move_n[0].swap,
       "words: the largest numbers");
    sinkproof_error error = {""};
    ok(!sinkproof_intervention_read("zero-wk-rows", "auto", &c, &error) &&
           strstr(error.text, "expected --zero-wk-rows once") != NULL &&
           !sinkproof_intervention_read("zero-wk-random", "1", &c, &error) &&
           strstr(error.text, "expected --zero-wk-random once") != NULL,
       "words: %s", error.text);
}

// As many as there is room for; one more is refused. All of it is named.
static void test_most(void) {
    sinkproof_interventions c = CHANGES("zero-bq", "zero-bos", "late-epe",
                                        "zero-wk-random 2147483647,18446744073709551615");
    sinkproof_error error = {""};
    char list[2048] = "2147483647", move[64];
    for (int i = 1; i < INTERVENTION_ROWS; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), ",%d", 2147483647 - i);
    must(sinkproof_intervention_read("zero-wk-rows", list, &c, NULL));
    for (int i = 0; i < INTERVENTION_MOVES; i++) {
        snprintf(move, sizeof move, "%d:%d", 2147483647 - 2 * i, 2147483646 - 2 * i);
        must(sinkproof_intervention_read("move-epe", move, &c, NULL));
    }
    bool full = !sinkproof_intervention_read("move-epe", "1:2", &c, &error) &&
                strstr(error.text, "at most 16") != NULL;
    sinkproof_interventions none = {0};
    snprintf(list + strlen(list), sizeof list - strlen(list), ",1");
    full = full && !sinkproof_intervention_read("zero-wk-rows", list, &none, &error) &&
           strstr(error.text, "at most 64") != NULL;
    intervention_name name = sinkproof_interventions_describe(&c);
    static const char end[] = "2147483647 rows of W_k = 0, drawn by seed 18446744073709551615";
    size_t length = strlen(name.text);
    ok(full && length > sizeof end && length + 1 < sizeof name.text &&
           strcmp(name.text + length - sizeof end + 1, end) == 0,
       "words: 16 exchanges and 64 rows, one more refused; named in %zu of %zu bytes", length,
       sizeof name.text);
}

static void test_named(void) {
    const struct {
        sinkproof_interventions changes;
        const char *name;
    } names[] = {
        {{0}, "none"},
        {CHANGES("zero-bq", "zero-wk-rows 138,378,447"), "b_Q = 0; rows 138, 378, 447 of W_k = 0"},
        {CHANGES("swap-epe 1:2", "zero-wk-rows 7"), "position 1 has EPE_2; row 7 of W_k = 0"},
        {CHANGES("move-epe 1:2", "late-epe"), "positions 1 and 2 exchange their EPE; EPE added "
                                              "after the first layer, no position before it"},
        {CHANGES("zero-bos", "zero-wk-rows auto"),
         "no embedding of the first token; massive rows of W_k = 0"},
        {CHANGES("zero-wk-random 1,5"), "1 row of W_k = 0, drawn by seed 5"},
        {CHANGES("zero-wk-random auto"), "as many other rows of W_k = 0, drawn by seed 1"},
    };
    size_t wrong = 0, panels = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        intervention_name found = sinkproof_interventions_describe(&names[i].changes);
        wrong += strcmp(found.text, names[i].name) != 0;
        if (strcmp(found.text, names[i].name) != 0) note("%s", found.text);
    }
    ok(wrong == 0, "words: %zu names", sizeof names / sizeof *names);
    static const char *const order[] = {"none",     "zero-bq",      "swap-epe",      "move-epe",
                                        "zero-bos", "zero-wk-rows", "zero-wk-random"};
    const sinkproof_interventions asked[] = {{0},
                                             CHANGES("zero-bq"),
                                             CHANGES("swap-epe 1:2"),
                                             CHANGES("move-epe 1:2"),
                                             CHANGES("zero-bos"),
                                             CHANGES("zero-wk-rows auto"),
                                             CHANGES("zero-wk-random auto")};
    const intervention_panel *panel;
    for (; (panel = sinkproof_intervention_panel_at(panels)) != NULL && panels < 7; panels++)
        wrong += strcmp(panel->name, order[panels]) != 0 ||
                 memcmp(&panel->changes, &asked[panels], sizeof *asked) != 0 ||
                 sinkproof_interventions_any(&panel->changes) != (panels > 0);
    ok(wrong == 0 && panels == 7 && sinkproof_intervention_panel_at(7) == NULL,
       "words: seven panels, each what its options say");
}

// The command line's: what it reads is what the words say.
static void test_parser(void) {
    char words[][32] = {"test", "--zero-bq", "--move-epe=1:2", "--zero-wk-random", "3,4"},
         wrong[] = "--swap-epe=1:1";
    char *good[] = {words[0], words[1], words[2], words[3], words[4], NULL},
         *bad[] = {words[0], wrong, NULL};
    sinkproof_interventions c = {0}, none = {0},
                            asked = CHANGES("zero-bq", "move-epe 1:2", "zero-wk-random 3,4");
    const unsigned quiet = ARGP_NO_EXIT | ARGP_NO_ERRS;
    ok(argp_parse(&interventions_parser, 5, good, quiet, NULL, &c) == 0 &&
           memcmp(&c, &asked, sizeof c) == 0 &&
           argp_parse(&interventions_parser, 2, bad, quiet, NULL, &none) != 0 &&
           !sinkproof_interventions_any(&none),
       "words: on the command line");
}

// ---- what cannot be done

static void test_refused(const sinkproof_model *model) {
    sinkproof_policy policy = policy_of("f32");
    sinkproof_model *rotating = open_model("synthetic:tiny,layers=1");
    sinkproof_interventions itself = CHANGES("swap-epe 1:2"),
                            twice = CHANGES("swap-epe 1:2", "swap-epe 3:2");
    itself.move_n[0].to = 0;
    twice.move_n[1].from = 0;
    const struct {
        const sinkproof_model *model;
        sinkproof_interventions changes;
        size_t n_massive;
        const char *said;
    } cases[] = {
        {model, CHANGES("swap-epe 1:13"), 3, "expected positions of EPE from 1 to 12, found 13"},
        {model, CHANGES("move-epe 20:1"), 3, "expected positions of EPE from 1 to 12, found 20"},
        {model, itself, 3, "expected each position to get one EPE, another's, found 1:1"},
        {model, twice, 3, "expected each position to get one EPE, another's, found 1:2"},
        {model, CHANGES("zero-wk-rows 1,96"), 3, "expected rows of W_k from 0 to 95, found 96"},
        {model, CHANGES("zero-wk-random 94"), 3, "expected at most 93 rows of W_k to draw"},
        {model, CHANGES("zero-wk-random 92", "zero-wk-rows 1,2"), 3,
         "expected at most 91 rows of W_k to draw"},
        {model, CHANGES("zero-wk-rows auto"), 0,
         "expected massive coordinates of EPE_1, found none"},
        {model, CHANGES("zero-wk-random auto"), 0,
         "expected massive coordinates of EPE_1, found none"},
        {rotating, CHANGES("zero-bos"), 3,
         "synthetic:tiny,layers=1: expected learned positions to change, found none"},
        {rotating, CHANGES("late-epe"), 3, "expected learned positions to change, found none"},
        {rotating, CHANGES("move-epe 1:2"), 3, "expected learned positions to change, found none"},
    };
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sinkproof_intervened *made = (sinkproof_intervened *)&wrong;
        sinkproof_error error = {""};
        bool done = sinkproof_intervened_new(cases[i].model, &cases[i].changes, &policy, N,
                                             some_epe(&policy), cases[i].n_massive, massive_at,
                                             &made, &error);
        bool good = !done && made == NULL && strstr(error.text, cases[i].said) != NULL;
        if (!good) note("%s: \"%s\"", cases[i].said, error.text);
        wrong += !good;
    }
    ok(wrong == 0, "gpt2.forward %zu interventions refused, each with its sentence",
       sizeof cases / sizeof *cases);
    sinkproof_interventions bq = CHANGES("zero-bq");
    sinkproof_intervened *made;
    must(sinkproof_intervened_new(rotating, &bq, &policy, N, NULL, 0, NULL, &made, NULL));
    static double row[512] = {1};
    sinkproof_layer layer = sinkproof_model_layer(sinkproof_intervened_model(made), 0);
    must(layer.b_q.cols <= 512);
    sinkproof_matrix_row(&layer.b_q, 0, row);
    ok(row[0] == 0, "gpt2.forward weights of a model that rotates: b_Q = 0");
    sinkproof_intervened_free(made);
    sinkproof_model_close(rotating);
}

// ---- for another engine

static double *numbers_of(const char *folder, const char *name, size_t count) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s.f64", folder, name);
    double *x = malloc(count * sizeof *x);
    FILE *in = fopen(path, "rb");
    must(x != NULL && in != NULL && fread(x, sizeof *x, count, in) == count);
    fclose(in);
    return x;
}

static void put_numbers(const char *folder, const char *name, size_t count, const double *x) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s.f64", folder, name);
    FILE *out = fopen(path, "wb");
    must(out != NULL && fwrite(x, sizeof *x, count, out) == count);
    must(fclose(out) == 0);
}

// ours.f64: what EPE are here.
static void put_epe(const sinkproof_model *model, const sinkproof_policy *policy, size_t n,
                    const char *folder) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_matrix positions = sinkproof_model_slot(model, 0, SINKPROOF_POSITIONS);
    double *p = malloc(n * config->hidden * sizeof *p),
           *epe = malloc(n * config->hidden * sizeof *p);
    double *work = malloc(sinkproof_mechanism_epe_work(config, n) * sizeof *work);
    must(p != NULL && epe != NULL && work != NULL);
    for (size_t i = 0; i < n; i++) sinkproof_matrix_row(&positions, i, p + i * config->hidden);
    sinkproof_mechanism_epe(model, policy, false, n, p, epe, work);
    put_numbers(folder, "ours", n * config->hidden, epe);
    free(p), free(epe), free(work);
}

// MODEL POLICY TOKENS FOLDER DEVIATIONS WORD...: FOLDER/epe.f64 is the engine's EPE, massive beyond
// so many. FOLDER/model becomes the checkpoint of the changed weights; T0.f64 and M12.f64, which
// the engine had before it changed them, what they are then; ours.f64 our EPE. The rows of W_k that
// are 0 are printed.
static int intervene_for(char **argument) {
    sinkproof_policy policy = policy_of(argument[1]);
    sinkproof_model *model = open_model(argument[0]);
    const char *folder = argument[3];
    size_t n = strtoul(argument[2], NULL, 10), width = sinkproof_model_config(model)->hidden;
    size_t *at = malloc(width * sizeof *at), rows;
    sinkproof_interventions changes = changes_of((const char *const *)(argument + 5));
    double *epe = numbers_of(folder, "epe", n * width), *t0 = numbers_of(folder, "T0", n * width);
    double *m12 = numbers_of(folder, "M12", n * width);
    must(at != NULL);
    size_t massive = sinkproof_mechanism_massive(width, epe, strtod(argument[4], NULL), at).n;
    sinkproof_intervened *made;
    must(sinkproof_intervened_new(model, &changes, &policy, n, epe, massive, at, &made, NULL));
    put_epe(model, &policy, n, folder);
    sinkproof_intervention_replace(made, "T0", 2, (size_t[]){n, width}, t0);
    sinkproof_intervention_replace(made, "00.M12", 2, (size_t[]){n, width}, m12);
    put_numbers(folder, "T0", n * width, t0);
    put_numbers(folder, "M12", n * width, m12);
    const sinkproof_container *hf = sinkproof_container_named("hf");
    char path[256];
    snprintf(path, sizeof path, "%s/model", folder);
    must(hf->write(hf, sinkproof_intervened_model(made), path,
                   &(sinkproof_writing){.dequantize = false}, NULL));
    const size_t *row_n = sinkproof_intervened_zero_rows(made, &rows);
    for (size_t i = 0; i < rows; i++) printf("%zu\n", row_n[i]);
    free(epe), free(t0), free(m12), free(at);
    sinkproof_intervened_free(made);
    sinkproof_model_close(model);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 6) return intervene_for(argv + 1);
    sinkproof_model *model = open_model("synthetic:tiny-gpt2,layers=2");
    test_drawn(model);
    test_read();
    test_most();
    test_named();
    test_parser();
    test_refused(model);
    sinkproof_model_close(model);
    return tap_done();
}
