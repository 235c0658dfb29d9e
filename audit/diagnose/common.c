// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One cause of many findings is preferred to a cause of each: an exchange of the layers' windows
// is one mistake, though each half of it is also a window too wide or too narrow.
#include "audit/diagnose/common.h"

static bool is_same(const mistakes_together *a, const mistakes_together *b) {
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->mistakes[i] != b->mistakes[i]) return false;
    return true;
}

// The place of an explanation among those of a finding whose rows are `rows`; n_alike: none.
static size_t place_among(const diagnosed_finding *f, const mistakes_together *what,
                          sinkproof_rows rows) {
    bool alike = f->rows.first == rows.first && f->rows.end == rows.end;
    for (size_t a = 0; alike && a < f->n_alike; a++)
        if (is_same(&f->alike[a], what)) return a;
    return f->n_alike;
}

bool finding_explained_by(const diagnosed_finding *f, const mistakes_together *what,
                          sinkproof_rows rows) {
    return place_among(f, what, rows) < f->n_alike;
}

// The number of findings without a common explanation that this one explains.
static size_t explained_by(const sinkproof_diagnosis *d, const mistakes_together *what,
                           sinkproof_rows rows) {
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->findings[i].common == 0 && finding_explained_by(&d->findings[i], what, rows);
    return n;
}

// The explanation of most findings, the first of several; NULL: each explains one.
static const mistakes_together *most_common(const sinkproof_diagnosis *d, sinkproof_rows *rows) {
    const mistakes_together *best = NULL;
    size_t most = 1;
    for (size_t i = 0; i < d->n; i++) {
        const diagnosed_finding *f = &d->findings[i];
        for (size_t a = 0; f->common == 0 && a < f->n_alike; a++) {
            size_t n = explained_by(d, &f->alike[a], f->rows);
            if (n > most) best = &f->alike[a], most = n, *rows = f->rows;
        }
    }
    return best;
}

void findings_prefer_common(sinkproof_diagnosis *d) {
    const mistakes_together *best;
    sinkproof_rows rows = {0, 0};
    for (size_t number = 1; (best = most_common(d, &rows)) != NULL; number++) {
        mistakes_together what = *best;
        for (size_t i = 0; i < d->n; i++) {
            diagnosed_finding *f = &d->findings[i];
            size_t a = f->common == 0 ? place_among(f, &what, rows) : f->n_alike;
            if (a == f->n_alike) continue;
            for (; a > 0; a--) f->alike[a] = f->alike[a - 1];
            f->alike[0] = what;
            f->common = number;
        }
    }
}
