// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/face/designs.h"

#include "audit/designs/design_report.h"
#include "audit/trace/trace_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sinkproof_design_ruling {
    char policy[SINKPROOF_POLICY_NAME], *text, *json;
    json_t *results;
    int exit;
};

static int designs_exit_code(const sinkproof_design_judgement *j) {
    size_t decided = 0;
    for (size_t k = 0; k < j->count; k++) {
        if (j->verdicts[k].outside > 0) return 1;
        decided += sinkproof_design_decided(&j->verdicts[k]);
    }
    return decided > 0 ? 0 : 4;
}

// `declared`: the policy in the file, or NULL.
static bool write_design_ruling(sinkproof_design_ruling *r, const sinkproof_design_judgement *j,
                                const char *declared, const sinkproof_policy *policy) {
    sinkproof_note note = sinkproof_declared_note(declared, policy);
    size_t length;
    FILE *out = open_memstream(&r->text, &length);
    if (out == NULL) return false;
    if (note.text[0] != '\0') fprintf(out, "%s\n", note.text);
    sinkproof_design_print(out, j, r->policy);
    bool written = fclose(out) == 0;
    r->exit = designs_exit_code(j);
    r->results = sinkproof_design_json(j, r->policy);
    r->json = r->results != NULL ? json_dumps(r->results, JSON_INDENT(1)) : NULL;
    return written && r->json != NULL;
}

// Judges an opened trace and closes it.
static bool judge_opened_designs(sinkproof_design_trace *trace, const char *policy,
                                 sinkproof_design_ruling **ruling, sinkproof_error *error) {
    sinkproof_policy parsed;
    sinkproof_design_judgement judgement;
    sinkproof_design_ruling *r = calloc(1, sizeof *r);
    if (policy == NULL) policy = trace->policy;
    if (policy == NULL) policy = sinkproof_design_policy(trace);
    bool fine = r != NULL || sinkproof_fail(error, "no memory for a ruling");
    fine = fine && sinkproof_policy_parse(policy, &parsed, error) &&
           sinkproof_design_judge(trace, &parsed, &judgement, error);
    if (fine) {
        memcpy(r->policy, parsed.name, sizeof r->policy);
        fine = write_design_ruling(r, &judgement, trace->policy, &parsed) ||
               sinkproof_fail(error, "no memory for a ruling");
        sinkproof_design_judgement_free(&judgement);
    }
    sinkproof_design_trace_close(trace);
    if (!fine) sinkproof_design_ruling_free(r);
    *ruling = fine ? r : NULL;
    return fine;
}

bool sinkproof_judge_design(const char *path, const char *policy, sinkproof_design_ruling **ruling,
                            sinkproof_error *error) {
    sinkproof_design_trace trace;
    if (path == NULL || ruling == NULL)
        return sinkproof_fail(error, "expected a path and a place for a ruling, found NULL");
    *ruling = NULL;
    return sinkproof_design_trace_open(path, &trace, error) &&
           judge_opened_designs(&trace, policy, ruling, error);
}

bool sinkproof_judge_design_bytes(const void *bytes, size_t length, const char *name,
                                  const char *policy, sinkproof_design_ruling **ruling,
                                  sinkproof_error *error) {
    sinkproof_design_trace trace;
    if (bytes == NULL || ruling == NULL)
        return sinkproof_fail(error, "expected bytes and a place for a ruling, found NULL");
    *ruling = NULL;
    return sinkproof_design_trace_parse(bytes, length, name != NULL ? name : "(memory)", &trace,
                                        error) &&
           judge_opened_designs(&trace, policy, ruling, error);
}

void sinkproof_design_ruling_free(sinkproof_design_ruling *ruling) {
    if (ruling == NULL) return;
    json_decref(ruling->results);
    free(ruling->text);
    free(ruling->json);
    free(ruling);
}

int sinkproof_design_ruling_exit(const sinkproof_design_ruling *ruling) {
    return ruling->exit;
}

const char *sinkproof_design_ruling_policy(const sinkproof_design_ruling *ruling) {
    return ruling->policy;
}

const char *sinkproof_design_ruling_text(const sinkproof_design_ruling *ruling) {
    return ruling->text;
}

const char *sinkproof_design_ruling_json(const sinkproof_design_ruling *ruling) {
    return ruling->json;
}

json_t *sinkproof_design_ruling_results(const sinkproof_design_ruling *ruling) {
    return ruling->results;
}
