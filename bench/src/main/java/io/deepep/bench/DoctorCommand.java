package io.deepep.bench;

import io.deepep.bench.doctor.Doctor;
import io.deepep.bench.doctor.DoctorPrinter;
import io.deepep.bench.doctor.DoctorReport;
import io.deepep.bench.doctor.GpuProbe;
import io.deepep.bench.doctor.Machine;
import io.deepep.bench.run.Console;
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
        DoctorReport report =
                Doctor.examine(
                        Machine.current(), networkKernels, GpuProbe.read(!noBandwidth), nicMapping);
        if (json) {
            DoctorPrinter.writeJson(console, report);
        } else {
            DoctorPrinter.print(console, report);
        }
        return Main.EXIT_PASSED;
    }
}
