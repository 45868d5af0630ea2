package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.RankTeam;

/**
 * The last lines of a test: bandwidth and time of the main operations, per rank as DeepEP reports
 * them.
 */
final class NormalSpeed {
    private static final int WARMUPS = 2;
    private static final int REPEATS = 5;
    private static final double GIGA = 1e9;

    private NormalSpeed() {}

    static void report(Console console, NormalSetup setup) {
        NormalOperations operations = new NormalOperations(setup);
        NormalBytes bytes = new NormalBytes(setup.session().job(), setup.workload());
        if (setup.session().job().allowsFp8()) {
            line(
                    console,
                    setup,
                    "dispatch (FP8) ",
                    operations.dispatch(DType.FP8_E4M3),
                    bytes.total(DType.FP8_E4M3));
        }
        line(
                console,
                setup,
                "dispatch (BF16)",
                operations.dispatch(DType.BF16),
                bytes.total(DType.BF16));
        line(console, setup, "combine (BF16) ", operations.combine(true), bytes.total(DType.BF16));
    }

    private static void line(
            Console console,
            NormalSetup setup,
            String name,
            RankTeam.Work operation,
            OperationBytes bytes) {
        Samples samples = Samples.measure(setup.session().team(), WARMUPS, REPEATS, operation);
        int ranks = setup.session().job().numRanks();
        String rdma =
                setup.session().job().topology().isInternode()
                        ? String.format(
                                "%.2f GB/s (RDMA), ",
                                samples.bytesPerSecond(bytes.rdma()) / ranks / GIGA)
                        : "";
        console.line(
                "%s: %s%.2f GB/s (received rows), %.0f us, per rank, median of %d",
                name,
                rdma,
                samples.bytesPerSecond(bytes.logical()) / ranks / GIGA,
                samples.percentileMicros(50),
                REPEATS);
    }
}
