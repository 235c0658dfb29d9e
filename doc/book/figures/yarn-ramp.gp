# after: yarn.truncate
# curve: yarn.ramp
# caption: YaRN's ramp in both modes: the frequency of each pair as a share of the frequency as trained. Fast pairs keep theirs, slow ones turn 32 times slower; the ends of the ramp (dotted) are fractional or are cut to whole pairs.
set xlabel "pair d"
set ylabel "frequency / frequency as trained"
set xrange [0:31]
set logscale y 2
set yrange [1.0/40:1.2]
set key bottom left Left reverse
plot data index 0 using 1:4 with linespoints lt 1 pt 7 ps 0.6 title "fractional", \
     data index 1 using 1:4 with linespoints lt 2 pt 6 ps 0.8 title "truncated", \
     data index 2 using 1:(0.025):(0):(1.175) with vectors nohead lt 1 dt 3 notitle, \
     data index 2 using 2:(0.025):(0):(1.175) with vectors nohead lt 1 dt 3 notitle, \
     data index 3 using 1:(0.025):(0):(1.175) with vectors nohead lt 2 dt 3 notitle, \
     data index 3 using 2:(0.025):(0):(1.175) with vectors nohead lt 2 dt 3 notitle
