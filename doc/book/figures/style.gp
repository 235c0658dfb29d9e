# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# What every figure shares. `data` and `out` are set by the build. The colour #010101 becomes the colour of
# the page's text, so that a figure is readable on light and on dark.
set terminal svg size 560,380 font "sans-serif,16" linewidth 1.4 name "figure"
set output out
ink = "#010101"
set border 3 lc rgb ink
set tics nomirror tc rgb ink
set key tc rgb ink spacing 1.25 samplen 2
set xlabel tc rgb ink
set ylabel tc rgb ink
set grid lc rgb "#808080" lw 0.4 dt (2, 5)
set linetype 1 lc rgb "#1f77b4"
set linetype 2 lc rgb "#d9730d"
set linetype 3 lc rgb "#2c9c4b"
set linetype 4 lc rgb "#b4489a"
set linetype 5 lc rgb "#8a7a00"
