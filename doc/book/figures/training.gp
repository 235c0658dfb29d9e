# after: train.sinks
# study: training-study
# caption: The share of heads with a sink against the training step, median over the seeds; bars from the least to the largest where the first token has it with softmax. A learned key (k-bias) takes it.
set xlabel "training step"
set ylabel "heads with a sink, %"
set yrange [0:105]
set key outside bottom center horizontal maxcols 2
plot data index 0 using 1:2:3:4 with yerrorbars lt 1 pt 7 ps 0.4 notitle, \
     data index 0 using 1:2 with lines lt 1 title "softmax: first token", \
     data index 1 using 1:2 with lines lt 2 title "k-bias: first token", \
     data index 2 using 1:2 with lines lt 2 dt 2 title "k-bias: learned key", \
     data index 3 using 1:2 with lines lt 3 title "sigmoid: first token", \
     data index 4 using 1:2 with lines lt 4 title "gated: first token"
