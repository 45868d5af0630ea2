package io.deepep.testkit.oracle;

import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.EpTopology;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
import java.util.function.UnaryOperator;

/** Compares what {@code getDispatchLayout} counted with the oracle. */
public final class LayoutCheck {
    private LayoutCheck() {}

    /** Compares; the layout's event is over. */
    public static void check(
            NormalOracle oracle,
            EpTopology topology,
            DispatchLayout layout,
            UnaryOperator<Tensor> download) {
        int rank = topology.rank();
        Routing routing = oracle.routing();
        String at = "layout of rank " + rank + ": ";
        RowBits.requireInts(
                oracle.routing().tokensPerRank()[rank],
                download.apply(layout.numTokensPerRank()),
                at + "numTokensPerRank");
        RowBits.requireInts(
                oracle.selectionsPerExpert(rank),
                download.apply(layout.numTokensPerExpert()),
                at + "numTokensPerExpert");
        if (topology.isInternode()) {
            RowBits.requireInts(
                    oracle.tokensPerNode(rank, topology.numNvlRanks()),
                    download.apply(layout.numTokensPerRdmaRank()),
                    at + "numTokensPerRdmaRank");
        } else {
            OracleMismatch.requireNull(
                    at + "numTokensPerRdmaRank of one node", layout.numTokensPerRdmaRank());
        }
        Tensor inRank = layout.isTokenInRank();
        RowBits.requireShape(
                inRank,
                at + "isTokenInRank",
                DType.BOOL,
                routing.numTokens(rank),
                routing.numRanks());
        Tensor mask = download.apply(inRank);
        for (int token = 0; token < routing.numTokens(rank); token++) {
            for (int to = 0; to < routing.numRanks(); to++) {
                OracleMismatch.requireEqual(
                        at + "isTokenInRank[" + token + "][" + to + "]",
                        routing.goesTo(rank, token, to) ? 1L : 0L,
                        mask.getLong(token, to));
            }
        }
    }
}
