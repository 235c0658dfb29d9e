# after: bound.dot-likely bound.dot
# curve: bound.dot
# caption: The error of a float32 sum of $n$ products against its bound, both in units of $u \sum |a_k b_k|$; the worst of 32 draws. Signed draws hardly grow, positive ones grow like a random walk, and terms designed to round up every time reach the worst case, far above what is likely: that is why only the worst case convicts.
set xlabel "n"
set ylabel "error / (u sum |a b|)"
set logscale xy
set format y "10^{%T}"
set xrange [1:65536]
set yrange [0.01:200000]
set terminal svg size 560,600 font "sans-serif,16" linewidth 1.4 name "figure"
set key outside bottom center horizontal maxcols 1 font ",15"
plot data using 1:6 with lines lc rgb ink lw 1.5 title "bound, worst case", \
     data using 1:7 with lines lc rgb ink dt 2 title "bound, likely", \
     data using 1:5 with linespoints lt 2 pt 7 ps 0.5 title "designed to round up", \
     data using 1:4 with linespoints lt 4 pt 7 ps 0.5 title "positive draws", \
     data using 1:2 with linespoints lt 1 pt 7 ps 0.5 title "signed draws, ascending", \
     data using 1:3 with linespoints lt 3 pt 7 ps 0.5 title "signed draws, pairwise"
