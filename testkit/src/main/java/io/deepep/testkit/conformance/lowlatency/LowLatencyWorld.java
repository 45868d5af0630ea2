package io.deepep.testkit.conformance.lowlatency;

import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.LowLatencyCheck;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.oracle.PreReducedCheck;
import io.deepep.testkit.oracle.SourceRow;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Everything about one low-latency exchange that no single rank knows. Shared by the rank threads.
 */
public final class LowLatencyWorld {
    private final Routing routing;
    private final LowLatencyOracle oracle;
    private final List<Tokens> tokens = new ArrayList<>();
    private final List<Tensor> outputs = new ArrayList<>();
    private final LowLatencyLimits limits;

    private LowLatencyWorld(
            Routing routing, LowLatencyOracle oracle, LowLatencyLimits limits, long seed) {
        this.routing = routing;
        this.oracle = oracle;
        this.limits = limits;
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            tokens.add(Tokens.bf16(rank, routing.numTokens(rank), limits.hidden(), seed));
            outputs.add(expertOutputs(rank, seed));
        }
    }

    /** The exchange of a routing over a buffer with these limits. */
    public static LowLatencyWorld of(RoutingSpec spec, LowLatencyLimits limits) {
        Routing routing = spec.generate();
        return new LowLatencyWorld(routing, new LowLatencyOracle(routing), limits, spec.seed());
    }

    /** The exchange of a routing over a buffer with these limits. */
    public static LowLatencyWorld of(Routing routing, LowLatencyLimits limits) {
        return new LowLatencyWorld(routing, new LowLatencyOracle(routing), limits, 1);
    }

    /** The same exchange when all others have masked the ranks {@code absent}. */
    public static LowLatencyWorld without(
            Set<Integer> absent, RoutingSpec spec, LowLatencyLimits limits) {
        Routing routing = spec.generate();
        return new LowLatencyWorld(
                routing, new LowLatencyOracle(routing, absent), limits, spec.seed());
    }

    /** The same exchange when some rows do not come. */
    public static LowLatencyWorld losing(
            LowLatencyOracle.Lost lost, RoutingSpec spec, LowLatencyLimits limits) {
        Routing routing = spec.generate();
        return new LowLatencyWorld(
                routing, new LowLatencyOracle(routing, lost), limits, spec.seed());
    }

    /**
     * What a rank's experts computed, BF16 [El, R*maxTokens, H]; NaN in rows that hold no token.
     */
    private Tensor expertOutputs(int rank, long seed) {
        int experts = routing.numLocalExperts();
        int rows = routing.numRanks() * limits.maxTokens();
        int hidden = limits.hidden();
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
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            for (int expert = 0; expert < routing.numLocalExperts(); expert++) {
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

    public Routing routing() {
        return routing;
    }

    public LowLatencyOracle oracle() {
        return oracle;
    }

    public LowLatencyLimits limits() {
        return limits;
    }

    public List<Tokens> tokens() {
        return tokens;
    }

    public List<Tensor> outputs() {
        return outputs;
    }

    public PreReducedCheck preReducedCheck() {
        return new PreReducedCheck(oracle, outputs);
    }

    public LowLatencyCheck check(LowLatencyFormat format) {
        return new LowLatencyCheck(oracle, tokens, format, limits.maxTokens());
    }
}
