package io.deepep.normal.host.routing;

import io.deepep.EpTopology;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.Rails;
import io.deepep.normal.host.call.HeaderExchange;

/**
 * What one rank remembers of a dispatch: the rows of its own tokens at all ranks, and, across
 * nodes, the rows on this node of the tokens that it forwards, by cell. Overwritten when the plan
 * is dispatched again.
 */
public final class Routing {
    private final EpTopology topology;
    public final RoutingScan scan;
    public final int numTokens;

    /** Rows of this rank's tokens. */
    public final NodeRows own;

    /** Rows on this node of the tokens that come in a cell. */
    public final NodeRows forwarded;

    private final int[] sourceTokens;

    public Routing(EpTopology topology, int numTokens, int numExperts, int maxTokens) {
        this.topology = topology;
        this.numTokens = numTokens;
        this.scan = new RoutingScan(topology, numTokens, numExperts);
        int width = NormalRdmaLayout.nodeRows(topology);
        this.own = new NodeRows(topology.numRdmaRanks(), numTokens, width);
        this.forwarded =
                topology.isInternode()
                        ? new NodeRows(Rails.numCells(topology), maxTokens, width)
                        : null;
        this.sourceTokens = new int[Rails.numCells(topology)];
    }

    /** Tokens of the rank whose rows come in {@code cell}. */
    public int sourceTokens(int cell) {
        return sourceTokens[cell];
    }

    /** Gives every token its rows, behind those of the ranks before this one. */
    public void assignRows(HeaderExchange headers, Rails rails) {
        for (int node = 0; node < topology.numRdmaRanks(); node++) {
            for (int nvlRank = 0; nvlRank < topology.numNvlRanks(); nvlRank++) {
                assignRows(node, nvlRank, firstRow(headers, topology.rankOf(node, nvlRank)));
            }
        }
        for (int cell = 0; cell < sourceTokens.length; cell++) {
            boolean used = rails.homes().isUsed(cell);
            sourceTokens[cell] =
                    used ? headers.word(rails.homes().rank(cell), HeaderWord.NUM_TOKENS) : 0;
        }
    }

    private int firstRow(HeaderExchange headers, int destination) {
        int first = 0;
        for (int source = 0; source < topology.rank(); source++) {
            first += headers.rows(source, destination);
        }
        return first;
    }

    private void assignRows(int node, int nvlRank, int first) {
        int next = first;
        for (int token = 0; token < numTokens; token++) {
            boolean goes = scan.goes(token, topology.rankOf(node, nvlRank));
            own.set(node, token, nvlRank, goes ? next++ : -1);
        }
    }

    /** Whether {@code token} goes to any rank of this node. */
    public boolean staysNear(int token) {
        return scan.goesTo(token, topology.rdmaRank());
    }

    /** Whether {@code token} goes to another node. */
    public boolean crosses(int token, int node) {
        return node != topology.rdmaRank() && scan.goesTo(token, node);
    }
}
