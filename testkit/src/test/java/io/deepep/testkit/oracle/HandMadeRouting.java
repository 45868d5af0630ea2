package io.deepep.testkit.oracle;

import io.deepep.testkit.routing.Routing;

/**
 * A routing small enough to work out on paper: 2 ranks, 4 experts (0 and 1 at rank 0), 2
 * selections.
 */
final class HandMadeRouting {
    static final Routing ROUTING =
            Routing.of(
                    4,
                    2,
                    new long[][][] {{{0, 1}, {2, -1}, {3, 0}}, {{1, 1}, {-1, -1}, {2, 3}}},
                    new float[][][] {
                        {{.5f, .25f}, {1, 9}, {.75f, .125f}}, {{.5f, .5f}, {9, 9}, {.25f, .75f}}
                    });

    private HandMadeRouting() {}

    static SourceRow row(int srcRank, int token) {
        return new SourceRow(srcRank, token, -1);
    }

    static SourceRow row(int srcRank, int token, int selection) {
        return new SourceRow(srcRank, token, selection);
    }
}
