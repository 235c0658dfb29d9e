// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at a range of keys: what is read there otherwise, or from elsewhere.
// Where the range begins is told by the first row that fails: its own key is the first of the
// range, or the one before it, where a query's own key is right. Pages may be read so at any later
// row.
#include "audit/diagnose/attention_hunt.h"
#include "audit/judge/judge_read_source.h"

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

// The begins that the first row that fails tells; returns how many.
static size_t range_begins(const attention_view *v, size_t begin[2]) {
    size_t n = 0, at = attention_first_failing(v);
    if (!v->plain || at == 0) return 0;
    begin[n++] = at;
    if (at > 1) begin[n++] = at - 1;
    return n;
}

// Keys from one on hold those of any distance before: a buffer that is not filled again.
void guess_range_sources(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t n = h->view->keys, begin[2], begins = range_begins(h->view, begin);
    for (size_t i = 0; i < begins; i++) {
        m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1};
        m.cache.moved = of->moved, m.cache.first = begin[i], m.cache.count = n - begin[i];
        for (size_t by = 1; by <= begin[i]; by = hunt_next_size(by))
            m.cache.by = -(ptrdiff_t)by, hunt_offer(h, &m);
    }
}

// What is read of the keys of a range, of all kinds that read no other key.
static void offer_reads(hunt *h, sinkproof_attending *m) {
    const attention_view *v = h->view;
    bool values = m->read.of == SINKPROOF_CACHE_VALUES;
    bool turns = v->config->rotation.kind != SINKPROOF_NO_ROTATION && !values && v->plain;
    sinkproof_read_as *read = &m->read;
    const sinkproof_read_as as = *read;
    sinkproof_tensor source;
    const double times[] = {-1, 0.5, 2, 0.25, 4};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        read->times = times[i], hunt_offer(h, m);
    *read = as, read->map = SINKPROOF_MAP_TURNED;
    for (int by = -32; by <= 32 && turns; by++)
        if (read->turn_by = by, by != 0) hunt_offer(h, m);
    read->turn_by = 0;
    for (read->turn_times = -1; read->turn_times <= 1 && turns; read->turn_times += 2)
        hunt_offer(h, m);
    *read = as;
    for (read->layer_by = -1; read->layer_by <= 1; read->layer_by += 2) {
        bool there = true;
        for (unsigned one = 1; one <= SINKPROOF_CACHE_VALUES; one *= 2)
            if (read->of & one)
                there = there && sinkproof_read_source(read, v->config, v->of->trace, one,
                                                       v->of->layer, &source);
        if (there) hunt_offer(h, m);
    }
    *read = as, read->not_turned = true;
    if (turns && (read->of & SINKPROOF_CACHE_VALUES) == 0 &&
        sinkproof_read_source(read, v->config, v->of->trace, SINKPROOF_CACHE_KEYS, v->of->layer,
                              &source))
        hunt_offer(h, m);
    *read = as;
}

enum { MOST_FIRST = 64 };

void guess_range_reads(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t n = h->view->keys, begin[2], begins = range_begins(h->view, begin);
    m.read.of = of->moved;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1};
    for (size_t i = 0; i < begins; i++) {
        m.cache.first = begin[i], m.cache.count = n - begin[i];
        offer_reads(h, &m);
        hunt_offer_fitted(h, &m, &m.read.times, false, 1e6);
        m.read.times = 1;
        for (size_t count = 1; begin[i] + count < n; count = hunt_next_size(count))
            m.cache.count = count, offer_reads(h, &m);
    }
    // the first keys of all, as later passes read them
    m.cache.first = 0;
    size_t at = attention_first_failing(h->view);
    for (m.cache.count = 4; m.cache.count < at && begins > 0; m.cache.count += 4)
        if (m.cache.count <= MOST_FIRST) offer_reads(h, &m);
    for (size_t size = 4; size < n && h->view->plain; size *= 2)
        for (size_t page = 0; (page + 1) * size < n && n / size <= 64; page++) {
            m.cache.first = page * size, m.cache.count = size;
            offer_reads(h, &m);
        }
}
