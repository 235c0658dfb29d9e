# after: sink.alpha-sink
# curve: sink.alpha-sink
# caption: The weight of the sink $\alpha_s$ against its logit $b$, for rows of keys that all score 0. Lines: the truth, enclosed; points: the reference. It is a sigmoid of $b - \ln n$: ever more keys push it to the right and never change its shape.
set xlabel "b"
set ylabel "weight of the sink"
set xrange [-8:16]
set yrange [0:1.02]
set key outside bottom center horizontal maxcols 2
plot for [k=0:3] data index k using 1:3 with lines lt k+1 title word("1 16 128 4096", k+1).(k == 0 ? " key" : " keys"), \
     for [k=0:3] data index k using 1:2 every 4 with points lt k+1 pt 7 ps 0.45 notitle
