# after: grad.rounded
# curve: grad.rounded
# caption: The gradient of a sink's logit over $n$ queries, and how far a float32 kernel may be off, both as shares of the size $\sum_i \alpha_{s,i} \sum_d |dO_{id}\, O_{id}|$ of its terms; means over 16 drawn heads, the error the worst of them. The gradient itself shrinks beside that size as more queries cancel, and the worst case grows. A kernel that reads back an output stored in bfloat16 may be off by about as much as the gradient.
set xlabel "n"
set ylabel "share of the size of the terms"
set logscale xy
set format y "10^{%T}"
set xrange [100:5200]
set yrange [1e-9:1]
set terminal svg size 560,520 font "sans-serif,16" linewidth 1.4 name "figure"
set key outside bottom center horizontal maxcols 1 font ",15"
plot data using 1:2 with linespoints lt 1 pt 7 ps 0.5 title "the gradient", \
     data using 1:4 with lines lc rgb ink dt 2 title "worst case, output stored in bfloat16", \
     data using 1:3 with lines lc rgb ink lw 1.5 title "worst case, float32 throughout", \
     data using 1:5 with linespoints lt 2 pt 7 ps 0.5 title "a float32 sum in ascending order"
