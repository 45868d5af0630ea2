package io.deepep.testkit.exchange;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.LowLatencyCheck;
import io.deepep.testkit.oracle.LowLatencyCombineCheck;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.oracle.SourceRow;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Everything about one low-latency exchange that no single rank knows. Shared by the rank threads.
 *
 * @param routing what ranks ask for
 * @param oracle of what comes of it, where ranks are masked
 * @param limits of the buffers
 * @param tokens what each rank dispatches, BF16
 * @param outputs for each rank what its experts computed, BF16 [El, R*maxTokens, H]
 */
public record LowLatencyWorld(
        Routing routing,
        LowLatencyOracle oracle,
        LowLatencyLimits limits,
        List<Tokens> tokens,
        List<Tensor> outputs)
        implements ExchangeWorld {
    private static LowLatencyWorld of(
            Routing routing, Routing effective, LowLatencyLimits limits, int hidden, long seed) {
        LowLatencyOracle oracle = new LowLatencyOracle(effective);
        List<Tokens> tokens = new ArrayList<>();
        List<Tensor> outputs = new ArrayList<>();
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            tokens.add(Tokens.bf16(rank, routing.numTokens(rank), hidden, seed));
            outputs.add(expertOutputs(oracle, limits, hidden, rank, seed));
        }
        return new LowLatencyWorld(routing, oracle, limits, tokens, outputs);
    }

    /** The exchange of a routing over a buffer with these limits. */
    public static LowLatencyWorld of(RoutingSpec spec, LowLatencyLimits limits) {
        return of(spec, limits, limits.hidden());
    }

    /** The same with rows of {@code hidden} elements, of which buffers may have room for more. */
    public static LowLatencyWorld of(RoutingSpec spec, LowLatencyLimits limits, int hidden) {
        Routing routing = spec.generate();
        return of(routing, routing, limits, hidden, spec.seed());
    }

    /** The same exchange when masks leave no more than {@code effective} of its routing. */
    public static LowLatencyWorld of(
            RoutingSpec spec, LowLatencyLimits limits, UnaryOperator<Routing> effective) {
        Routing routing = spec.generate();
        return of(routing, effective.apply(routing), limits, limits.hidden(), spec.seed());
    }

    /** The exchange of a routing over a buffer with these limits. */
    public static LowLatencyWorld of(Routing routing, LowLatencyLimits limits) {
        return of(routing, routing, limits, limits.hidden(), 1);
    }

    /** NaN in rows that hold no token. */
    private static Tensor expertOutputs(
            LowLatencyOracle oracle, LowLatencyLimits limits, int hidden, int rank, long seed) {
        int experts = oracle.routing().numLocalExperts();
        int rows = oracle.routing().numRanks() * limits.maxTokens();
        Tensor output = HostTensors.poison(HostTensors.allocate(DType.BF16, experts, rows, hidden));
        for (int expert = 0; expert < experts; expert++) {
            int count = oracle.rows(rank, expert).size();
            Tensor made = Tokens.expertOutputs(count, hidden, seed + 1000L * rank + expert);
            HostTensors.copy(made, output.select(0, expert).slice(0, 0, count));
        }
        return output;
    }

    /** The same exchange with experts that return each token as it came. */
    public LowLatencyWorld withIdentityExperts() {
        for (int rank = 0; rank < routing().numRanks(); rank++) {
            for (int expert = 0; expert < routing().numLocalExperts(); expert++) {
                Tensor made = outputs.get(rank).select(0, expert);
                List<SourceRow> rows = oracle.rows(rank, expert);
                for (int row = 0; row < rows.size(); row++) {
                    SourceRow source = rows.get(row);
                    Tensor token = tokens.get(source.srcRank()).x().slice(0, source.token(), 1);
                    HostTensors.copy(token, made.slice(0, row, 1));
                }
            }
        }
        return this;
    }

    /**
     * Compares a combine of the expert outputs.
     *
     * @param rank whose tokens were combined
     * @param format what rows travelled as
     * @param preReduced whether each rank's sums travelled instead
     * @param combined BF16 [T,H] on the host
     */
    public void checkCombine(int rank, CombineFormat format, boolean preReduced, Tensor combined) {
        new LowLatencyCombineCheck(oracle, outputs, format, preReduced).check(rank, combined);
    }

    public LowLatencyCheck check(LowLatencyFormat format) {
        return new LowLatencyCheck(oracle, tokens, format, limits.maxTokens());
    }
}
