// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The name and the sentence of a cause in attention: what is meant otherwise, with its numbers, and
// at which place.
#include "audit/diagnose/attention_words.h"
#include "audit/diagnose/attention_ranges.h"
#include "audit/diagnose/composed_ranges.h"
#include "base/words.h"

#include <math.h>
#include <string.h>

static void say_window(cause_words *w) {
    const sinkproof_attending *m = w->how;
    size_t window = w->config->window, is = window + (size_t)m->window_by;
    if (m->window == SINKPROOF_WINDOW_OFF) {
        name_cause(w, "window-off");
        say_cause(w, "there is no window: queries see all keys before them");
    } else if (m->window == SINKPROOF_WINDOW_ON) {
        name_cause(w, "window-on=%zu", is);
        say_cause(w, "a layer that has no window has one of %s", sinkproof_counted(is, "key").text);
    } else {
        name_cause(w, "window=%zu", is);
        say_cause(w, "the window has %s, not %zu", sinkproof_counted(is, "key").text, window);
    }
}

static void say_tiling(cause_words *w) {
    const sinkproof_tiling *t = &w->how->tiling;
    name_cause(w, "tiles=%zu", t->rows);
    if (t->first != t->rows) name_cause(w, "-from-%zu", t->first);
    if (t->later)
        name_cause(w, "-two-way");
    else if (t->anew)
        name_cause(w, "-anew");
    else
        name_cause(w, "-before=%zu", t->before);
    say_cause(w, "queries come in passes of %s", sinkproof_counted(t->rows, "row").text);
    if (t->first != t->rows) say_cause(w, ", the second from position %zu on", t->first);
    if (t->later)
        say_cause(w, ": they see all keys of their own pass, later ones too");
    else if (t->anew)
        say_cause(w, ": the mask counts rows from the beginning of their own pass, aligned at the "
                     "top, so that they see the first keys");
    else if (t->before == 0)
        say_cause(w, ": they see the keys of their own pass alone, none of the cache");
    else
        say_cause(w,
                  ": they see the keys of their own pass and of the %s before it, no earlier one",
                  t->before == 1 ? "pass" : sinkproof_counted(t->before, "tile").text);
}

static bool say_mask(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->cache.kind == SINKPROOF_CACHE_BEHIND) return false; // the first keys tell the window
    if (m->later > 0 && m->window == SINKPROOF_WINDOW_OFF) {
        bool all = m->later + 1 >= w->n;
        name_cause(w, "window-off-later-keys=%zu", m->later);
        if (all)
            say_cause(w, "queries see all keys, earlier and later ones: nothing is masked");
        else
            say_cause(w, "there is no window, and queries see %s after them",
                      sinkproof_counted(m->later, "key").text);
    } else if (m->window != SINKPROOF_WINDOW_DEFINED || m->window_by != 0)
        say_window(w);
    else if (m->later > 0) {
        name_cause(w, "later-keys=%zu", m->later);
        say_cause(w, "queries see %s after them", sinkproof_counted(m->later, "key").text);
        if (m->later + 1 >= w->n) say_cause(w, ", all later ones: nothing is masked there");
    } else if (m->from > 0) {
        name_cause(w, "from-key=%zu", m->from);
        if (m->from >= w->n)
            say_cause(w, "queries see no key but their own");
        else if (m->from == 1)
            say_cause(w, "key 0 is read by its own query alone");
        else
            say_cause(w, "a key before key %zu is read by its own query alone", m->from);
    } else if (m->block_window) {
        name_cause(w, "window-blocks=%zu", m->block);
        say_cause(w,
                  "in the place of the window stand fixed blocks of %zu: queries see the keys of "
                  "their own block alone (chunked attention)",
                  m->block);
    } else if (m->block > 0) {
        name_cause(w, "block=%zu", m->block);
        say_cause(w, "queries see the keys of their own block of %zu alone", m->block);
    } else if (m->row_unit > 0) {
        name_cause(w, "row-unit=%zu", m->row_unit);
        say_cause(w,
                  "queries see all keys up to the end of their block of %zu: nothing is masked in "
                  "it",
                  m->row_unit);
    } else if (m->row_tile > 0) {
        name_cause(w, "window-of-row-tile=%zu%s", m->row_tile, m->row_tile_end ? "-last" : "");
        say_cause(w, "the window begins where that of the %s row of a tile does, of %s",
                  m->row_tile_end ? "last" : "first", sinkproof_counted(m->row_tile, "row").text);
        if (m->window_unit > 0) name_cause(w, "-unit=%zu", m->window_unit);
        if (m->window_unit > 0)
            say_cause(w, ", and is rounded down to a multiple of %zu", m->window_unit);
    } else if (m->window_unit > 0) {
        name_cause(w, "window-unit=%zu", m->window_unit);
        say_cause(w, "the first key of the window is rounded down to a multiple of %zu",
                  m->window_unit);
    } else if (m->tiling.rows > 0) {
        say_tiling(w);
    } else if (m->prefix > 0) {
        name_cause(w, "prefix-two-way=%zu", m->prefix);
        say_cause(w, "the first %s see each other both ways: nothing is masked among them",
                  sinkproof_counted(m->prefix, "token").text);
    } else if (m->across) {
        name_cause(w, "mask-across-sequences");
        say_cause(w, "queries see the keys of the sequences before their own");
    } else
        return false;
    return true;
}

// A factor that is the root of a ratio of widths, and no fraction, tells a scale.
static size_t width_of_scale(const cause_words *w) {
    double d = (double)w->config->head_dim, x = w->how->score_times, width = nearbyint(d / (x * x));
    bool plain = nearbyint(x * 12) == x * 12;
    return !plain && width >= 2 && width < 1e6 && sqrt(d / width) == x ? (size_t)width : 0;
}

static bool say_scores(cause_words *w) {
    static const char *const ids[] = {"", "-by-head", "-by-head-of-power"};
    static const char *const slopes[] = {
        "", " times 2^(-8 (h + 1) / heads)",
        (" times the slope of each head (those of the power of two below the number of heads, and "
         "every second one of twice as many)")};
    const sinkproof_attending *m = w->how;
    size_t width = width_of_scale(w);
    if (m->score_times != 1) {
        name_cause(w, "score-times=%.7g", m->score_times);
        say_cause(w, "the scores are multiplied by %s: queries, keys or the scale",
                  number_words(w, m->score_times).text);
        if (width > 0)
            say_cause(w, ", which is 1/sqrt(%zu) in the place of 1/sqrt(%zu)", width,
                      w->config->head_dim);
    } else if (m->logits_times != 1) {
        name_cause(w, "logits-times=%.7g", m->logits_times);
        say_cause(w, "scores and sink are multiplied by %s before the softmax",
                  number_words(w, m->logits_times).text);
    } else if (m->score_limit > 0 && m->limit_soft) {
        name_cause(w, "score-softcap=%.7g", m->score_limit);
        say_cause(w, "the scores z are capped: %.7g tanh(z / %.7g)", m->score_limit,
                  m->score_limit);
    } else if (m->score_limit > 0) {
        name_cause(w, "score-limit=%g", m->score_limit);
        say_cause(w, "the scores are clamped to %g on both sides", m->score_limit);
    } else if (m->score_plus != 0) {
        name_cause(w, "score-plus=%.7g", m->score_plus);
        say_cause(w, "%s is added to the scores", number_words(w, m->score_plus).text);
    } else if (m->score_slope != 0) {
        name_cause(w, "score-slope=%.7g%s", m->score_slope, ids[m->slopes]);
        say_cause(w, "%s%s for each key of distance is %s the scores (ALiBi)",
                  number_words(w, fabs(m->score_slope)).text, slopes[m->slopes],
                  m->score_slope > 0 ? "subtracted from" : "added to");
    } else if (m->end_term > 0) {
        name_cause(w, "score-terms=%zu-%zu", m->first_term, m->end_term - 1);
        say_cause(w, "the product of query and key takes coordinates %zu to %zu alone, of %zu",
                  m->first_term, m->end_term - 1, w->config->head_dim);
    } else if (m->transposed) {
        name_cause(w, "scores-transposed");
        say_cause(w, "the scores are transposed: queries and keys are exchanged, row i has the "
                     "products of key i");
    } else if (m->query_by != 0) {
        size_t by = (size_t)(m->query_by < 0 ? -m->query_by : m->query_by);
        name_cause(w, "query-of-row%+td", m->query_by);
        say_cause(w, "the scores are those of the query %zu %s", by,
                  m->query_by < 0 ? "before" : "after");
    } else
        return false;
    return true;
}

static bool say_weights(cause_words *w) {
    const sinkproof_attending *m = w->how;
    bool some = true;
    if (m->weight_low > 0) {
        name_cause(w, "weights-from=%g", m->weight_low);
        say_cause(w, "weights below %g are taken as 0", m->weight_low);
    } else if (m->weights_kept > 0) {
        name_cause(w, "weights-kept=%zu", m->weights_kept);
        say_cause(w, "a query keeps only its %s with the largest weights",
                  sinkproof_counted(m->weights_kept, "key").text);
    } else if (m->weight_high < 1) {
        name_cause(w, "weights-to=%g", m->weight_high);
        say_cause(w, "weights above %g are cut to it", m->weight_high);
    } else
        some = false;
    if (m->weights_over) name_cause(w, some ? "-over-sum" : "weights-renormalised");
    if (m->weights_over && some) say_cause(w, ", and the others are divided by their sum");
    if (m->weights_over && !some) say_cause(w, "the weights of the keys are divided by their sum");
    return some || m->weights_over;
}

static bool say_columns(cause_words *w) {
    const sinkproof_attending *m = w->how;
    bool first = m->columns == SINKPROOF_COLUMNS_WITHOUT_FIRST;
    if (m->columns == SINKPROOF_COLUMNS_DEFINED) return false;
    name_cause(w, "columns-without-%s", first ? "first" : "last");
    if (first)
        say_cause(w, "of the weights of keys and sink the first column is dropped, not the sink's: "
                     "key j has the weight of key j + 1, and the last key that of the sink");
    else
        say_cause(w, "of the weights of sink and keys the last column is dropped, not the sink's: "
                     "key j has the weight of key j - 1, and key 0 that of the sink");
    if (m->steps > 0) name_cause(w, "-steps-from-%zu", m->steps);
    if (m->steps > 0)
        say_cause(w, "; rows from %zu on come one by one, and each has the last key then",
                  m->steps);
    return true;
}

static bool say_values(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->output_times == 1) return false;
    name_cause(w, "values-times=%.7g", m->output_times);
    say_cause(w, "the values, or what is summed of them, are multiplied by %s",
              number_words(w, m->output_times).text);
    return true;
}

// All that is not as defined: one cause, or two.
static void say_what(cause_words *w) {
    static bool (*const say[])(cause_words *) = {
        say_merges, say_sinks, say_heads,  say_reads,   say_passes,  say_cache,   say_leaks,
        say_mask,   say_rules, say_scores, say_softmax, say_weights, say_columns, say_values};
    bool any = false;
    for (size_t i = 0; i < sizeof say / sizeof say[0]; i++) {
        size_t id = strlen(w->id), text = strlen(w->text);
        if (any) name_cause(w, "+");
        if (any) say_cause(w, "; and ");
        if (say[i](w))
            any = true;
        else
            w->id[id] = w->text[text] = '\0';
    }
}

// "in head 3", "in heads 0-4", "in heads 1, 4 and 7".
static void say_place_of_heads(cause_words *w) {
    const sinkproof_attending *m = w->how;
    size_t each = w->config->n_heads / w->config->n_kv_heads, met = 0;
    size_t last = m->end_head > 0 ? m->end_head - 1 : w->config->n_heads - 1;
    size_t some = (size_t)__builtin_popcountll(m->heads);
    if (m->heads != 0) {
        name_cause(w, "@heads");
        say_cause(w, ", in heads ");
        for (size_t h = 0; h < 64; h++) {
            if ((m->heads >> h & 1) == 0) continue;
            met++;
            name_cause(w, "%s%zu", met == 1 ? "=" : "+", h);
            say_cause(w, "%s%zu", met == 1 ? "" : met == some ? " and " : ", ", h);
        }
        return;
    }
    name_cause(w, "@head=%zu", m->first_head);
    if (last > m->first_head) name_cause(w, "-%zu", last);
    if (last == m->first_head)
        say_cause(w, ", in head %zu", last);
    else if (each > 1 && m->first_head % each == 0 && last + 1 == m->first_head + each)
        say_cause(w, ", in heads %zu-%zu, those of key/value head %zu", m->first_head, last,
                  last / each);
    else
        say_cause(w, ", in heads %zu-%zu", m->first_head, last);
}

// last 0: up to the last of all.
static void say_rows_apart(cause_words *w, const char *word, size_t first, size_t last) {
    name_cause(w, "-by-%zu", w->how->row_step);
    say_cause(w, ", at %ss %zu, %zu and so on", word, first, first + w->how->row_step);
    if (last > 0) say_cause(w, " up to %zu", last);
}

static void say_place(cause_words *w) {
    const sinkproof_attending *m = w->how;
    const char *word = w->site->packed ? "row" : "position";
    bool rows = m->first_row > 0 || m->end_row > 0;
    bool heads = m->first_head > 0 || m->end_head > 0 || m->heads != 0;
    bool open = m->end_row == 0 || m->end_row >= w->site->rows;
    size_t first = m->first_row + w->site->begin, end = m->end_row + w->site->begin;
    if (heads) say_place_of_heads(w);
    if (rows) name_cause(w, "@%s=%zu", word, first);
    if (rows && !open && end > first + 1) name_cause(w, "-%zu", end - 1);
    if (m->row_step > 0)
        say_rows_apart(w, word, first, open ? 0 : end - 1);
    else if (rows && open)
        say_cause(w, ", from %s %zu on", word, first);
    else if (rows && end == first + 1)
        say_cause(w, ", at %s %zu", word, first);
    else if (rows)
        say_cause(w, ", at %ss %zu-%zu", word, first, end - 1);
    if (heads || (rows && !open) || m->row_step > 0) say_cause(w, " alone");
}

// How far the number may be off; of several numbers no range is known.
static void say_range(cause_words *w) {
    sinkproof_attending how = *w->how;
    fitted_member of[ATTENTION_NUMBERS];
    char text[RANGE_TEXT];
    range_text(how.estimated ? RANGE_MOST : how.times_error, text);
    say_cause(w, "%s", attention_numbers_of(&how, of) > 1 ? " (the numbers are estimated)" : text);
}

attention_site attention_site_of(const sinkproof_config *config, const sinkproof_trace *trace) {
    size_t rows = sinkproof_trace_length(trace), begin = sinkproof_trace_first(trace);
    return (attention_site){.config = config,
                            .keys = begin + rows,
                            .rows = rows,
                            .begin = begin,
                            .packed = sinkproof_trace_sequences(trace) > 1};
}

void attention_cause_say(const sinkproof_attending *how, const attention_site *site, char *id,
                         size_t id_size, char *text, size_t text_size) {
    cause_words w = {how, site, site->config, site->keys, id, text, id_size, text_size};
    id[0] = text[0] = '\0';
    say_what(&w);
    if (how->times_error > 0) say_range(&w);
    say_place(&w);
    if (!how->kernel) return;
    say_cause(&w,
              "%sattention is a fused kernel's, whose scores and weights are not rounded as the "
              "policy says",
              text[0] == '\0' ? "" : "; and ");
    name_cause(&w, id[0] == '\0' ? "kernel" : "+kernel");
}
