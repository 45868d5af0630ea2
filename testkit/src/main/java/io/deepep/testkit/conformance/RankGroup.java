package io.deepep.testkit.conformance;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;

/**
 * The ranks that run a case and the buffer that each opens: a shape among the case's arguments, or
 * its suite.
 */
public interface RankGroup {
    /** Four ranks, unless the case says otherwise. */
    default EpTopology topology(TestBackend backend) {
        return Ranks.four(backend);
    }

    /** Adds the modes and their limits. */
    void limit(Buffer.Builder builder);
}
