# after: sink.bias-intensity sink.attn-mass law.constant-value
# curve: sink.bias-intensity
# caption: A value bias fades as the sink grows: the output of a head with a bias on its values less the output without, for three coordinates (points: the reference; lines: $(1 - \alpha_s)\, b^V$ of the truth).
set xlabel "b"
set ylabel "what the bias adds to the output"
set xrange [-8:16]
set yrange [-0.8:1.1]
set key top right
plot for [k=0:2] data index k using 1:3 with lines lt k+1 title "bias ".word("1 0.5 -0.75", k+1), \
     for [k=0:2] data index k using 1:2 every 4 with points lt k+1 pt 7 ps 0.45 notitle
