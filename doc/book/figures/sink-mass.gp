# after: sink.mass
# curve: sink.alpha-sink
# caption: What is left for the keys: the sum of their weights against $b$, for rows of keys that all score 0. It is the curve of the sink's weight upside down; nothing renormalises it to 1. Lines: the truth, enclosed; points: the reference.
set xlabel "b"
set ylabel "mass of the keys"
set xrange [-8:16]
set yrange [0:1.02]
set key outside bottom center horizontal maxcols 2
plot for [k=0:3] data index k using 1:6 with lines lt k+1 title word("1 16 128 4096", k+1).(k == 0 ? " key" : " keys"), \
     for [k=0:3] data index k using 1:5 every 4 with points lt k+1 pt 7 ps 0.45 notitle
