# after: lanes.linear
# bench: --scaling batch
# caption: Decoding against the number of sequences that share a pass: seconds per token, median (points), least and largest (bars), and the roof (line). The weights are read once for all; more sequences use more of the experts, until all are used.
set xlabel "sequences together"
set ylabel "seconds per token"
set logscale x 2
set logscale y
set format y "10^{%T}"
set key top right
plot data index 0 using 1:5 with lines lc rgb ink dt 2 title "roof", \
     data index 0 using 1:2:3:4 with yerrorbars lt 1 pt 7 ps 0.5 title "decode"
