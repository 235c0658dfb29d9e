# after: lanes.linear
# bench: --scaling threads
# caption: One sequence and a prompt against the number of threads: seconds per token, median (points), least and largest (bars), and the roof of as many threads (lines). The bits are the same at every point.
set xlabel "threads"
set ylabel "seconds per token"
set logscale x 2
set logscale y
set format y "10^{%T}"
set key center right
set xtics (1, 2, 4, 8, 16, 32, 64, 128)
set xrange [0.8:*]
plot data index 0 using 1:5 with lines lc rgb ink dt 2 title "decode, roof", \
     data index 0 using 1:2:3:4 with yerrorbars lt 1 pt 7 ps 0.6 title "decode", \
     data index 1 using 1:5 with lines lc rgb ink dt 3 title "prefill, roof", \
     data index 1 using 1:2:3:4 with yerrorbars lt 2 pt 7 ps 0.6 title "prefill"
