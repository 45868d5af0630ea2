package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** One of the likeliest tokens that together have some probability. */
final class TopP implements Sampler {
    private final double temperature;
    private final double p;

    // Not java.util.Random, whose first numbers are nearly the same for all small seeds.
    private final SplittableRandom random;
    private final List<SplittableRandom> ofRows = new ArrayList<>();

    TopP(double temperature, double p, long seed) {
        // Not 0 in FLOAT32, or a low temperature would give no numbers.
        this.temperature = Math.max(temperature, Float.MIN_NORMAL);
        this.p = p;
        random = new SplittableRandom(seed);
    }

    /** A row of logits, and whose it is. */
    record Row(TopP sampler, int index) {
        private double draw() {
            List<SplittableRandom> all = sampler.ofRows;
            while (all.size() <= index) {
                all.add(sampler.random.split());
            }
            return all.get(index).nextDouble();
        }
    }

    @Override
    public NDArray next(NDArray logits) {
        return together(rows((int) logits.getShape().get(0)), 1, logits.getManager()).next(logits);
    }

    List<Row> rows(int count) {
        return IntStream.range(0, count).mapToObj(row -> new Row(this, row)).toList();
    }

    /** Whether it chooses among all tokens, which then need not be sorted. */
    boolean keepsAll() {
        return p == 1;
    }

    /**
     * Chooses for rows of several samplers, {@code numSteps} times. Numbers are drawn here and
     * copied to the device once. Either all samplers {@linkplain #keepsAll keep all tokens} or none
     * does: which token a number stands for depends on the order.
     */
    static Sampler together(List<Row> rows, int numSteps, NDManager manager) {
        int numRows = rows.size();
        boolean keepAll = rows.getFirst().sampler.keepsAll();
        float[] temperatures = new float[numRows];
        double[] kept = new double[numRows];
        double[] drawn = new double[numSteps * numRows];
        for (int i = 0; i < numRows; i++) {
            temperatures[i] = (float) rows.get(i).sampler.temperature;
            kept[i] = rows.get(i).sampler.p;
            for (int step = 0; step < numSteps; step++) {
                drawn[step * numRows + i] = rows.get(i).draw();
            }
        }
        NDArray ofTemperatures = manager.create(temperatures, new Shape(numRows, 1));
        NDArray ofKept = manager.create(kept, new Shape(numRows, 1));
        NDArray ofDrawn = manager.create(drawn, new Shape(numSteps, numRows, 1));
        int[] step = {0};
        return logits -> {
            NDArray probabilities = probabilities(logits, ofTemperatures);
            NDArray ofStep = ofDrawn.get(step[0]++);
            return keepAll
                    ? chooseAmongAll(probabilities, ofStep)
                    : chooseAmongBest(probabilities, ofKept, ofStep);
        };
    }

    private static NDArray probabilities(NDArray logits, NDArray temperature) {
        // From the largest one, which a low temperature would make infinite.
        NDArray fromBest = logits.sub(logits.max(new int[] {-1}, true));
        return fromBest.divi(temperature).softmax(-1);
    }

    // Indices of both are within a row, also where logits are no numbers.

    private static NDArray chooseAmongAll(NDArray probabilities, NDArray drawn) {
        NDArray sums = sums(probabilities);
        NDArray wanted = sums.get(":, -1:").mul(drawn);
        return count(sums.lte(wanted)).minimum(last(sums)).squeeze(1);
    }

    private static NDArray chooseAmongBest(NDArray probabilities, NDArray p, NDArray drawn) {
        NDArray order = probabilities.argSort(-1, false);
        NDArray sums = sums(probabilities.gather(order, 1));
        NDArray kept = count(sums.lt(p)).minimum(last(sums));
        NDArray wanted = sums.gather(kept, 1).mul(drawn);
        NDArray chosen = count(sums.lte(wanted)).minimum(kept);
        return order.gather(chosen, 1).squeeze(1);
    }

    private static NDArray sums(NDArray probabilities) {
        return probabilities.toType(DataType.FLOAT64, false).cumSum(1);
    }

    private static long last(NDArray rows) {
        return rows.getShape().get(1) - 1;
    }

    private static NDArray count(NDArray of) {
        return of.sum(new int[] {1}, true);
    }
}
