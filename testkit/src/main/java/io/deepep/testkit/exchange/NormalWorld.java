package io.deepep.testkit.exchange;

import io.deepep.DType;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.oracle.NormalOracle;
import io.deepep.testkit.oracle.SourceRow;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.BiPredicate;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/**
 * Everything about one normal-mode exchange that no single rank knows: routing, tokens, expert
 * outputs, and what must come of them. Shared by the rank threads.
 */
public final class NormalWorld implements ExchangeWorld {
    private final Routing routing;
    private final NormalOracle oracle;
    private final List<Tokens> tokens = new ArrayList<>();
    private final int hidden;
    private final long seed;
    private final Map<NormalDispatchCheck, List<Tensor>> outputs = new HashMap<>();
    private final Map<NormalDispatchCheck, List<Tensor>> weights = new HashMap<>();

    private NormalWorld(Routing routing, Routing effective, int hidden, DType dtype, long seed) {
        this.routing = routing;
        this.oracle = new NormalOracle(effective);
        this.hidden = hidden;
        this.seed = seed;
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            int numTokens = routing.numTokens(rank);
            tokens.add(
                    dtype == DType.FP8_E4M3
                            ? Tokens.fp8(rank, numTokens, hidden, seed)
                            : Tokens.bf16(rank, numTokens, hidden, seed));
        }
    }

    public static NormalWorld of(RoutingSpec spec, int hidden, DType dtype) {
        Routing routing = spec.generate();
        return new NormalWorld(routing, routing, hidden, dtype, spec.seed());
    }

    /** The same exchange while a rank is masked; its tensors are BF16. */
    public NormalWorld without(int rank) {
        return without(Set.of(rank));
    }

    /** The same while several are. */
    public NormalWorld without(Set<Integer> ranks) {
        return new NormalWorld(routing, routing.without(ranks), hidden, DType.BF16, seed);
    }

    /** The same while tokens of some ranks do not get to others. */
    public NormalWorld without(BiPredicate<Integer, Integer> lost) {
        return new NormalWorld(routing, routing.without(lost), hidden, DType.BF16, seed);
    }

    public static NormalWorld bf16(RoutingSpec spec, int hidden) {
        return of(spec, hidden, DType.BF16);
    }

    /** The limits that just suffice. */
    public NormalLimits limits() {
        return limits(NormalLimits.WORST_CASE);
    }

    /** The same, of buffers with room for so many rows. */
    public NormalLimits limits(int maxRecvTokens) {
        return new NormalLimits(
                Math.max(1, routing.maxTokens()),
                hidden,
                routing.numTopk(),
                routing.numExperts(),
                maxRecvTokens);
    }

    /** Rows of the rank that receives most, at least one. */
    public int mostRows() {
        return check().mostRows();
    }

    @Override
    public Routing routing() {
        return routing;
    }

    public NormalOracle oracle() {
        return oracle;
    }

    @Override
    public List<Tokens> tokens() {
        return tokens;
    }

    public int hidden() {
        return hidden;
    }

    public NormalDispatchCheck check() {
        return NormalDispatchCheck.of(oracle, tokens);
    }

    /**
     * For each rank what its experts computed for the rows of {@code check}; NaN in rows that hold
     * no token.
     */
    public synchronized List<Tensor> outputs(NormalDispatchCheck check) {
        return outputs.computeIfAbsent(check, _ -> ofEachRank(rank -> outputs(check, rank)));
    }

    private Tensor outputs(NormalDispatchCheck check, int rank) {
        int rows = check.numRows(rank);
        List<SourceRow> sources = check.sources(rank);
        Tensor output = Tokens.expertOutputs(rows, hidden, seed + 77L * rank);
        for (int row = 0; row < rows; row++) {
            if (!holdsToken(sources, row)) {
                HostTensors.poison(output.select(0, row));
            }
        }
        return output;
    }

    /** For each rank weights to combine, of any sign; NaN in rows that hold no token. */
    public synchronized List<Tensor> weights(NormalDispatchCheck check) {
        return weights.computeIfAbsent(check, _ -> ofEachRank(rank -> weights(check, rank)));
    }

    private Tensor weights(NormalDispatchCheck check, int rank) {
        int rows = check.numRows(rank);
        int columns = check.expanded() ? 1 : routing.numTopk();
        List<SourceRow> sources = check.sources(rank);
        SplittableRandom random = new SplittableRandom(seed + rank);
        Tensor given = HostTensors.allocate(DType.F32, rows, columns);
        for (int row = 0; row < rows; row++) {
            for (int k = 0; k < columns; k++) {
                boolean holds = holdsToken(sources, row);
                given.setFloat(holds ? (float) random.nextDouble(-1, 1) : Float.NaN, row, k);
            }
        }
        return check.expanded() ? given.select(1, 0) : given;
    }

    private <T> List<T> ofEachRank(IntFunction<T> make) {
        return IntStream.range(0, routing.numRanks()).mapToObj(make).toList();
    }

    /** What each rank receives of the tokens, in the dispatch's row order. */
    public List<Tokens> received() {
        return ofEachRank(this::received);
    }

    private Tokens received(int rank) {
        List<SourceRow> rows = oracle.rows(rank);
        Tokens like = tokens.get(rank);
        Tensor x = HostTensors.allocate(like.x().dtype(), rows.size(), hidden);
        Tensor scales =
                like.scales() == null
                        ? null
                        : HostTensors.allocate(DType.F32, rows.size(), like.scales().size(1));
        for (int row = 0; row < rows.size(); row++) {
            Tokens sent = tokens.get(rows.get(row).srcRank());
            int token = rows.get(row).token();
            HostTensors.copy(sent.x().select(0, token), x.select(0, row));
            if (scales != null) {
                HostTensors.copy(sent.scales().select(0, token), scales.select(0, row));
            }
        }
        return new Tokens(x, scales);
    }

    private static boolean holdsToken(List<SourceRow> sources, int row) {
        return row < sources.size() && !sources.get(row).isPadding();
    }

    /** A bias for the tokens of {@code rank}, BF16 [T,H]. */
    public Tensor bias(int rank, int which) {
        return Tokens.expertOutputs(routing.numTokens(rank), hidden, seed + 1000 + which);
    }
}
