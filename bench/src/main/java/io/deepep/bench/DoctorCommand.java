package io.deepep.bench;

import io.deepep.bench.measure.Build;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import io.deepep.doctor.Doctor;
import io.deepep.doctor.DoctorReport;
import io.deepep.doctor.GpuFacts;
import io.deepep.doctor.GpuProbe;
import io.deepep.doctor.Machine;
import io.deepep.lowlatency.cuda.CudaLowLatencyKernels;
import io.deepep.normal.cuda.CudaNormalKernels;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Says what this machine has for each way to run, and what cures what it lacks. */
@Command(
        name = "doctor",
        description =
                "Says what this machine has, which NIC serves which GPU, what can run here, and how to get what is missing.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class DoctorCommand implements Callable<Integer> {
    private final Console console;

    @Option(names = "--json", description = "Write JSON instead of tables.")
    private boolean json;

    @Option(
            names = "--no-bandwidth",
            description = "Do not measure copies between GPUs, which takes memory and seconds.")
    private boolean noBandwidth;

    @Option(
            names = "--nic-mapping",
            paramLabel = "GPU=HCA[:PORT][+HCA[:PORT]...][,...]",
            defaultValue = "",
            description =
                    "Show the mapping with this one before the computed, as gpu0=mlx5_0,*=mlx5_1:2.")
    private String nicMapping = "";

    DoctorCommand(Console console) {
        this.console = console;
    }

    @Override
    public Integer call() {
        boolean networkKernels =
                CudaNormalKernels.haveNetworkKernels()
                        && CudaLowLatencyKernels.haveNetworkKernels();
        DoctorReport report = examine(networkKernels);
        if (json) {
            DoctorPrinter.writeJson(console, report);
        } else {
            DoctorPrinter.print(console, report);
        }
        return Main.EXIT_PASSED;
    }

    private DoctorReport examine(boolean networkKernels) {
        Build build = Build.current();
        String version = build.version() + " (" + build.commit() + ")";
        GpuFacts gpus = GpuProbe.read(!noBandwidth);
        try {
            return Doctor.examine(Machine.current(), version, networkKernels, gpus, nicMapping);
        } catch (IllegalArgumentException wrong) {
            throw new UsageException("--nic-mapping: " + wrong.getMessage());
        }
    }
}
