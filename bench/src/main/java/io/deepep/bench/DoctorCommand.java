package io.deepep.bench;

import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Build;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import io.deepep.doctor.DoctorReport;
import io.deepep.doctor.GpuFacts;
import io.deepep.doctor.GpuProbe;
import io.deepep.doctor.Machine;
import io.deepep.doctor.NicFacts;
import io.deepep.doctor.NicProbe;
import io.deepep.doctor.Requirement;
import io.deepep.lowlatency.cuda.LowLatencyGpu;
import io.deepep.normal.cuda.CudaNormalKernels;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Says what this machine has for each way to run, and what cures what it lacks. */
@Command(
        name = "doctor",
        description =
                "Shows what this machine has, which NIC serves which GPU, what can run here, and how to get what"
                        + " is missing.",
        mixinStandardHelpOptions = true)
final class DoctorCommand implements Callable<Integer> {
    private final Console console;

    @Option(names = "--json", description = "Writes JSON instead of tables.")
    private boolean json;

    @Option(
            names = "--no-bandwidth",
            description =
                    "Neither measures copies between GPUs nor tries NICs with a GPU, which takes"
                            + " memory and some seconds.")
    private boolean noBandwidth;

    @Option(
            names = "--nic-mapping",
            paramLabel = "GPU=HCA[:PORT][+HCA[:PORT]...][,...]",
            defaultValue = "",
            description =
                    "Shows the mapping of GPUs to NICs with this override, such as"
                            + " gpu0=mlx5_0,*=mlx5_1:2.")
    private String nicMapping = "";

    @Option(
            names = "--require",
            split = ",",
            paramLabel = "NAME",
            description =
                    "Exits with 1 unless the machine can run all of these, separated by commas: cuda"
                            + " (GPUs of one node), rdma (several nodes), ibgda (GPUs drive the NICs).")
    private List<Requirement> required;

    DoctorCommand(Console console) {
        this.console = console;
    }

    @Override
    public Integer call() {
        if (required != null && required.isEmpty()) {
            throw new UsageException("--require names nothing; allowed are cuda, rdma, ibgda");
        }
        boolean networkKernels =
                CudaNormalKernels.haveNetworkKernels() && LowLatencyGpu.hasLibraryKernels();
        DoctorReport report = examine(networkKernels);
        if (json) {
            console.out().println(BenchReport.json(report));
        } else {
            new DoctorPrinter(console, report).print();
        }
        int exitCode = Main.EXIT_PASSED;
        for (Requirement each : required == null ? List.<Requirement>of() : required) {
            Optional<String> unmet = each.unmet(report);
            if (unmet.isPresent()) {
                exitCode = Main.EXIT_FAILED;
                String name = each.name().toLowerCase(Locale.ROOT);
                console.complain("--require " + name + ": " + unmet.get());
            }
        }
        return exitCode;
    }

    private DoctorReport examine(boolean networkKernels) {
        Build build = Build.current();
        String version = build.version() + " (" + build.commit() + ")";
        Machine machine = Machine.current();
        GpuFacts gpus = GpuProbe.read(!noBandwidth);
        List<NicFacts> nics = NicProbe.read(!noBandwidth);
        try {
            return DoctorReport.of(machine, version, networkKernels, gpus, nics, nicMapping);
        } catch (IllegalArgumentException wrong) {
            throw new UsageException("--nic-mapping: " + wrong.getMessage());
        }
    }
}
