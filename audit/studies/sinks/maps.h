// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Small maps of attention, made as the weights pass: at most SINKS_MAP_CELLS cells per side for
// n tokens, each the mean of the weights of its pairs of a query and a key not after it. Up to that
// many tokens a cell is one weight.
#ifndef SINKPROOF_SINKS_MAPS_H
#define SINKPROOF_SINKS_MAPS_H

#include "audit/studies/sinks/part.h"

enum { SINKS_MAP_CELLS = 64 };

typedef struct sinkproof_sinks_maps sinkproof_sinks_maps;

// chosen: "3.5,0.12", layers and heads from 0; NULL: all heads.
bool sinkproof_sinks_maps_new(const sinkproof_config *config, size_t n, const char *chosen,
                              sinkproof_sinks_maps **maps, sinkproof_error *error);
void sinkproof_sinks_maps_free(sinkproof_sinks_maps *maps); // accepts NULL
// The census's options.map; maps: sinkproof_sinks_maps.
void sinkproof_sinks_maps_add(void *maps, const sinkproof_map_rows *rows);

size_t sinkproof_sinks_maps_side(const sinkproof_sinks_maps *maps); // cells
size_t sinkproof_sinks_maps_cell(const sinkproof_sinks_maps *maps); // tokens per side of a cell

// One head's map; a cell is NAN if some of its rows are missing, and 0 above the diagonal.
typedef struct sinkproof_sinks_map {
    const sinkproof_sinks_maps *maps;
    size_t layer, head, at;
} sinkproof_sinks_map;
// The number of chosen heads (0 if none was chosen), and the map of the i-th of them.
size_t sinks_maps_chosen_count(const sinkproof_sinks_maps *maps);
sinkproof_sinks_map sinks_maps_at(const sinkproof_sinks_maps *maps, size_t i);
// The map of one head, where all heads are kept.
sinkproof_sinks_map sinkproof_sinks_maps_find(const sinkproof_sinks_maps *maps, size_t layer,
                                              size_t head);
double sinkproof_sinks_map_weight(const void *map, size_t row, size_t column);
double sinks_map_sink_weight(const void *map, size_t row);

#endif
