package io.deepep.bench.plan;

import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.report.BenchRun;
import io.deepep.bench.run.UsageException;
import io.deepep.planner.KnownProfile;
import io.deepep.planner.MeasuredProfile;
import io.deepep.planner.MeasuredProfile.Measurement;
import io.deepep.planner.Mode;
import io.deepep.planner.Op;
import io.deepep.planner.Profile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import picocli.CommandLine.Option;

/** What links cost: on a machine that is known, or as a bench measured them. */
final class ProfileChoice {
    private static final String DEFAULT = "h200";

    @Option(
            names = "--profile",
            paramLabel = "NAME|FILE[,FILE...]",
            description =
                    "Costs of links: h200 or h800-deepep-v1, which were measured; h100, b200 or gb200;"
                            + " or files that bench normal and bench low-latency wrote with --json on"
                            + " GPUs of one node (default: "
                            + DEFAULT
                            + "). docs/guides/planning.md has the numbers.")
    private String profile = DEFAULT;

    /**
     * The profile.
     *
     * @throws UsageException if there is none of that name, or files have no times of GPUs
     */
    Profile profile() {
        for (KnownProfile each : KnownProfile.values()) {
            if (each.toString().equals(profile)) {
                return each;
            }
        }
        return measured();
    }

    private Profile measured() {
        List<Measurement> measurements = new ArrayList<>();
        for (String file : profile.split(",", -1)) {
            if (!Files.isRegularFile(Path.of(file))) {
                throw new UsageException(
                        "--profile=%s is not one of %s, and there is no file %s"
                                .formatted(
                                        profile,
                                        Arrays.stream(KnownProfile.values())
                                                .map(KnownProfile::toString)
                                                .collect(Collectors.joining(", ")),
                                        file));
            }
            measurements.addAll(measurements(Path.of(file)));
        }
        return new MeasuredProfile(profile, measurements);
    }

    /** Of each operation, dtype and number of tokens the fastest, whatever its number of SMs. */
    private List<Measurement> measurements(Path file) {
        List<OperationRecord> overLinks =
                BenchRun.read(file).records().stream().filter(ProfileChoice::isOverLinks).toList();
        List<Measurement> measurements =
                BenchRun.fastest(overLinks, each -> List.of(each.op(), each.dtype(), each.tokens()))
                        .stream()
                        .flatMap(each -> measurement(each).stream())
                        .toList();
        if (measurements.isEmpty()) {
            throw new UsageException(
                    ("--profile=%s: %s has no times of several ranks on one node with a GPU each, and a bare copy;"
                                    + " record them on one host with bench normal or bench low-latency --backend cuda"
                                    + " --json")
                            .formatted(profile, file));
        }
        return measurements;
    }

    private static boolean isOverLinks(OperationRecord each) {
        return each.gpu() != null
                && each.nodes() == 1
                && each.gpu().gpus() == each.ranks()
                && each.gpu().linkBytes() > 0
                && each.gpu().ceilingBytesPerSecond() != null
                && each.gpu().ceilingBytesPerSecond() > 0;
    }

    /** The operations that plans are made for, in their fastest form; combines are of BF16. */
    private static Optional<Measurement> measurement(OperationRecord each) {
        return switch (each.op()) {
            case "dispatch" -> Optional.of(measurement(Mode.NORMAL, Op.DISPATCH, each));
            case "combine-zero-copy" ->
                    Optional.of(measurement(Mode.NORMAL, Op.COMBINE, each))
                            .filter(combine -> each.dtype().equals("bf16"));
            case "ll-dispatch" -> Optional.of(measurement(Mode.LOW_LATENCY, Op.DISPATCH, each));
            case "ll-combine-zero-copy" ->
                    Optional.of(measurement(Mode.LOW_LATENCY, Op.COMBINE, each));
            default -> Optional.empty();
        };
    }

    private static Measurement measurement(Mode mode, Op op, OperationRecord each) {
        return new Measurement(
                mode,
                op,
                each.gpu().linkBytes(),
                each.p50Micros(),
                each.gpu().ceilingBytesPerSecond());
    }
}
