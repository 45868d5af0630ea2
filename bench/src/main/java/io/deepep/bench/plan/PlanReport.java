package io.deepep.bench.plan;

import com.github.freva.asciitable.AsciiTable;
import com.github.freva.asciitable.Column;
import com.github.freva.asciitable.ColumnData;
import com.github.freva.asciitable.HorizontalAlign;
import io.deepep.EpTopology;
import io.deepep.bench.run.Console;
import java.math.BigDecimal;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.stream.Stream;

/** Plans as tables for people. */
final class PlanReport {
    private static final double MEGA = 1e6;
    private static final double GIGA = 1e9;
    private static final double GIB = 1 << 30;

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
        console.out()
                .println(
                        AsciiTable.getTable(
                                AsciiTable.BASIC_ASCII_NO_DATA_SEPARATORS,
                                Line.of(plans),
                                List.of(
                                        left("mode", line -> line.plan().mode().toString()),
                                        operation(),
                                        right("NVLink MB", line -> mega(nvlink(line).mean())),
                                        right("busiest", line -> mega(nvlink(line).max())),
                                        right("RDMA MB", line -> mega(rdma(line).mean())),
                                        right("busiest", line -> mega(rdma(line).max())),
                                        bottleneck(),
                                        right(
                                                "typical us",
                                                line -> micros(line.operation().typicalMicros())),
                                        slowest())));
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
        console.out()
                .println(
                        AsciiTable.getTable(
                                AsciiTable.BASIC_ASCII_NO_DATA_SEPARATORS,
                                Line.of(plans),
                                List.of(
                                        left("mode", line -> line.plan().mode().toString()),
                                        right("ranks", line -> ranks(line)),
                                        right(
                                                "experts",
                                                line -> "" + line.plan().shape().numExperts()),
                                        right(
                                                "tokens",
                                                line -> "" + line.plan().shape().numTokens()),
                                        right(
                                                "simulated",
                                                line -> "" + line.plan().sampledTokens()),
                                        operation(),
                                        right("NVL GiB", line -> gib(buffers(line).nvl())),
                                        right("needed", line -> gib(buffers(line).nvlForRouting())),
                                        right("RDMA GiB", line -> gib(buffers(line).rdma())),
                                        right("NVLink MB", line -> mega(nvlink(line).mean())),
                                        right("RDMA MB", line -> mega(rdma(line).mean())),
                                        bottleneck(),
                                        slowest())));
        console.line(
                "NVL GiB: no routing overflows it; needed: with maxRecvTokens at what this routing brings.");
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

    private static ColumnData<Line> operation() {
        return left(
                "operation",
                line ->
                        line.operation().op()
                                + " "
                                + line.plan()
                                        .dtype(line.operation().op())
                                        .name()
                                        .toLowerCase(Locale.ROOT));
    }

    private static ColumnData<Line> bottleneck() {
        return left("bottleneck", line -> line.operation().bottleneck().toString());
    }

    private static ColumnData<Line> slowest() {
        return right("slowest us", line -> micros(line.operation().slowestMicros()));
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

    private static String ranks(Line line) {
        return Integer.toString(line.plan().cluster().topology().numRanks());
    }

    private static String mega(double bytes) {
        return String.format(Locale.ROOT, "%.2f", bytes / MEGA);
    }

    private static String gib(long bytes) {
        return String.format(Locale.ROOT, "%.2f", bytes / GIB);
    }

    private static String micros(double micros) {
        return String.format(Locale.ROOT, "%.0f", micros);
    }

    private static ColumnData<Line> left(String header, Function<Line, String> value) {
        return new Column().header(header).dataAlign(HorizontalAlign.LEFT).with(value);
    }

    private static ColumnData<Line> right(String header, Function<Line, String> value) {
        return new Column().header(header).dataAlign(HorizontalAlign.RIGHT).with(value);
    }
}
