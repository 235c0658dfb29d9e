// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The frame of the page, and the figures as files.
#include "audit/studies/mechanism/mechanism_page.h"

#include "audit/report/page.h"
#include "audit/report/pictures.h"
#include "base/words.h"
#include "model/bytes.h"

#include <stdlib.h>
#include <string.h>

static const sinkproof_mechanism *shown_mechanism(const sinkproof_mechanism_input *in) {
    return in->after.n > 0 ? &in->after : &in->before;
}

sinkproof_mechanism_about sinkproof_mechanism_about_input(const sinkproof_mechanism_job *job,
                                                          size_t input) {
    sinkproof_mechanism_about about = job->about;
    about.input = job->inputs[input].text;
    return about;
}

// Figures are numbered like the paper's only for its sentences on an unchanged model.
static mechanism_view input_view(const sinkproof_mechanism_job *job, size_t input) {
    const sinkproof_mechanism_input *in = &job->inputs[input];
    return (mechanism_view){.mechanism = shown_mechanism(in),
                            .attention = &in->attention,
                            .panels = in->panels,
                            .sentence = in->after.n > 0 ? SINKPROOF_SENTENCES : in->sentence,
                            .head = job->head};
}

// ---- the page ----------------------------------------------------------------------------------

static void write_head(FILE *page, const sinkproof_mechanism_job *job) {
    const sinkproof_config *config = sinkproof_model_config(job->about.model);
    fputs("<h1>What makes GPT-2's sink</h1>\n<p>", page);
    sinkproof_page_say(page, "Model %.300s: %s of %s, width %zu. Policy ", job->about.model_name,
                       sinkproof_counted(config->n_layers, "layer").text,
                       sinkproof_counted(config->n_heads, "head").text, config->hidden);
    sinkproof_page_text(page, job->about.policy->name);
    sinkproof_page_say(page, "; the effective position EPE_i is read %s. ",
                       job->about.normed ? "with the first perceptron's LayerNorm before it"
                                         : "as the paper writes it, without a LayerNorm");
    sinkproof_page_say(page,
                       "Every number is estimated: computed in binary64 from the numbers that the "
                       "run holds. Numbers are the titles of what they are drawn as. Layers, heads "
                       "and positions count from 1, coordinates from 0.");
    fputs("</p>\n", page);
}

static void write_figure(FILE *page, const mechanism_view *view, const mechanism_figure *figure) {
    fputs("<h3>", page);
    mechanism_figure_title(page, view, figure);
    fputs("</h3>\n<figure>", page);
    bool drawn = figure->draw(page, view, figure);
    fputs("<figcaption>", page);
    if (drawn)
        figure->say(page, view, figure);
    else
        fputs("Not drawn: what it is made of is not known, or was not run.", page);
    fprintf(page, " Defined by <code>%s</code>.</figcaption></figure>\n", figure->id);
}

// Writes the table of before and after, as the command prints it.
static bool write_changed(FILE *page, const sinkproof_mechanism_job *job, size_t input,
                          sinkproof_error *error) {
    const sinkproof_mechanism_input *in = &job->inputs[input];
    sinkproof_mechanism_about about = sinkproof_mechanism_about_input(job, input);
    sinkproof_output memory;
    char *text = NULL;
    size_t length = 0;
    if (!sinkproof_output_memory(&memory, &text, &length, error)) return false;
    sinkproof_mechanism_print_changed(&in->before, &in->after, &about, memory.stream);
    bool good = sinkproof_output_finish(&memory, error);
    if (good) {
        fputs("<p class=\"odd\">", page);
        sinkproof_page_say(page, "The figures show the run with: %s.",
                           sinkproof_interventions_describe(&in->after.did).text);
        fputs("</p>\n<pre>", page);
        sinkproof_page_text(page, text + strspn(text, "\n"));
        fputs("</pre>\n", page);
    }
    free(text);
    return good;
}

static bool write_input(FILE *page, const sinkproof_mechanism_job *job, size_t input,
                        sinkproof_error *error) {
    const sinkproof_mechanism_input *in = &job->inputs[input];
    mechanism_view view = input_view(job, input);
    const mechanism_figure *figure;
    fputs("<h2>", page);
    if (in->sentence < SINKPROOF_SENTENCES)
        sinkproof_page_say(page, "Sentence %zu (%s): ", in->sentence,
                           sinkproof_sentence_at(in->sentence)->place);
    sinkproof_page_say(page, "%.400s: %s", in->text, sinkproof_counted(in->before.n, "token").text);
    fputs("</h2>\n", page);
    if (in->after.n > 0 && !write_changed(page, job, input, error)) return false;
    for (size_t k = 0; (figure = mechanism_figure_at(&view, k)) != NULL; k++)
        write_figure(page, &view, figure);
    if (in->panels != NULL) paper_panels_html(in->panels, job->head, page);
    if (in->comparison != NULL) comparison_html(in->comparison, page);
    return true;
}

bool sinkproof_mechanism_page(const char *path, const sinkproof_mechanism_job *job,
                              sinkproof_error *error) {
    sinkproof_output output;
    uint64_t fingerprint;
    if (!sinkproof_model_fingerprint(job->about.model, &fingerprint, error)) return false;
    if (!sinkproof_output_open(&output, path, error)) return false;
    FILE *page = output.stream;
    sinkproof_page_begin(page, "sinkproof: what makes GPT-2's sink");
    write_head(page, job);
    for (size_t i = 0; i < job->n_inputs; i++)
        if (!write_input(page, job, i, error)) {
            sinkproof_output_drop(&output);
            return false;
        }
    sinkproof_page_end_model(page, fingerprint);
    return sinkproof_output_finish(&output, error);
}

// ---- the files ---------------------------------------------------------------------------------

typedef struct subject {
    const mechanism_view *view;
    const mechanism_figure *figure;
} subject;

static bool draw_figure(FILE *out, const void *context) {
    const subject *what = context;
    return what->figure->draw(out, what->view, what->figure);
}
static void figure_title(FILE *out, const void *context) {
    const subject *what = context;
    mechanism_figure_title(out, what->view, what->figure);
    fprintf(out, " (%s)", what->figure->id);
}
static void say_figure(FILE *out, const void *context) {
    const subject *what = context;
    what->figure->say(out, what->view, what->figure);
}

bool sinkproof_mechanism_svg(const char *directory, const sinkproof_mechanism_job *job,
                             sinkproof_error *error) {
    sinkproof_pictures *pictures;
    if (!sinkproof_pictures_open(directory, &pictures, error)) return false;
    bool good = true;
    for (size_t i = 0; i < job->n_inputs; i++) {
        size_t sentence = job->inputs[i].sentence;
        mechanism_view view = input_view(job, i);
        subject what = {.view = &view};
        sinkproof_picture picture = {&what, draw_figure, figure_title, say_figure};
        for (size_t k = 0; (what.figure = mechanism_figure_at(&view, k)) != NULL; k++) {
            char name[96], number[32] = "";
            if (job->n_inputs > 1)
                snprintf(number, sizeof number, "%zu-",
                         sentence < SINKPROOF_SENTENCES ? sentence : i + 1);
            snprintf(name, sizeof name, "%s%s", number, what.figure->name);
            good = good && sinkproof_pictures_add(pictures, name, &picture, error);
        }
    }
    return sinkproof_pictures_close(pictures, good, error);
}
