// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for sinks, and for parts of the keys that are merged.
#include "audit/diagnose/attention_words.h"
#include "base/words.h"

#include <math.h>

static void say_parts(cause_words *w) {
    size_t part = w->how->part;
    switch (w->how->parting) {
    case SINKPROOF_PARTS_AT:
        say_cause(w, "the keys before key %zu and the others", part);
        break;
    case SINKPROOF_PARTS_OF:
        say_cause(w, "the parts of %s", sinkproof_counted(part, "key").text);
        break;
    case SINKPROOF_PARTS_EQUAL:
        say_cause(w, "the %zu equal parts of the keys that a query sees", part);
        break;
    case SINKPROOF_PARTS_OF_ALL:
        say_cause(w, "the %zu equal parts of all keys up to the query", part);
        break;
    case SINKPROOF_PARTS_OF_PASS:
        say_cause(w,
                  "the prefix in the cache and the query's own pass (the second begins at position "
                  "%zu, each has %s)",
                  w->how->part_begin, sinkproof_counted(part, "row").text);
        break;
    case SINKPROOF_PARTS_ONE:
        break;
    }
}

static void name_parts(cause_words *w) {
    static const char *const words[] = {[SINKPROOF_PARTS_ONE] = "",
                                        [SINKPROOF_PARTS_AT] = "-at",
                                        [SINKPROOF_PARTS_OF] = "",
                                        [SINKPROOF_PARTS_EQUAL] = "-of-equal",
                                        [SINKPROOF_PARTS_OF_ALL] = "-of-all",
                                        [SINKPROOF_PARTS_OF_PASS] = "-prefix"};
    if (w->how->parting != SINKPROOF_PARTS_ONE)
        name_cause(w, "%s-%zu", words[w->how->parting], w->how->part);
    if (w->how->parting == SINKPROOF_PARTS_OF_PASS) name_cause(w, "-from-%zu", w->how->part_begin);
}

static const char *in_words(sinkproof_in_parts in) {
    static const char *const words[] = {[SINKPROOF_IN_NONE] = "no part",
                                        [SINKPROOF_IN_FIRST] = "the first part alone",
                                        [SINKPROOF_IN_LAST] = "the last part alone",
                                        [SINKPROOF_IN_ALL] = "every part"};
    return words[in];
}

// Of a log-sum-exp, behind "that" or "and".
static void say_exponent(cause_words *w) {
    double exponent = w->how->merging.exponent;
    name_cause(w, "-lse-times=%.7g", exponent);
    if (exponent == 1.4426950408889634)
        say_cause(w, "in base 2 and is read as natural: log2(e) times too large");
    else if (exponent == log(2))
        say_cause(w, "natural and is read in base 2: multiplied by ln(2)");
    else
        say_cause(w, "multiplied by %s", number_words(w, exponent).text);
}

// Behind "the outputs of the parts".
static void say_unscaled(cause_words *w) {
    const sinkproof_merging *m = &w->how->merging;
    static const char *const ids[] = {"", "sums", "outputs", "both"};
    static const char *const what[] = {"", "their sums are", "they are", "they and their sums are"};
    name_cause(w, "-unscaled=%s%s%s", ids[m->unscaled], m->running ? "-running" : "",
               m->begun ? "-from-sink" : "");
    say_cause(w, " are merged without rescaling: %s relative to the maximum of %s%s, not of all",
              what[m->unscaled], m->running ? "the parts up to each" : "each part",
              m->begun ? " and of the sink" : "");
}

bool say_merges(cause_words *w) {
    const sinkproof_merging *m = &w->how->merging;
    static const char *const ids[] = {"none", "first", "last", "all"};
    static const char *const mean_ids[] = {"", "-over-begun", "-over-all", "-not"};
    static const char *const means[] = {"", "those before the window among them, ",
                                        "those without a key among them, ", ""};
    if (w->how->parts_kept != SINKPROOF_KEPT_ALL) {
        static const char *const kept[] = {"",          "kept=highest", "kept=first",
                                           "kept=last", "lost=first",   "lost=last"};
        static const char *const which[] = {"",
                                            ("only that with the largest score counts, the "
                                             "others are left out"),
                                            "only the first counts, the others are left out",
                                            "only the last counts, the others are left out",
                                            "the first is lost",
                                            "the last is lost"};
        name_cause(w, "part-%s", kept[w->how->parts_kept]);
        name_parts(w);
        say_cause(w, "of ");
        say_parts(w);
        say_cause(w, " %s", which[w->how->parts_kept]);
        return true;
    }
    if (!m->on) return false;
    if (w->how->parting == SINKPROOF_PARTS_ONE) {
        name_cause(w, "sink-gate");
        say_cause(w, "the log-sum-exp in the sink's gate is ");
        say_exponent(w);
        return true;
    }
    name_cause(w, "merge");
    name_parts(w);
    say_cause(w, "the outputs of ");
    say_parts(w);
    if (m->unscaled != 0) {
        say_unscaled(w);
        return true;
    }
    if (m->exponent == 0) {
        name_cause(w, "-averaged%s%s", mean_ids[m->mean], m->gated ? "-gated" : "");
        if (m->mean == SINKPROOF_MEAN_NOT)
            say_cause(w, " are added up, not averaged by their sums, ");
        else
            say_cause(w, " are averaged, %s", means[m->mean]);
        if (m->gated) {
            say_cause(w, "and the sink's gate is applied to the mean");
            return true;
        }
    } else if (m->reversed) {
        name_cause(w, "-exchanged");
        say_cause(w, " are merged with each other's log-sum-exps, ");
    } else if (m->exponent == 1) {
        say_cause(w, " are merged with the wrong sinks, ");
    } else {
        say_cause(w, " are merged by a log-sum-exp that is ");
        say_exponent(w);
        say_cause(w, ", ");
    }
    if (m->gated) {
        name_cause(w, "-gated");
        say_cause(w, "and the sink's gate is applied to what they merge into");
        return true;
    }
    name_cause(w, "-sink=%s/%s%s", ids[m->sink_divides], ids[m->sink_in_lse],
               m->sink_beside ? "/beside" : "");
    say_cause(w, "the sink in the divisor of %s", in_words(m->sink_divides));
    if (m->exponent != 0) say_cause(w, " and in the log-sum-exp of %s", in_words(m->sink_in_lse));
    if (m->sink_beside) say_cause(w, ", and merged as a part of its own");
    if (m->sink_too) name_cause(w, "-too");
    if (m->sink_too) say_cause(w, " in the same base");
    return true;
}

static void say_sink_count(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->sink_per_part) {
        name_cause(w, "sink-per-part");
        name_parts(w);
        say_cause(w, "the sink is counted in each of ");
        say_parts(w);
    } else if (m->sink_count == 0) {
        name_cause(w, "sink-dropped");
        say_cause(w, "the sink is left out");
    } else {
        name_cause(w, "sink-counted=%.7g", m->sink_count);
        say_cause(w, "the sink is counted %s times, not once", number_words(w, m->sink_count).text);
        if (m->sink_count == 2 || m->sink_count == 0.5)
            say_cause(w, " (a log-sum-exp off by ln(2) does the same)");
    }
}

static bool say_sink_made(cause_words *w) {
    static const char *const made[][2] = {
        [SINKPROOF_SINK_STORED] = {"", ""},
        [SINKPROOF_SINK_ABSOLUTE] = {"absolute", "the sinks have lost their sign: absolute values"},
        [SINKPROOF_SINK_MEAN] = {"mean", "every head has the mean of the sinks"},
        [SINKPROOF_SINK_OF_GROUP] = {"group-mean", "each group of heads has the mean of its sinks"},
        [SINKPROOF_SINK_LARGEST] = {"largest", "every head has the largest of the sinks"},
        [SINKPROOF_SINK_SMALLEST] = {"smallest", "every head has the smallest of the sinks"},
        [SINKPROOF_SINK_GROUP_LARGE] = {"group-largest",
                                        "each group of heads has the largest of its sinks"},
        [SINKPROOF_SINK_GROUP_SMALL] = {"group-smallest",
                                        "each group of heads has the smallest of its sinks"},
        [SINKPROOF_SINK_E4M3] = {"e4m3", "the sinks are rounded to e4m3"},
        [SINKPROOF_SINK_E5M2] = {"e5m2", "the sinks are rounded to e5m2"},
        [SINKPROOF_SINK_WHOLE] = {"whole", "the sinks are rounded to whole numbers"},
        [SINKPROOF_SINK_CUT] = {"cut", "the sinks are cut to whole numbers"}};
    const sinkproof_attending *m = w->how;
    if (m->sink_made == SINKPROOF_SINK_STORED) return false;
    name_cause(w, "sink-%s", made[m->sink_made][0]);
    say_cause(w, "%s", made[m->sink_made][1]);
    return true;
}

static void say_sink_layer(cause_words *w) {
    int by = w->how->sink_layer;
    name_cause(w, "sink-layer%+d", by);
    if (by == 1)
        say_cause(w, "the sinks are those of the next layer");
    else if (by == -1)
        say_cause(w, "the sinks are those of the layer before");
    else
        say_cause(w, "the sinks are those of the layer %d %s", by < 0 ? -by : by,
                  by < 0 ? "before" : "after");
}

bool say_sinks(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->sink_per_part || m->sink_count != 1)
        say_sink_count(w);
    else if (m->renormalised) {
        name_cause(w, "sink-renormalised");
        say_cause(w, "the weights of the keys are divided by their sum");
    } else if (m->sink.choice != SINKPROOF_HEAD_OWN)
        say_head_from(w, m->sink, "sink", "the sink");
    else if (m->sink_layer != 0)
        say_sink_layer(w);
    else if (m->sink_times != 1) {
        name_cause(w, "sink-times=%.7g", m->sink_times);
        say_cause(w, "the sink is multiplied by %s", number_words(w, m->sink_times).text);
    } else if (m->sink_plus != 0) {
        name_cause(w, "sink-plus=%.7g", m->sink_plus);
        say_cause(w, "%s is %s each sink, or %s the scores beside it",
                  number_words(w, fabs(m->sink_plus)).text,
                  m->sink_plus > 0 ? "added to" : "subtracted from",
                  m->sink_plus > 0 ? "subtracted from" : "added to");
    } else if (m->sink_low > -INFINITY) {
        name_cause(w, "sink-from=%g", m->sink_low);
        if (m->sink_low == 0)
            say_cause(w, "negative sinks are taken as 0");
        else
            say_cause(w, "sinks below %g are taken as %g", m->sink_low, m->sink_low);
    } else if (m->sink_high < INFINITY) {
        name_cause(w, "sink-to=%g", m->sink_high);
        if (m->sink_high == 0)
            say_cause(w, "positive sinks are taken as 0");
        else
            say_cause(w, "sinks above %g are taken as %g", m->sink_high, m->sink_high);
    } else if (m->sink_on_key) {
        name_cause(w, "sink-on-key-0");
        say_cause(w, "the sink is added to the score of key 0, and is left out elsewhere");
    } else if (m->sink_value && m->cache.moved != 0) {
        name_cause(w, "sink-column-first");
        say_cause(w, "the sink's column is the first of the weights, not the last: key 0 has the "
                     "weight of the sink, and each other key that of the previous key");
    } else if (m->sink_value) {
        name_cause(w, "sink-has-value-0");
        say_cause(w, "the weight of the sink multiplies the value of key 0");
    } else if (m->gates > 0) {
        name_cause(w, "sink-gate-twice");
        say_cause(w, "the gate of the sink, 1 less its weight, is applied twice");
    } else
        return say_sink_made(w);
    return true;
}
