// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention between the rotated queries and its output (A5 to A11) that is computed otherwise than
// defined, at some place. Every number is a parameter: a diagnosis fits it to the trace. Keys are
// counted from the beginning of the cache. A comment begins with the definition's value.
#ifndef SINKPROOF_JUDGE_ATTENDING_H
#define SINKPROOF_JUDGE_ATTENDING_H

#include "audit/judge/judge_access.h"
#include "audit/judge/judge_passes.h"
#include "audit/judge/judge_region.h"
#include "audit/judge/judge_summing.h"
#include "ref/policy.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

// Keys of the cache that are read otherwise than they were written.
typedef enum sinkproof_cache_kind {
    SINKPROOF_CACHE_NONE,
    SINKPROOF_CACHE_FIXED,  // keys [first, first + count)
    SINKPROOF_CACHE_BEFORE, // the same, counted back from the query, whose own key is 0
    SINKPROOF_CACHE_SEEN,   // the same, counted from the first key that the query sees
    SINKPROOF_CACHE_BEHIND, // key `first` and later ones that are `count` or more before the query
    // keys that are `count` or more before the query: `moved` of them are those that have
    // overwritten them in a ring of `count` slots
    SINKPROOF_CACHE_RING,
    // keys from `first` on that are no ancestors of the query in a tree of drafts: node i has the
    // nodes count * i + 1, ..., count * i + count below it; `by` 0: ancestors before the window,
    // which has `by` keys, are seen too
    SINKPROOF_CACHE_TREE,
    SINKPROOF_CACHE_PASSES,    // as sinkproof_pass_read says
    SINKPROOF_CACHE_LISTED,    // as sinkproof_access says: the keys of its sets
    SINKPROOF_CACHE_DOCUMENTS, // no key of an earlier document is seen
    SINKPROOF_CACHE_STRETCHES, // the rows of a stretch see all its keys, later ones too
    // of tiles of `count` keys, counted from key 0 on or, `seen`, from the first that the query
    // sees: the last tile, whole or not, but the first of all where `first` is 1; what is left
    // behind the last whole one; or what the window leaves of its first one, where it is not whole
    SINKPROOF_CACHE_TILE,
    SINKPROOF_CACHE_REMAINDER,
    SINKPROOF_CACHE_EDGE,
    SINKPROOF_CACHE_ORDER // all keys: those of each tile stand in another order, `by` says which
} sinkproof_cache_kind;

// The orders of a tile of `count` keys, as `by` of SINKPROOF_CACHE_ORDER.
enum {
    SINKPROOF_TILE_REVERSED,
    SINKPROOF_TILE_HALVES,  // the two halves are exchanged
    SINKPROOF_TILE_SPREAD,  // key 2 i is that at i, key 2 i + 1 that at count / 2 + i
    SINKPROOF_TILE_GATHERED // the other way
};

enum { SINKPROOF_CACHE_KEYS = 1, SINKPROOF_CACHE_VALUES = 2 };

typedef struct sinkproof_cache_read {
    sinkproof_cache_kind kind;
    size_t first, count;
    double times;   // 1: how often they are read; 0: left out
    unsigned moved; // 0: of these the keys, the values or both are those of `by` keys later
    ptrdiff_t by;
    bool zeros;     // or zeros
    bool circle;    // keys before key 0 are the last ones, and keys after them the first
    bool exchanged; // or the next `count` keys, or those `by` keys later, which hold these
    bool spared;    // but for the query's own key
    size_t step;    // 0: of the keys [first, first + count) only every step-th
    bool rest;      // or all but those
    bool unsummed;  // the sum that divides leaves them out; their values are added
    bool seen;      // of tiles: counted from the first key that the query sees
    bool edge;      // keys before key 0 are key 0, and keys after the last are the last
    // 0: all keys of the sequence can be read. Rows before row `steps` come in one pass, and the
    // later ones one by one: a key is there once its row has come
    size_t steps;
} sinkproof_cache_read;

// beside SINKPROOF_CACHE_KEYS and SINKPROOF_CACHE_VALUES
enum { SINKPROOF_READ_QUERIES = 4, SINKPROOF_READ_WEIGHTS = 8 };

// Which numbers of [rows, heads, head_dim] are read in the place of others, or what is made of
// them.
typedef enum sinkproof_read_map {
    SINKPROOF_MAP_NONE,
    SINKPROOF_MAP_ORDER,   // the coordinates of each row of a head stand as `order` says
    SINKPROOF_MAP_LAYOUT,  // pages of `unit` rows, or all rows, are read in another layout
    SINKPROOF_MAP_CENTRED, // less the mean of all rows
    SINKPROOF_MAP_HEADS,   // the mean of all heads
    SINKPROOF_MAP_TURNED   // rotated by the angle of position * turn_times + turn_by
} sinkproof_read_map;

// Whose scale multiplies a code again, of groups that share one each.
typedef enum sinkproof_scale_from {
    SINKPROOF_SCALE_FROM_OWN,
    SINKPROOF_SCALE_FROM_FIRST, // of the first head or token; of each token and head, of token 0
    SINKPROOF_SCALE_FROM_HEAD,  // of each token and head, of head 0
    SINKPROOF_SCALE_FROM_LAST,
    SINKPROOF_SCALE_FROM_BEFORE, // of the head before, or of the token; the first has its own
    SINKPROOF_SCALE_FROM_AFTER
} sinkproof_scale_from;

// Queries, keys, values and weights whose numbers are read otherwise than they were written: those
// of the keys that sinkproof_cache_read means, or of all.
typedef struct sinkproof_read_as {
    unsigned of;             // 0: nothing is
    sinkproof_format format; // SINKPROOF_REAL: not rounded
    sinkproof_scale scale;
    sinkproof_scale_from scale_from;
    double times;       // 1: and multiplied by it
    double value_times; // 0: but values by this
    int layer_by;       // 0: those of so many layers later
    bool not_turned;    // queries and keys as they are before their rotation
    bool spared;        // but for the query's own key and value
    sinkproof_read_map map;
    sinkproof_from order;
    size_t unit, layout; // unit 0: one page of all rows; of others only whole ones are read so
    double turn_times, turn_by;
    bool turn_scaled;        // with the concentration
    sinkproof_change change; // of each row of a head
} sinkproof_read_as;

// The group whose scale group g has, of `count`.
size_t sinkproof_scale_source(const sinkproof_read_as *read, size_t heads, size_t count, size_t g);

// Where the number is written that an order or a layout reads at `at`.
size_t sinkproof_read_place(const sinkproof_read_as *read, size_t rows, size_t heads, size_t dim,
                            size_t at);

typedef enum sinkproof_windowing {
    SINKPROOF_WINDOW_DEFINED,
    SINKPROOF_WINDOW_OFF,
    SINKPROOF_WINDOW_ON // also in a layer without one
} sinkproof_windowing;

// The head whose sink, or whose query, head h has.
typedef enum sinkproof_head_choice {
    SINKPROOF_HEAD_OWN,
    SINKPROOF_HEAD_SHIFTED,   // (h + by) mod heads
    SINKPROOF_HEAD_REVERSED,  // heads - 1 - h
    SINKPROOF_HEAD_GROUP,     // the head whose number is h's key/value head
    SINKPROOF_HEAD_FIRST,     // the first of h's group
    SINKPROOF_HEAD_EXCHANGED, // [groups, heads of each] is read as [heads of each, groups]
    SINKPROOF_HEAD_PAIRS,     // h and the head beside it are exchanged: 2 i and 2 i + 1
    SINKPROOF_HEAD_ONE,       // `by`
    SINKPROOF_HEAD_ROW        // of a sink: (row + by) mod heads, for every head
} sinkproof_head_choice;

typedef struct sinkproof_head_from {
    sinkproof_head_choice choice;
    size_t by;
} sinkproof_head_from;

// Which key/value head a query head reads.
typedef enum sinkproof_group_choice {
    SINKPROOF_GROUP_OWN,
    SINKPROOF_GROUP_SHIFTED, // (own + by) mod groups
    SINKPROOF_GROUP_MODULUS, // h mod groups
    SINKPROOF_GROUP_UNEVEN,  // that of head h + by
    SINKPROOF_GROUP_ONE      // `by`
} sinkproof_group_choice;

// What is made of the sinks.
typedef enum sinkproof_sink_made {
    SINKPROOF_SINK_STORED,
    SINKPROOF_SINK_ABSOLUTE,
    SINKPROOF_SINK_MEAN,        // every head has the mean of all
    SINKPROOF_SINK_OF_GROUP,    // or that of its group
    SINKPROOF_SINK_LARGEST,     // or the largest of all
    SINKPROOF_SINK_SMALLEST,    // or the smallest
    SINKPROOF_SINK_GROUP_LARGE, // the same of its group
    SINKPROOF_SINK_GROUP_SMALL,
    SINKPROOF_SINK_E4M3, // rounded
    SINKPROOF_SINK_E5M2,
    SINKPROOF_SINK_WHOLE, // to a whole number
    SINKPROOF_SINK_CUT    // or to the one that is nearer to 0
} sinkproof_sink_made;

// The keys in parts, whose outputs are merged by the log-sum-exp of each part.
typedef enum sinkproof_parting {
    SINKPROOF_PARTS_ONE,    // all keys are one part
    SINKPROOF_PARTS_AT,     // two: keys before `size`, and the others
    SINKPROOF_PARTS_OF,     // of `size` keys each, from key 0 on
    SINKPROOF_PARTS_EQUAL,  // `size` equal parts of the keys that the query sees
    SINKPROOF_PARTS_OF_ALL, // `size` equal parts of all keys up to the query's own
    // two: the keys of earlier passes and those of the query's own. Row `begin` begins the second
    // pass, and each has `size` rows
    SINKPROOF_PARTS_OF_PASS
} sinkproof_parting;

// Which parts are there at all.
typedef enum sinkproof_parts_kept {
    SINKPROOF_KEPT_ALL,
    SINKPROOF_KEPT_HIGHEST, // that with the largest score
    SINKPROOF_KEPT_FIRST,   // of those with a key that is seen
    SINKPROOF_KEPT_LAST,
    SINKPROOF_KEPT_BUT_FIRST, // all others; where there is one alone, it is lost too
    SINKPROOF_KEPT_BUT_LAST
} sinkproof_parts_kept;
// Whether part `part` is there, of those up to `last`, if the largest score is in part `top`.
bool sinkproof_part_is_kept(sinkproof_parts_kept kept, size_t part, size_t top, size_t last);

// In which parts something is.
typedef enum sinkproof_in_parts {
    SINKPROOF_IN_NONE,
    SINKPROOF_IN_FIRST,
    SINKPROOF_IN_LAST,
    SINKPROOF_IN_ALL
} sinkproof_in_parts;

// Which parts are counted when outputs are averaged.
typedef enum sinkproof_in_mean {
    SINKPROOF_MEAN_SEEN,  // those with a key that is seen
    SINKPROOF_MEAN_BEGUN, // those of keys up to the query's own
    SINKPROOF_MEAN_ALL,   // those of all keys
    SINKPROOF_MEAN_NOT    // none: they are added up
} sinkproof_in_mean;

// What is wrong with a merge. `on` false: nothing is, and parts matter to the sink's count alone.
typedef struct sinkproof_merging {
    bool on;
    // which parts have the sink in the sum that divides their outputs, and in their log-sum-exp
    sinkproof_in_parts sink_divides, sink_in_lse;
    bool sink_beside;       // the sink is one more part, whose log-sum-exp is its logit
    double exponent;        // 1: a factor of every log-sum-exp, beside which the sink's logit stays
    sinkproof_in_mean mean; // exponent 0: which parts without keys count in the mean
    bool gated;             // false: the merged output is multiplied by 1 less the sink's weight
    // 0: what is not rescaled to the maximum of all; SINKPROOF_MERGE_SUMS, SINKPROOF_MERGE_OUTPUTS
    unsigned unscaled;
    bool running;  // false: each part has the maximum of the parts up to it, not of its own
    bool begun;    // false: and of the sink, whose exponential is summed before all parts
    bool sink_too; // false: the exponent is a factor of the sink's logit too
    bool reversed; // false: the first part has the log-sum-exp of the last, and so on
} sinkproof_merging;

enum { SINKPROOF_MERGE_SUMS = 1, SINKPROOF_MERGE_OUTPUTS = 2 };

// How a query's keys are bounded by the pass that it came in, or by a tile of rows.
typedef struct sinkproof_tiling {
    size_t first, rows; // row `first` begins the second tile, each later one has so many; 0: none
    size_t before;      // keys of so many tiles before the query's own are seen, and no earlier one
    bool later;         // all keys of the query's own tile are seen, and earlier ones as defined
    bool anew;          // rows are counted in their tile, and see the keys of that number
} sinkproof_tiling;

// What a masked key's score becomes, in the place of minus infinity.
typedef enum sinkproof_leak {
    SINKPROOF_LEAK_NONE,
    SINKPROOF_LEAK_ADDED,   // a number is added to it
    SINKPROOF_LEAK_REPLACED // it is that number
} sinkproof_leak;

enum { SINKPROOF_LEAK_LATER = 1, SINKPROOF_LEAK_EARLIER = 2 };

// A factor that depends on where something is: N is `rule_number`.
typedef enum sinkproof_rule {
    SINKPROOF_RULE_NONE,
    SINKPROOF_RULE_LOG_FROM,    // ln(row + 1) / ln(N) where row + 1 > N, else 1
    SINKPROOF_RULE_LOG,         // ln(row + 1) / ln(N)
    SINKPROOF_RULE_ROOT_ROW,    // 1 / sqrt(row + 1)
    SINKPROOF_RULE_OVER_ROW,    // 1 / (row + 1)
    SINKPROOF_RULE_OVER_LAYER,  // 1 / (layer + N)
    SINKPROOF_RULE_ROOT_LAYER,  // 1 / sqrt(layer + N)
    SINKPROOF_RULE_TIMES_LAYER, // layer + N
    SINKPROOF_RULE_UP_LAYER,    // sqrt(layer + N)
    SINKPROOF_RULE_OVER_HEAD,   // 1 / (head + N)
    SINKPROOF_RULE_TIMES_HEAD,  // head + N
    SINKPROOF_RULE_SLOPE_HEAD   // 2^(-8 (head + 1) / heads)
} sinkproof_rule;
enum { SINKPROOF_RULES = SINKPROOF_RULE_SLOPE_HEAD + 1 };

// The slopes of heads.
typedef enum sinkproof_slopes {
    SINKPROOF_SLOPES_ALIKE,
    SINKPROOF_SLOPES_BY_HEAD, // 2^(-8 (h + 1) / heads)
    // where the number of heads is no power of two: the P heads of the power below it have
    // 2^(-8 (h + 1) / P), the others those of 2 P heads, every second one
    SINKPROOF_SLOPES_OF_POWER
} sinkproof_slopes;

// Which column of the weights of keys and sink is dropped, so that the others stand elsewhere. The
// trace has one sequence from position 0 on.
typedef enum sinkproof_columns {
    SINKPROOF_COLUMNS_DEFINED,
    SINKPROOF_COLUMNS_WITHOUT_FIRST, // [keys, sink] without the first: the last key has the sink's
    SINKPROOF_COLUMNS_WITHOUT_LAST   // [sink, keys] without the last: key 0 has the sink's
} sinkproof_columns;

typedef struct sinkproof_attending {
    // the queries that are computed so: all of them where an end is 0
    size_t first_row, end_row, first_head, end_head;
    size_t row_step;          // 0: every row; or the first one and every row_step-th behind it
    unsigned long long heads; // 0: of the first 64 heads, only those whose bit is set
    sinkproof_windowing window;
    ptrdiff_t window_by;          // 0: the window is so many keys wider
    size_t later;                 // 0: so many keys after the query are seen
    size_t from;                  // 0: the first key that is seen at all
    size_t window_unit, row_unit; // 0: the first and the last key are those of whole blocks
    size_t row_tile;   // 0: the first key is that of the first row of the query's tile of rows
    bool row_tile_end; // or of the last one
    size_t block;      // 0: a query sees the keys of its own block alone
    bool block_window; // false: in layers with a window, in its place
    sinkproof_leak leak;
    unsigned leaks; // 0: which masked keys
    double leak_number;
    sinkproof_tiling tiling;
    size_t prefix; // 0: rows before it see all keys before it
    bool across;   // false: the rows of all sequences are those of one
    sinkproof_cache_read cache;
    sinkproof_pass_read passes;
    sinkproof_access access;
    sinkproof_read_as read;
    sinkproof_head_from head; // of the query; its key/value head and its sink come with it
    sinkproof_group_choice group;
    size_t group_by;
    unsigned group_of;  // 0: of the keys or of the values alone
    bool group_spared;  // false: but for the query's own key and value
    ptrdiff_t query_by; // 0: the query is that of so many rows later
    bool transposed; // false: the product is that of the key's row with the key of the query's row
    sinkproof_head_from sink;
    int sink_layer; // 0: the sinks of so many layers later, in a circle
    sinkproof_sink_made sink_made;
    double sink_plus;           // 0: a number added to its logit
    double sink_low, sink_high; // -infinity, infinity: its logit is clamped to them
    double sink_times;          // 1: a factor of its logit
    bool sink_on_key;           // false: it is added to the score of key 0 and is not there
    bool sink_value;            // false: its weight multiplies the value of key 0
    double sink_count;          // 1: how often its exponential is counted
    bool sink_per_part;         // false: it is counted in each part that has keys
    bool renormalised;          // false: the weights of the keys are divided by their sum
    sinkproof_parting parting;
    size_t part, part_begin; // `size` and `begin` above
    sinkproof_parts_kept parts_kept;
    sinkproof_merging merging;
    double score_times, output_times; // 1, 1
    double logits_times;              // 1: a factor of scores and sink
    double score_limit;               // 0: the scores are clamped to it on both sides
    bool limit_soft;                  // false: they are limit tanh(z / limit)
    double score_plus;                // 0: a number added to each score
    sinkproof_rule score_rule, output_rule;
    size_t rule_number;
    sinkproof_weighing weighing;
    sinkproof_summing summing;
    double sum_plus;                // 0: a number added to the sum of e^(z - m)
    double zero_keys;               // 0: so many more keys have the score 0, and no value
    bool zeros_in_sink;             // false: their weight is added to the sink's
    size_t scores_kept;             // 0: only so many of the largest scores are there
    double score_within;            // 0: only those that are at most so much below the largest
    double score_slope;             // 0: a score is so much less for each key from it to the query
    sinkproof_slopes slopes;        // 0: times a slope of each head
    size_t first_term, end_term;    // 0, 0: the coordinates of a product; end 0: all
    double weight_low, weight_high; // 0, 1: smaller weights are 0, larger ones are cut
    size_t weights_kept;            // 0: of the weights only so many of the largest
    bool weights_over;              // false: those of the keys are then divided by their sum
    bool apart;         // false: the values meet these weights, and not those that the engine shows
    double times_error; // 0: the relative error of a factor that was fitted
    bool estimated;     // false: that error is one of least squares, not a range
    sinkproof_columns columns;
    size_t steps; // as of sinkproof_cache_read: how many keys a row of columns has
    bool kernel;  // false: scores and weights are rounded as a fused kernel may, not as declared
    int gates;    // 0: the output is multiplied once more by 1 - alpha_sink
} sinkproof_attending;

#define SINKPROOF_ATTENDING                                                                        \
    {                                                                                              \
        .cache = {.times = 1}, .read = {.times = 1}, .sink_low = -INFINITY, .sink_high = INFINITY, \
        .sink_times = 1, .sink_count = 1, .merging = {.exponent = 1}, .score_times = 1,            \
        .output_times = 1, .logits_times = 1, .weight_high = 1                                     \
    }
extern const sinkproof_attending sinkproof_attending_as_defined;

// Whether a query is in the place.
bool sinkproof_attending_is_at(const sinkproof_attending *m, size_t head, size_t row);

// What the judge's sets and the emulation of a diagnosis share: whole numbers alone.

// The number of a layer's heads, and of their groups.
typedef struct sinkproof_head_counts {
    size_t heads, groups;
} sinkproof_head_counts;
size_t sinkproof_attending_head(sinkproof_head_from from, sinkproof_head_counts n, size_t head,
                                size_t row);
// of: SINKPROOF_CACHE_KEYS or SINKPROOF_CACHE_VALUES
size_t sinkproof_attending_group(const sinkproof_attending *m, sinkproof_head_counts n, size_t head,
                                 unsigned of);
// Whether key j of a query is read as `read` says.
bool sinkproof_attending_reads(const sinkproof_attending *m, unsigned of, size_t row, size_t first,
                               size_t j);
// Whether the keys that `cache` means are those that `read` reads otherwise, and nothing else.
bool sinkproof_attending_reads_range(const sinkproof_attending *m);
// Whether key j is of the query's own pass; one row alone where `passes` has none.
bool sinkproof_attending_is_own(const sinkproof_attending *m, size_t row, size_t j);
// What a score that is not masked is less for its distance.
double sinkproof_attending_slope(const sinkproof_attending *m, size_t heads, size_t head,
                                 size_t row, size_t key);

// The factor of a rule.
typedef struct sinkproof_rule_place {
    size_t layer, head, heads, row;
} sinkproof_rule_place;
double sinkproof_rule_factor(sinkproof_rule rule, size_t number, const sinkproof_rule_place *at);

// The keys [*first, *end) that a query sees; window 0: the layer has none. n: all rows.
typedef struct sinkproof_sight {
    size_t n, window, layer_window; // the configuration's window; the layer's, or 0
} sinkproof_sight;
void sinkproof_attending_seen(const sinkproof_attending *m, const sinkproof_sight *sight,
                              size_t row, size_t *first, size_t *end);

// Whether a key is one that the mask lets through by its leak alone.
bool sinkproof_attending_leaks(const sinkproof_attending *m, const sinkproof_sight *sight,
                               size_t row, size_t key);

// What is read at key j of a query that sees keys from `first` on, in a layer with this window or
// none (0). A key that is not there (before key 0 or after the last) is read as zeros.
typedef struct sinkproof_key_read {
    size_t key, value;
    bool zero_key, zero_value;
    double times, sums; // how often it is read, and how often it counts in the sum that divides
} sinkproof_key_read;
sinkproof_key_read sinkproof_attending_key(const sinkproof_attending *m,
                                           const sinkproof_sight *sight, size_t row, size_t first,
                                           size_t j);

// The key that has the weight of key j, or of the sink where j is n; n or more: none.
size_t sinkproof_attending_column(const sinkproof_attending *m, size_t n, size_t row, size_t j);

// The part of key j, of a query that sees [first, end): parts are numbered from the first that has
// a key that is seen.
size_t sinkproof_attending_part(const sinkproof_attending *m, size_t first, size_t end, size_t j);
bool sinkproof_in_part(sinkproof_in_parts in, size_t part, size_t parts);
// The number of parts in a mean: of a query that sees `parts` and keys before `end`, of `all`.
size_t sinkproof_attending_parts(const sinkproof_attending *m, size_t parts, size_t end,
                                 size_t all);

#endif
