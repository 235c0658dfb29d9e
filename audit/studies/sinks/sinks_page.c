// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes the frame of the page and of the files, and the census's part of them.
#include "audit/studies/sinks/sinks_page.h"

#include "audit/report/page.h"
#include "audit/report/pictures.h"
#include "audit/studies/sinks/figures.h"
#include "base/words.h"
#include "model/bytes.h"

#include <stdlib.h>
#include <string.h>

static void write_figure(FILE *page, const sinks_figure *figure, const sink_census *c) {
    fprintf(page, "<h3>%s</h3>\n<figure>", figure->title);
    bool zero = figure->zero != NULL && figure->zero(c), drawn = !zero && figure->draw(page, c);
    fputs("<figcaption>", page);
    if (zero)
        fputs("Not drawn: every number of it is 0.", page);
    else if (drawn)
        figure->say(page, c);
    else
        fputs("Not drawn: the points that it is made of are not known.", page);
    fprintf(page, " Defined by <code>%s</code>.</figcaption></figure>\n", figure->id);
}

void census_html(const void *state, const sinkproof_sinks_job *job, FILE *page) {
    (void)state;
    for (size_t i = 0; i < job->n_inputs; i++) {
        const sinkproof_sinks_input *input = &job->inputs[i];
        fputs("<h2>", page);
        sinkproof_page_say(page, "%.200s: %s", input->text,
                           sinkproof_counted(input->n, "token").text);
        fputs("</h2>\n", page);
        if (input->census.missing[0] != '\0') {
            fputs("<p class=\"odd\">", page);
            sinkproof_page_say(page, "Not in this input, so that what needs it is not known: %s.",
                               input->census.missing);
            fputs("</p>\n", page);
        }
        const sinks_figure *figure;
        for (size_t k = 0; (figure = sinks_figure_at(k)) != NULL; k++)
            write_figure(page, figure, &input->census);
    }
}

// A figure of the census.
typedef struct subject {
    const sinks_figure *figure;
    const sink_census *census;
} subject;

static bool draw_figure(FILE *out, const void *context) {
    const subject *what = context;
    return what->figure->draw(out, what->census);
}
static void title_figure(FILE *out, const void *context) {
    const subject *what = context;
    sinkproof_page_say(out, "%s (%s)", what->figure->title, what->figure->id);
}
static void say_figure(FILE *out, const void *context) {
    const subject *what = context;
    what->figure->say(out, what->census);
}

bool census_draw(const void *state, const sinkproof_sinks_job *job, size_t input,
                 const char *number, sinkproof_pictures *pictures, sinkproof_error *error) {
    (void)state;
    const sinks_figure *figure;
    char name[96];
    for (size_t k = 0; (figure = sinks_figure_at(k)) != NULL; k++) {
        subject what = {.figure = figure, .census = &job->inputs[input].census};
        sinkproof_picture picture = {&what, draw_figure, title_figure, say_figure};
        snprintf(name, sizeof name, "%s%s", number, figure->name);
        if (!sinkproof_pictures_add(pictures, name, &picture, error)) return false;
    }
    return true;
}

static void write_run(FILE *page, const sinkproof_sinks_job *job) {
    sinkproof_page_say(page, "Engine %.40s, policy ", job->how.engine);
    sinkproof_page_text(page, job->policy->name);
    sinkproof_page_say(page, "; %s in %.1f s. ", sinkproof_counted(job->n_inputs, "input").text,
                       job->seconds);
}

static void write_head(FILE *page, const sinkproof_sinks_job *job) {
    const sinkproof_config *config = job->config;
    fputs("<h1>Attention sinks</h1>\n<p>", page);
    sinkproof_page_say(page, "Model %.300s: %s of %s. ", job->model_name,
                       sinkproof_counted(config->n_layers, "layer").text,
                       sinkproof_counted(config->n_heads, "head").text);
    if (job->trace == NULL)
        write_run(page, job);
    else {
        const char *engine = sinkproof_trace_metadata(job->trace, "engine");
        sinkproof_page_say(page, "A trace by %.200s. ",
                           engine != NULL ? engine
                                          : "an engine that it "
                                            "does not name");
        if (job->note[0] != '\0') {
            fputs("<b>", page);
            sinkproof_page_text(page, job->note);
            fputs("</b> ", page);
        }
    }
    sinkproof_page_say(page,
                       "A head has a sink at a key with a mean weight above %g. Every number is "
                       "estimated: sums, roots and exponentials are those of binary64. Numbers are "
                       "the titles of what they are drawn as. Layers and heads count from 0, "
                       "tokens of the text from 1.",
                       job->epsilon);
    fputs("</p>\n", page);
}

// A part without figures shows its table.
static bool write_table(const sinkproof_sinks_part *part, const void *state,
                        const sinkproof_sinks_job *job, FILE *page, sinkproof_error *error) {
    char *text = NULL;
    size_t size;
    FILE *table = open_memstream(&text, &size);
    if (table != NULL) part->print(state, job, table);
    bool good = table != NULL && !ferror(table);
    if (table != NULL) good = fclose(table) == 0 && good;
    if (good) {
        fputs("<h2>", page);
        sinkproof_page_say(page, "--%s", part->name);
        fputs("</h2>\n<p>", page);
        sinkproof_page_text(page, part->help);
        fputs("</p>\n<pre>", page);
        sinkproof_page_text(page, text + strspn(text, "\n"));
        fputs("</pre>\n", page);
    }
    free(text);
    return good || sinkproof_fail(error, "no memory for the table of --%s", part->name);
}

bool sinkproof_sinks_page(const char *path, const sinkproof_sinks_job *job, size_t n,
                          const sinkproof_sinks_part *const *parts, void *const *states,
                          sinkproof_error *error) {
    sinkproof_output output;
    uint64_t fingerprint = 0;
    if (job->model != NULL && !sinkproof_model_fingerprint(job->model, &fingerprint, error))
        return false;
    if (!sinkproof_output_open(&output, path, error)) return false;
    FILE *page = output.stream;
    sinkproof_page_begin(page, "sinkproof: attention sinks");
    write_head(page, job);
    bool good = true;
    for (size_t p = 0; good && p < n; p++)
        if (parts[p]->html != NULL)
            parts[p]->html(states[p], job, page);
        else if (parts[p]->print != NULL)
            good = write_table(parts[p], states[p], job, page, error);
    if (!good) {
        sinkproof_output_drop(&output);
        return false;
    }
    if (job->model != NULL)
        sinkproof_page_end_model(page, fingerprint);
    else
        sinkproof_page_end(page);
    return sinkproof_output_finish(&output, error);
}

bool sinkproof_sinks_svg(const char *directory, const sinkproof_sinks_job *job, size_t n,
                         const sinkproof_sinks_part *const *parts, void *const *states,
                         sinkproof_error *error) {
    sinkproof_pictures *pictures;
    if (!sinkproof_pictures_open(directory, &pictures, error)) return false;
    bool good = true;
    for (size_t i = 0; good && i < job->n_inputs; i++) {
        char number[24] = "";
        if (job->n_inputs > 1) snprintf(number, sizeof number, "%zu-", i + 1);
        for (size_t p = 0; good && p < n; p++)
            good = parts[p]->draw == NULL ||
                   parts[p]->draw(states[p], job, i, number, pictures, error);
    }
    return sinkproof_pictures_close(pictures, good, error);
}
