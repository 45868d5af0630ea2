package io.deepep.testkit.conformance.normal;

import io.deepep.Buffer;
import io.deepep.testkit.conformance.RankGroup;

/** Ranks whose buffers have the limits of {@link NormalMisuses}. */
interface MisusedGroup extends RankGroup {
    @Override
    default void limit(Buffer.Builder builder) {
        builder.normal(NormalMisuses.LIMITS);
    }
}
