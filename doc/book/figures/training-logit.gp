# after: train.star
# study: training-study
# caption: Who moves a learned logit, in 1500 steps of a score bias without weight decay. Above: minus its gradient by the rows that give it, the mean over 50 batches, two heads and three seeds; above zero it raises the logit. Below: the logit, and what each kind of rows has moved it by since the start, which add up to it; bars from the least head and seed to the largest.
set terminal svg size 560,620 font "sans-serif,16" linewidth 1.4 name "figure"
set multiplot layout 2,1
set xrange [0:1530]
set ylabel "−∂L/∂b · 10^3"
set key outside top center horizontal
set zeroaxis lc rgb ink lw 0.6
plot data every ::1 using 1:($14*1e3) with lines lt 1 title "other rows", \
     data every ::1 using 1:($15*1e3) with lines lt 2 title "rows that copy", \
     data every ::1 using 1:($16*1e3) with lines lt 3 title "first rows"
set xlabel "training step"
set ylabel "logit"
set key outside top center horizontal
plot data using 1:2:3:4 with yerrorbars lc rgb ink pt 7 ps 0.3 notitle, \
     data using 1:2 with lines lc rgb ink title "b", \
     data using 1:5:6:7 with yerrorbars lt 1 pt 7 ps 0.3 notitle, \
     data using 1:5 with lines lt 1 title "other", \
     data using 1:8:9:10 with yerrorbars lt 2 pt 7 ps 0.3 notitle, \
     data using 1:8 with lines lt 2 title "copy", \
     data using 1:11 with lines lt 3 title "first"
unset multiplot
