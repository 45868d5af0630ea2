package io.deepep.bench.plan;

import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.bench.run.Console;
import io.deepep.bench.text.TextTable;
import io.deepep.planner.BufferBytes;
import io.deepep.planner.Cluster;
import io.deepep.planner.Mode;
import io.deepep.planner.ModePlan;
import io.deepep.planner.Op;
import io.deepep.planner.OperationPlan;
import io.deepep.planner.Shape;
import java.math.BigDecimal;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Plans as tables for people. */
final class PlanReport {
    private static final double MEGA = 1e6;
    private static final double GIGA = 1e9;
    private static final double GIB = 1 << 30;

    private static final String MEGABYTES = "%.2f";

    private PlanReport() {}

    /** One operation of a plan: a line of a table. */
    private record Line(ModePlan plan, OperationPlan operation) {
        static List<Line> of(List<ModePlan> plans) {
            return plans.stream()
                    .flatMap(plan -> plan.operations().stream().map(op -> new Line(plan, op)))
                    .toList();
        }
    }

    /** Everything about one cluster. */
    static void print(Console console, List<ModePlan> plans, String routing) {
        plans.forEach(plan -> describe(console, plan, routing));
        console.print(
                new TextTable<Line>()
                        .text("mode", line -> line.plan().mode())
                        .text("operation", PlanReport::operation)
                        .number("NVLink MB", MEGABYTES, line -> nvlink(line).mean() / MEGA)
                        .number("busiest", MEGABYTES, line -> nvlink(line).max() / MEGA)
                        .number("RDMA MB", MEGABYTES, line -> rdma(line).mean() / MEGA)
                        .number("busiest", MEGABYTES, line -> rdma(line).max() / MEGA)
                        .text("bottleneck", line -> line.operation().bottleneck())
                        .number("typical us", "%.0f", line -> line.operation().typicalMicros())
                        .number("slowest us", "%.0f", line -> line.operation().slowestMicros())
                        .of(Line.of(plans)));
        footer(console, plans);
    }

    private static void describe(Console console, ModePlan plan, String routing) {
        EpTopology topology = plan.cluster().topology();
        Shape shape = plan.shape();
        BufferBytes buffers = plan.buffers();
        console.line(
                "%s: %d x %d ranks, up to %d tokens each, hidden %d, top-%d of %d experts, %s routing, %s",
                plan.mode(),
                topology.numRdmaRanks(),
                topology.numNvlRanks(),
                shape.numTokens(),
                shape.hidden(),
                shape.numTopk(),
                shape.numExperts(),
                routing,
                simulated(plan));
        if (plan.mode() == Mode.NORMAL) {
            console.line(
                    "  buffers of a rank: NVL %.2f GiB (%.2f GiB with maxRecvTokens=%d, the most that a rank receives here),"
                            + " RDMA %.2f GiB",
                    buffers.nvl() / GIB,
                    buffers.nvlForRouting() / GIB,
                    buffers.maxRecvTokens(),
                    buffers.rdma() / GIB);
        } else {
            console.line("  buffers of a rank: RDMA %.2f GiB", buffers.rdma() / GIB);
        }
        console.line("  runs on: %s%s", runsOn(plan), refusals(plan));
    }

    /** Devices that this version runs such a group on, separated by commas; "none" without any. */
    static String runsOn(ModePlan plan) {
        List<Device.Kind> kinds = plan.mode().runsOn(plan.cluster().topology());
        return kinds.isEmpty()
                ? "none"
                : kinds.stream()
                        .map(kind -> kind.name().toLowerCase(Locale.ROOT))
                        .collect(Collectors.joining(", "));
    }

    private static String refusals(ModePlan plan) {
        return Stream.of(Device.Kind.values())
                .map(plan.mode()::limits)
                .flatMap(limits -> limits.refusal(plan.cluster().topology()).stream())
                .map(why -> "; " + why)
                .collect(Collectors.joining());
    }

    private static String simulated(ModePlan plan) {
        return plan.sampledTokens() == plan.shape().numTokens()
                ? "all simulated"
                : plan.sampledTokens() + " tokens of each rank simulated";
    }

    /** A line for each operation and world size. */
    static void printSweep(Console console, List<ModePlan> plans, String routing) {
        ModePlan any = plans.getFirst();
        console.line(
                "%d ranks a node, hidden %d, top-%d, %s routing; at least %d experts, a multiple of the ranks",
                any.cluster().topology().numNvlRanks(),
                any.shape().hidden(),
                any.shape().numTopk(),
                routing,
                any.shape().numExperts());
        console.print(
                new TextTable<Line>()
                        .text("mode", line -> line.plan().mode())
                        .right("ranks", line -> line.plan().cluster().topology().numRanks())
                        .right("experts", line -> line.plan().shape().numExperts())
                        .right("tokens", line -> line.plan().shape().numTokens())
                        .right("simulated", line -> line.plan().sampledTokens())
                        .text("runs on", line -> runsOn(line.plan()))
                        .text("operation", PlanReport::operation)
                        .number("NVL GiB", "%.2f", line -> buffers(line).nvl() / GIB)
                        .number("needed", "%.2f", line -> buffers(line).nvlForRouting() / GIB)
                        .number("RDMA GiB", "%.2f", line -> buffers(line).rdma() / GIB)
                        .number("NVLink MB", MEGABYTES, line -> nvlink(line).mean() / MEGA)
                        .number("RDMA MB", MEGABYTES, line -> rdma(line).mean() / MEGA)
                        .text("bottleneck", line -> line.operation().bottleneck())
                        .number("slowest us", "%.0f", line -> line.operation().slowestMicros())
                        .of(Line.of(plans)));
        console.line(
                "NVL GiB: enough for any routing; needed: enough for this routing, with maxRecvTokens set accordingly.");
        footer(console, plans);
    }

    private static void footer(Console console, List<ModePlan> plans) {
        console.line(
                "A rank's bytes in one operation (MB: 1e6), mean of all ranks and busiest; profile %s:",
                plans.getFirst().cluster().profile());
        Stream.of(Mode.values())
                .flatMap(mode -> plans.stream().filter(plan -> plan.mode() == mode).limit(1))
                .forEach(plan -> rates(console, plan.mode(), plan.cluster()));
        console.line(
                "Times are predictions; deepep plan compare shows how far off they have been.");
    }

    private static void rates(Console console, Mode mode, Cluster cluster) {
        console.line(
                "  %s: NVLink %.0f GB/s in dispatch, %.0f GB/s in combine; RDMA %.1f GB/s of %s x %s Gb/s",
                mode,
                cluster.nvlink(mode, Op.DISPATCH).bytesPerSecond() / GIGA,
                cluster.nvlink(mode, Op.COMBINE).bytesPerSecond() / GIGA,
                cluster.rdma(mode, Op.DISPATCH).bytesPerSecond() / GIGA,
                plain(cluster.nicsPerGpu()),
                plain(cluster.nicGbps()));
    }

    /** Without a decimal point where it needs none. */
    private static String plain(double value) {
        return BigDecimal.valueOf(value).stripTrailingZeros().toPlainString();
    }

    private static String operation(Line line) {
        Op op = line.operation().op();
        return op + " " + line.plan().dtype(op).name().toLowerCase(Locale.ROOT);
    }

    private static OperationPlan.LinkBytes nvlink(Line line) {
        return line.operation().nvlink();
    }

    private static OperationPlan.LinkBytes rdma(Line line) {
        return line.operation().rdma();
    }

    private static BufferBytes buffers(Line line) {
        return line.plan().buffers();
    }
}
