# after: lanes.attention
# bench: --scaling context
# caption: Attention of one query in one layer against the keys in its context: median (points), least and largest time (bars), and what the roof would take (lines). A window layer reads at most 128 keys, a full layer all of them.
set xlabel "keys in the context"
set ylabel "seconds per token"
set logscale x 2
set logscale y
set format x "2^{%L}"
set format y "10^{%T}"
set key top left
plot data index 0 using 1:5 with lines lc rgb ink dt 2 title "full layer, roof", \
     data index 0 using 1:2:3:4 with yerrorbars lt 1 pt 7 ps 0.5 title "full layer", \
     data index 1 using 1:5 with lines lc rgb ink dt 3 title "window of 128, roof", \
     data index 1 using 1:2:3:4 with yerrorbars lt 2 pt 7 ps 0.5 title "window of 128"
