// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The public functions that drill a plug-in of this program.
#include "audit/plugin/drill.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct sinkproof_drill_ruling {
    sinkproof_plugin_ruling made;
    char *json;
};

// Reads the options up to their size.
static sinkproof_drill_options known_options(const sinkproof_drill_options *given) {
    sinkproof_drill_options o = {.size = sizeof o};
    if (given != NULL) memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    if (o.rate == 0) o.rate = 1e-9;
    if (o.seed == 0) o.seed = 1;
    return o;
}

bool sinkproof_drill_plugin(const sinkproof_plugin *plugin, const sinkproof_drill_options *options,
                            sinkproof_drill_ruling **ruling, sinkproof_error *error) {
    const sinkproof_drill_options o = known_options(options);
    if (plugin == NULL || ruling == NULL)
        return sinkproof_fail(error, "expected a plug-in and a place for a ruling, found NULL");
    *ruling = NULL;
    if (!(o.rate > 0 && o.rate < 1))
        return sinkproof_fail(error, "expected a rate between 0 and 1, found %g", o.rate);
    const sinkproof_plugin_options how = {.inside = plugin,
                                          .said = o.said,
                                          .stop = o.stop,
                                          .limit = o.limit,
                                          .stages = o.stages,
                                          .only = o.only,
                                          .policy = o.policy,
                                          .model = o.model,
                                          .rate = o.rate,
                                          .seed = o.seed,
                                          .strict = o.strict,
                                          .first = o.first,
                                          .no_cause = o.no_cause,
                                          .progress = o.progress,
                                          .context = o.context};
    if (!sinkproof_plugin_check(&how, error)) return false;
    sinkproof_drill_ruling *r = calloc(1, sizeof *r);
    if (r == NULL) return sinkproof_fail(error, "no memory for a ruling");
    bool good = plugin_judge_through(&inside_opener, &how, &r->made, error);
    if (good) r->json = json_dumps(r->made.results, JSON_INDENT(1));
    if (good && r->json == NULL) good = sinkproof_fail(error, "no memory for a ruling");
    if (!good) sinkproof_drill_ruling_free(r);
    *ruling = good ? r : NULL;
    return good;
}

void sinkproof_drill_ruling_free(sinkproof_drill_ruling *ruling) {
    if (ruling == NULL) return;
    json_decref(ruling->made.results);
    free(ruling->made.text);
    free(ruling->json);
    free(ruling);
}

int sinkproof_drill_ruling_exit(const sinkproof_drill_ruling *ruling) {
    return ruling->made.exit;
}

const char *sinkproof_drill_ruling_text(const sinkproof_drill_ruling *ruling) {
    return ruling->made.text;
}

const char *sinkproof_drill_ruling_json(const sinkproof_drill_ruling *ruling) {
    return ruling->json;
}
