# after: repeat.sink
# curve: repeat.sink
# caption: Mass of $t$ keys of one score $c$. The ordinary softmax (no sink) gives them everything at once; with a sink the mass grows with $t$ and reaches one half at $t = e^{b-c}$. Lines: the truth; points: the reference.
set xlabel "t"
set ylabel "mass of the keys"
set logscale x 2
set xrange [1:4096]
set yrange [0:1.05]
set key outside bottom center horizontal maxcols 2
plot for [k=0:4] data index k using 1:3 with lines lt k+1 \
         title (k == 0 ? "no sink" : "b - c = ".word("0 2 4 6", k)), \
     for [k=0:4] data index k using 1:2 with points lt k+1 pt 7 ps 0.45 notitle
