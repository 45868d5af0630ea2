package io.deepep.normal.host.routing;

import java.util.Arrays;

/**
 * Where tokens go: for each node and token the rows at the ranks there, -1 where it does not go.
 * {@code NodeRows} of internode_params.cuh.
 */
public final class NodeRows {
    /** Rows of a token on one node. */
    private final int width;

    private final int numTokens;
    private final int[] rows;

    NodeRows(int numNodes, int numTokens, int width) {
        this.numTokens = numTokens;
        this.width = width;
        this.rows = new int[numNodes * numTokens * width];
        Arrays.fill(rows, -1);
    }

    private int at(int node, int token) {
        return (node * numTokens + token) * width;
    }

    public int row(int node, int token, int nvlRank) {
        return rows[at(node, token) + nvlRank];
    }

    public void set(int node, int token, int nvlRank, int row) {
        rows[at(node, token) + nvlRank] = row;
    }

    /** Whether the token goes to any rank of the node. */
    public boolean goesTo(int node, int token) {
        int at = at(node, token);
        int all = -1;
        for (int i = 0; i < width; i++) {
            all &= rows[at + i];
        }
        return all >= 0;
    }
}
