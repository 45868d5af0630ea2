package io.deepep.bench.normal;

import io.deepep.CombineResult;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.Rows;

/** Checksums of all that a rank's result holds, to tell whether two runs gave the same bits. */
final class Fingerprint {
    private Fingerprint() {}

    /** Of the rows, their scales, experts and weights; not of the expanded layout. */
    static long of(DispatchResult result, Downloads downloads) {
        return mix(
                downloads,
                result.recvX(),
                result.recvScales(),
                result.recvTopkIdx(),
                result.recvTopkWeights());
    }

    /** Of the rows and their weights. */
    static long of(CombineResult result, Downloads downloads) {
        return mix(downloads, result.x(), result.topkWeights());
    }

    private static long mix(Downloads downloads, Tensor... matrices) {
        long mixed = 0;
        for (Tensor matrix : matrices) {
            mixed *= 31;
            if (matrix != null) {
                Tensor host = downloads.apply(matrix);
                mixed += host.size(0) + Rows.fingerprint(host, host.size(0));
            }
        }
        return mixed;
    }
}
