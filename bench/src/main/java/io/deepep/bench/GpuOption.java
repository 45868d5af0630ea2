package io.deepep.bench;

import io.deepep.GroupLimits;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.UsageException;
import picocli.CommandLine.Option;

/** How many GPUs a command uses. */
final class GpuOption {
    @Option(
            names = "--gpus",
            paramLabel = "N",
            description =
                    "Uses the first N GPUs; ranks take them in turn, and share them if there are"
                            + " fewer GPUs than ranks (default: all).")
    private Integer numGpus;

    /** Ranks on the GPUs asked for. */
    Placement cuda() {
        UsageException.requireIn("--gpus", numGpus, 1, GroupLimits.MAX_RANKS);
        return Placement.cuda(numGpus == null ? 0 : numGpus);
    }

    /** Ranks on the host, which was asked for and uses no GPU. */
    Placement host() {
        if (numGpus != null) {
            throw new UsageException(
                    "--gpus=" + numGpus + " does not go with --backend=host, which uses no GPUs");
        }
        return Placement.host("");
    }
}
