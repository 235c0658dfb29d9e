# after: train.sinks
# study: training-study
# caption: The share of heads with a sink against the training step, mean over the seeds, in runs three times as long as those of the tables: softmax as there (bars from the least seed to the largest), softmax without weight decay, and a learned key (k-bias) without it, on the first token and on the key.
set xlabel "training step"
set ylabel "heads with a sink, %"
set yrange [0:102]
set xrange [0:1530]
set key outside bottom center vertical maxrows 2
plot data index 0 using 1:2:3:4 with yerrorbars lt 1 pt 7 ps 0.4 notitle, \
     data index 0 using 1:2 with lines lt 1 title "softmax", \
     data index 1 using 1:2 with lines lt 2 title "no decay", \
     data index 2 using 1:2 with lines lt 3 title "k-bias, no decay", \
     data index 3 using 1:2 with lines lt 3 dt 2 title "its key"
